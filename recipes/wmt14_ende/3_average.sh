#!/usr/bin/env bash
# Step 3: averages the last 5 checkpoints (MODEL=big: the last 20), as section 6.1 says.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options de "$@"
LAST=5
[[ $MODEL == base ]] || LAST=20

arm_step average --needs "$ARM_RUN"/checkpoints/checkpoint_*_*.pt --makes "$ARM_RUN/average.pt" -- \
    t2017 average --last "$LAST" --output "$ARM_RUN/average.pt" "$ARM_RUN/checkpoints"
