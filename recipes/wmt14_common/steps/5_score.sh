# shellcheck shell=bash
# Step 5: scores the translation (t2017 score: sacreBLEU and the paper's BLEU) and writes the report. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 5: scores the translation (t2017 score: sacreBLEU and the paper's BLEU) and writes the report.
$VARIABLES
"
# shellcheck source=../../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../../common/prepare.sh
source "$RECIPES/common/prepare.sh"
read_wmt14_options "$@"
SCORE_FLAGS=(--expect-lines 3003 --normalise-punctuation)
score
