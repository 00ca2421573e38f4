#!/usr/bin/env bash
# Step 5: scores the translation of one row on validation, and writes the table of all rows that are scored.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_table3_options "$@"
read_the_data_and_the_row check
OUTPUT=$ARM_RUN/decode/generate.$TARGET_LANG REFERENCE=$RUN/corpus/valid.$TARGET_LANG

arm_step score --needs "$OUTPUT" "$REFERENCE" --makes "$ARM_RUN/bleu.json" --stdout "$ARM_RUN/bleu.json" -- \
    t2017 score --target-lang "$TARGET_LANG" --hyp "$OUTPUT" --ref "$REFERENCE" --json
python -m recipes.table3.report "$RUN"
