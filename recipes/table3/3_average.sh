#!/usr/bin/env bash
# Step 3: takes the last checkpoint of one row as it is: Table 3 is scored without averaging.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_table3_options "$@"
read_the_data_and_the_row check

# The mean of one checkpoint is that checkpoint, without what only training needs.
arm_step average --needs "$ARM_RUN/checkpoints/checkpoint_last.pt" --makes "$ARM_RUN/average.pt" -- \
    t2017 average --output "$ARM_RUN/average.pt" "$ARM_RUN/checkpoints/checkpoint_last.pt"
