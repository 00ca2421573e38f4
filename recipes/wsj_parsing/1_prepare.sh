#!/usr/bin/env bash
# Step 1: reads or makes up trees, linearises them, cuts words into BPE units, and binarises.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"

TREES=("$HERE"/{corpus,splits,grammar}.py) FROM=(--form "$FORM")
if [[ -n $TREEBANK ]]; then
    mapfile -t -O 3 TREES < <(find "$TREEBANK" -name '*.mrg' | sort)
    FROM+=(--treebank "$TREEBANK" "${FILES[@]}")
else
    say "GENERATED TREES: trees from a small grammar, which are no English; all outputs will say so"
    FROM+=(--generated-trees "${T2017_GENERATED_TREES:-4000}")
fi
step corpus --needs "${TREES[@]}" ${SILVER:+"$SILVER"} --makes corpus/ -- \
    python -m recipes.wsj_parsing.corpus --output "$RUN/corpus.partial" "${FROM[@]}" ${SILVER:+--silver "$SILVER"}

# Units of words only; the symbols of trees stay whole. About 16K units for the treebank alone, 32K with silver trees (6.3).
step text --needs corpus/ --makes text/ --log logs/text.log -- \
    python -m recipes.wsj_parsing.units --corpus "$RUN/corpus" --output "$RUN/text.partial" --merges "$MERGES"

# Silver trees: dictionaries of gold and silver together, and the silver ones in the same indices; fairseq reads
# train1 beside train.
DICTIONARIES=() SILVER_DATA=()
if [[ -n $SILVER ]]; then
    DICTIONARIES=(--srcdict "$RUN/silver/dict.words.txt" --tgtdict "$RUN/silver/dict.tree.txt")
    step dictionaries --needs text/ --makes silver/ --log logs/dictionaries.log -- \
        fairseq-preprocess --source-lang words --target-lang tree \
        --trainpref "$RUN/text/both.bpe" --dict-only --destdir "$RUN/silver.partial"
    step silver --needs text/ silver/ --makes silver_binary/ --log logs/silver.log -- \
        fairseq-preprocess --source-lang words --target-lang tree "${DICTIONARIES[@]}" \
        --trainpref "$RUN/text/train1.bpe" --destdir "$RUN/silver_binary.partial"
    for kind in {words,tree}.{bin,idx}; do
        SILVER_DATA+=(--then cp "$RUN/silver_binary/train.words-tree.$kind"
            "$RUN/data-bin.partial/train1.words-tree.$kind")
    done
fi
step data-bin --needs text/ ${SILVER:+silver_binary/} --makes data-bin/ --log logs/preprocess.log -- \
    fairseq-preprocess --source-lang words --target-lang tree "${DICTIONARIES[@]}" \
    --trainpref "$RUN/text/train.bpe" --validpref "$RUN/text/valid.bpe" --testpref "$RUN/text/test.bpe" \
    --destdir "$RUN/data-bin.partial" "${SILVER_DATA[@]}" \
    --then cp "$RUN/text/codes" "$RUN/data-bin.partial/codes" \
    --then python -m t2017_plugin.text.filters describe --data-bin "$RUN/data-bin.partial" \
    --source-lang words --target-lang tree --tokenizer none --bpe-codes codes
