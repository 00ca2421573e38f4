#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/demo.yaml (with --stock: configs/stock/).
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"

WRITTEN_FROM=configs/demo.yaml
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # model (3, 5.4: dropout)
    --arch t2017_tiny
    # loss (5.4: label smoothing)
    --criterion t2017_label_smoothing --label-smoothing 0.1 --smoothing-over all
    # optimiser (5.3)
    --optimizer t2017_adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-09 --adam-epsilon-form paper
    # learning rate (5.3, equation 3)
    --lr-scheduler t2017_noam --warmup-updates 800 --noam-scale 1.0
    # length of training
    --max-update 4000 --update-freq 1
    # batches (5.1)
    --max-tokens 1000 --required-batch-size-multiple 1 --num-workers 0 --disable-validation
    # checkpoints
    --save-interval-updates 100 --keep-interval-updates 6 --no-epoch-checkpoints
    --save-dir "$ARM_RUN/checkpoints"
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step train train --needs data-bin/ --makes "$ARM_RUN/checkpoints/checkpoint_last.pt" --training \
    ${PROCESSES:+--processes "$PROCESSES"} --log "$ARM_RUN/logs/train.log" -- \
    fairseq-train "${FLAGS[@]}"
