#!/usr/bin/env bash
# Step 2: trains one arm with one seed; an arm that differs in its search alone takes over the paper's training.
# The flags here are the paper's arm's.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
write_settings
if [[ $KIND == decoding ]]; then
    [[ -f $RUN/arms/t2017$VARIANT/seed$SEED/steps/train.json ]] ||
        fail "$ARM takes over the training of --arm t2017 --seed $SEED, which is not finished; run that first"
    take_over logs/train.log machine.json memory.json steps/train.json
    say "train: $ARM differs in its search alone, the model of t2017, seed $SEED, is taken"
    exit 0
fi

WRITTEN_FROM=recipes.compare_stock.arms
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
    --max-tokens 1000 --required-batch-size-multiple 1 --num-workers 0
    # checkpoints
    --save-interval-updates 100 --keep-interval-updates 6 --no-epoch-checkpoints
    --save-dir "$ARM_RUN/checkpoints"
    # plugin, seed, log
    --user-dir "$(t2017 user-dir)" --seed 1 --log-format simple --log-interval 50
)
flags_step train train --needs data-bin/ --makes "$ARM_RUN/checkpoints/checkpoint_last.pt" --training \
    --memory "$ARM_RUN/memory.json" ${PROCESSES:+--processes "$PROCESSES"} -- \
    fairseq-train "${FLAGS[@]}"
