#!/usr/bin/env bash
# Step 2: trains one row of Table 3 with fairseq-train.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 2: trains one row of Table 3 with fairseq-train."
# shellcheck source=../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_table3_options "$@"
read_the_data_and_the_row write
[[ $SCALE == small ]] || fit_the_batch 25000
train
