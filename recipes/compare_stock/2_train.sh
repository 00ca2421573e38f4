#!/usr/bin/env bash
# Step 2: trains one arm with one seed; an arm that differs in its search alone takes over the paper's training.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 2: trains one arm with one seed; an arm that differs in its search alone takes over the paper's training."
# shellcheck source=../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_arm_options "$@"
write_settings
if [[ $KIND == training ]]; then
    # shellcheck disable=SC2034  # used by train
    MEASURE=(python "$RECIPES/common/peak_memory.py" --output "$ARM_RUN/memory.json" --)
    train
else
    [[ -f $RUN/arms/t2017/seed$SEED/steps/train.json ]] ||
        fail "$ARM takes over the training of --arm t2017 --seed $SEED, which is not finished; run that first"
    take_over logs/train.log machine.json memory.json steps/train.json
    say "train: $ARM differs in its search alone, the model of t2017, seed $SEED, is taken"
fi
