#!/usr/bin/env bash
# Step 3: takes the last checkpoint of one row as it is: Table 3 is scored without averaging.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 3: takes the last checkpoint of one row as it is: Table 3 is scored without averaging."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
read_table3_options "$@"
read_the_data_and_the_row check
# shellcheck disable=SC2034  # used by step
STEPS=$ARM_RUN/steps
# The mean of one checkpoint is that checkpoint, without what only training needs.
step average --input "$ARM_RUN/checkpoints/checkpoint_last.pt" --output "$ARM_RUN/avg.pt" --base "$RUN" -- \
    run t2017 average --output "$ARM_RUN/avg.pt" "$ARM_RUN/checkpoints/checkpoint_last.pt"
