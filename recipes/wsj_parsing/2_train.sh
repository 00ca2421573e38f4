#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/parsing.yaml (--scale small: configs/parsing_small.yaml).
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
paper_size_needs_a_gpu

WRITTEN_FROM=configs/parsing.yaml
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_parsing --source-lang words --target-lang tree --search paper
    --length-penalty-form gnmt --extra-length 300
    # model (3, 5.4: dropout)
    --arch t2017_parsing
    # loss (5.4: label smoothing)
    --criterion t2017_label_smoothing --label-smoothing 0.1 --smoothing-over all
    # optimiser (5.3)
    --optimizer t2017_adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-09 --adam-epsilon-form paper
    # learning rate (5.3, equation 3)
    --lr-scheduler t2017_noam --warmup-updates 16000 --noam-scale 0.5
    # length of training
    --max-update 100000 --update-freq 1
    # batches (5.1)
    --max-tokens 3125 --required-batch-size-multiple 1 --num-workers 2
    # checkpoints
    --save-interval-updates 1500 --keep-interval-updates 5 --no-epoch-checkpoints
    --save-dir "$ARM_RUN/checkpoints"
    # devices (5.2)
    --distributed-world-size 8
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --fp16 --log-format simple --log-interval 100
)
flags_step train train --needs data-bin/ --makes "$ARM_RUN/checkpoints/checkpoint_last.pt" --training \
    ${PROCESSES:+--processes "$PROCESSES"} -- \
    fairseq-train "${FLAGS[@]}"
