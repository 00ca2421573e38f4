#!/usr/bin/env bash
# Step 3: averages the last 5 checkpoints of one arm and seed.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"
write_settings
if [[ $KIND == decoding ]]; then
    take_over average.pt steps/average.json
    exit 0
fi

arm_step average --needs "$ARM_RUN"/checkpoints/checkpoint_*_*.pt --makes "$ARM_RUN/average.pt" -- \
    t2017 average --last 5 --output "$ARM_RUN/average.pt" "$ARM_RUN/checkpoints"
