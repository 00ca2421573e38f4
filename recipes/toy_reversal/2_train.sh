#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/toy_reversal.yaml (with --stock: configs/stock/).
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"

WRITTEN_FROM=configs/toy_reversal.yaml
FLAGS=(
    # data, and how it is decoded
    "$RUN/data-bin" --task t2017_translation --source-lang en --target-lang de --search paper
    --length-penalty-form gnmt --extra-length 50
    # model (3, 5.4: dropout)
    --arch t2017_transformer --layers 2 --d-model 64 --d-ff 256 --heads 4 --d-k 16 --d-v 16
    --dropout 0.0 --attention-dropout 0.0 --relu-dropout 0.0 --positions sinusoid
    --max-learned-positions 1024 --sinusoid paper --embeddings shared --decoder-start zeros
    --layer-norm-eps 1e-06 --init t2t
    # loss (5.4: label smoothing)
    --criterion t2017_label_smoothing --label-smoothing 0.1 --smoothing-over all
    # optimiser (5.3)
    --optimizer t2017_adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-09 --adam-epsilon-form paper
    # learning rate (5.3, equation 3)
    --lr-scheduler t2017_noam --warmup-updates 200 --noam-scale 0.5
    # length of training
    --max-update 400 --update-freq 1
    # batches (5.1)
    --max-tokens 600 --required-batch-size-multiple 1 --num-workers 0 --disable-validation
    # checkpoints
    --save-interval-updates 20 --keep-interval-updates 6 --no-epoch-checkpoints
    --save-dir "$ARM_RUN/checkpoints"
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step train train --needs data-bin/ --makes "$ARM_RUN/checkpoints/checkpoint_last.pt" --training \
    ${PROCESSES:+--processes "$PROCESSES"} --log "$ARM_RUN/logs/train.log" -- \
    fairseq-train "${FLAGS[@]}"
