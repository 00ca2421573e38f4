#!/usr/bin/env bash
# Step 2: trains one row of Table 3 with fairseq-train. The flags here are base's, small.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_table3_options "$@"
read_the_data_and_the_row write
# The paper's size has the paper's 25,000 real tokens a side and update.
[[ $SCALE == small ]] || fit_the_batch 25000 "$SOURCE_LANG" "$TARGET_LANG"

WRITTEN_FROM=recipes.table3.rows
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # model (3, 5.4: dropout)
    --arch t2017_transformer --layers 3 --d-model 128 --d-ff 512 --heads 8 --d-k 16 --d-v 16
    --dropout 0.1 --attention-dropout 0.0 --relu-dropout 0.0 --positions sinusoid
    --max-learned-positions 1024 --sinusoid paper --embeddings shared --decoder-start zeros
    --layer-norm-eps 1e-06 --init t2t
    # loss (5.4: label smoothing)
    --criterion t2017_label_smoothing --label-smoothing 0.1 --smoothing-over all
    # optimiser (5.3)
    --optimizer t2017_adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-09 --adam-epsilon-form paper
    # learning rate (5.3, equation 3)
    --lr-scheduler t2017_noam --warmup-updates 800 --noam-scale 1.0
    # length of training
    --max-update 2000 --update-freq 1
    # batches (5.1)
    --max-tokens 500 --max-tokens-valid 4000 --required-batch-size-multiple 1 --num-workers 0
    --validate-interval-updates 50
    # checkpoints
    --save-interval-updates 100 --keep-interval-updates 2 --no-epoch-checkpoints
    --save-dir "$ARM_RUN/checkpoints"
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step train train --needs "${DATA[@]}" --makes "$ARM_RUN/checkpoints/checkpoint_last.pt" --training \
    ${PROCESSES:+--processes "$PROCESSES"} -- \
    fairseq-train "${FLAGS[@]}"
