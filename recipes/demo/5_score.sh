#!/usr/bin/env bash
# Step 5: scores the translation (t2017 score: both BLEUs) and writes the report.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 5: scores the translation (t2017 score: both BLEUs) and writes the report."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_options "$@"
score
