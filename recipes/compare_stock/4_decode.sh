#!/usr/bin/env bash
# Step 4: translates the test set with the model of one arm and seed. The flags here are the paper's arm's.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
write_settings
OUTPUT=$ARM_RUN/decode/generate.de

WRITTEN_FROM=recipes.compare_stock.arms
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # search (6.1)
    --beam 4 --lenpen 0.6
    # batches (5.1)
    --max-tokens 1000 --required-batch-size-multiple 1 --num-workers 0
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step generate generate --needs data-bin/ "$ARM_RUN/average.pt" corpus/test.en --makes "$OUTPUT" \
    --log "$ARM_RUN/logs/generate.log" -- \
    fairseq-generate "${FLAGS[@]}" --path "$ARM_RUN/average.pt" --gen-subset test \
    --tokenizer moses --bpe subword_nmt --bpe-codes "$RUN/data-bin/codes" --scoring sacrebleu \
    --then python -m recipes.common.hypotheses extract --generated "$ARM_RUN/logs/generate.log" \
    --source "$RUN/corpus/test.en" --output "$OUTPUT"
