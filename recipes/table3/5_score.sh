#!/usr/bin/env bash
# Step 5: scores the translation of one row on validation, and writes the table of all rows that are scored.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 5: scores the translation of one row on validation, and writes the table of all rows that are scored."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
read_table3_options "$@"
read_the_data_and_the_row check
# shellcheck disable=SC2034  # used by step
STEPS=$ARM_RUN/steps
step score --input "$ARM_RUN/decode/generate.$TARGET_LANG" --input "$RUN/corpus/$SUBSET.$TARGET_LANG" \
    --output "$ARM_RUN/bleu.json" --base "$RUN" -- score_translation
helper table3.report "$RUN"
