#!/usr/bin/env bash
# Step 3: averages the last 5 checkpoints.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"

arm_step average --needs "$ARM_RUN"/checkpoints/checkpoint_*_*.pt --makes "$ARM_RUN/average.pt" -- \
    t2017 average --last 5 --output "$ARM_RUN/average.pt" "$ARM_RUN/checkpoints"
