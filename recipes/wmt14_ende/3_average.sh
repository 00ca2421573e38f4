#!/usr/bin/env bash
# Step 3: averages the last 5 (base) or 20 (big) checkpoints with t2017 average.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/3_average.sh
source "$RECIPES/wmt14_common/steps/3_average.sh"
