# shellcheck shell=bash
# Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search.
$VARIABLES
"
# shellcheck source=../../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../../common/flags.sh
source "$RECIPES/common/flags.sh"
read_wmt14_options "$@"
ALSO_TRANSLATE=""
OVERRIDES+=("${MINI_DECODE[@]}")
decode
