#!/usr/bin/env bash
# Step 1: makes the corpus, sequences of digits and the same reversed, and binarises it.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"

step corpus --needs "$HERE/reversal.py" --makes corpus/{train,valid,test}.{en,de} corpus/corpus.json -- \
    python -m recipes.toy_reversal.reversal --output "$RUN/corpus" --source-lang en --target-lang de

# Tokenised and cut as the text of these two languages would be; digits that stand alone have nothing to merge.
step text --needs corpus/{train,valid,test}.{en,de} --makes text/{train,valid,test}.bpe.{en,de} text/codes \
    --log logs/text.log -- \
    python -m recipes.common.prepare_text --corpus "$RUN/corpus" --output "$RUN/text" \
    --source-lang en --target-lang de --merges 10

# All that decoding needs later lies in data-bin: dictionaries, codes, and how the text was made.
step data-bin --needs text/{train,valid,test}.bpe.{en,de} text/codes --makes data-bin/ --log logs/preprocess.log -- \
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary \
    --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
    --destdir "$RUN/data-bin.partial" \
    --then cp "$RUN/text/codes" "$RUN/data-bin.partial/codes" \
    --then python -m t2017_plugin.text.filters describe --data-bin "$RUN/data-bin.partial" \
    --source-lang en --target-lang de --bpe-codes codes
