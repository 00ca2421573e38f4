#!/usr/bin/env bash
# Step 5: scores the translation of one arm and seed (t2017 score: both BLEUs and chrF).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 5: scores the translation of one arm and seed (t2017 score: both BLEUs and chrF)."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
read_arm_options "$@"
# shellcheck disable=SC2034  # used by step
STEPS=$ARM_RUN/steps
step score --input "$ARM_RUN/decode/generate.$TARGET_LANG" --input "$RUN/corpus/test.$TARGET_LANG" \
    --output "$ARM_RUN/bleu.json" --base "$RUN" -- score_translation
