#!/usr/bin/env bash
# Step 2: trains with fairseq-train, by the settings of configs/.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/2_train.sh
source "$RECIPES/wmt14_common/steps/2_train.sh"
