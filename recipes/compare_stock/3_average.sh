#!/usr/bin/env bash
# Step 3: averages the last checkpoints of one arm and seed (t2017 average).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 3: averages the last checkpoints of one arm and seed (t2017 average)."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_arm_options "$@"
write_settings
if [[ $KIND == training ]]; then
    average
else
    take_over avg.pt steps/average.json
fi
