#!/usr/bin/env bash
# Step 3: averages the last 5 (base) or 20 (big) checkpoints with t2017 average.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 3: averages the last 5 (base) or 20 (big) checkpoints with t2017 average.
$VARIABLES
"
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_wmt14_options "$@"
average
