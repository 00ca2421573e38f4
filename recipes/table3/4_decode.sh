#!/usr/bin/env bash
# Step 4: translates the validation set with the model of one row. The flags here are base's, small.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_table3_options "$@"
read_the_data_and_the_row check
SOURCE=$RUN/corpus/valid.$SOURCE_LANG OUTPUT=$ARM_RUN/decode/generate.$TARGET_LANG

WRITTEN_FROM=recipes.table3.rows
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # search (6.1)
    --beam 4 --lenpen 0.6
    # batches (5.1)
    --max-tokens 500 --required-batch-size-multiple 1 --num-workers 0
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step generate generate --needs "${DATA[@]}" "$ARM_RUN/average.pt" "$SOURCE" --makes "$OUTPUT" \
    --log "$ARM_RUN/logs/generate.log" -- \
    fairseq-generate "${FLAGS[@]}" --path "$ARM_RUN/average.pt" --gen-subset valid \
    "${TEXT_FLAGS[@]}" --scoring sacrebleu \
    --then python -m recipes.common.hypotheses extract --generated "$ARM_RUN/logs/generate.log" \
    --source "$SOURCE" --output "$OUTPUT"
