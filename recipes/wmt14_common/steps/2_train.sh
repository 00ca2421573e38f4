# shellcheck shell=bash
# Step 2: trains with fairseq-train, by the settings of configs/. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 2: trains with fairseq-train, by the settings of configs/. Data that is not what 1_prepare.sh made is refused.
$VARIABLES
"
# shellcheck source=../../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../../common/flags.sh
source "$RECIPES/common/flags.sh"
read_wmt14_options "$@"
run helper wmt14_common.manifest check "$RUN/data-bin"
fit_the_batch_of_wmt14
train
