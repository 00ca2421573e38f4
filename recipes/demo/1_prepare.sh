#!/usr/bin/env bash
# Step 1: fetches Home Assistant's texts, splits them by component, tokenises, learns BPE and binarises.
# The wheel (68 MB) is kept in runs/cache, or in the folder that the variable T2017_CACHE names. When
# it cannot be downloaded, made-up text takes its place, and every output says so.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"
WHEEL=${T2017_CACHE:-$ROOT/runs/cache}/homeassistant-2026.11.0-py3-none-any.whl

fetched=3 # the registry cannot be reached
if [[ -z $GENERATED ]]; then
    fetched=0
    step fetch --makes "$WHEEL" -- \
        python -m recipes.common.fetch homeassistant==2026.11.0 --to "$WHEEL" --megabytes 68 \
        --sha256 7ca5fbde9dea879ac7723949fc84347aac5182e6309c357b2e4973fd391b00f7 || fetched=$?
fi

# Sentences of at most 20 words (96 % of those of 3 to 60): what a model can learn in minutes.
CORPUS=(corpus/{train,valid,test}.{en,de} corpus/corpus.json)
if ((fetched == 0)); then
    step corpus --needs "$WHEEL" "$HERE/home_assistant.py" "$RECIPES/common/parallel_corpus.py" --makes "${CORPUS[@]}" -- \
        python -m recipes.demo.home_assistant --wheel "$WHEEL" --output "$RUN/corpus" \
        --source-lang en --target-lang de --max-words 20
elif ((fetched == 3)) && [[ -z ${REAL_TEXT_ONLY:-} || -n $GENERATED ]]; then
    say "GENERATED CORPUS: made-up text, which is no language; all outputs will say so"
    step corpus --needs "$RECIPES"/common/{generated,parallel}_corpus.py --makes "${CORPUS[@]}" -- \
        python -m recipes.common.generated_corpus --output "$RUN/corpus" --source-lang en --target-lang de
else
    exit 1
fi

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
