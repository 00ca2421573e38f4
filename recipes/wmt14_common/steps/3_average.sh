# shellcheck shell=bash
# Step 3: averages the last 5 (base) or 20 (big) checkpoints with t2017 average. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 3: averages the last 5 (base) or 20 (big) checkpoints with t2017 average.
$VARIABLES
"
# shellcheck source=../../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_wmt14_options "$@"
average
