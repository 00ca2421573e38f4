#!/usr/bin/env bash
# Step 5: scores the translation (both BLEUs) and writes the report.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
read_options "$@"

arm_step score --needs "$ARM_RUN/decode/generate.de" corpus/test.de --makes "$ARM_RUN/bleu.json" \
    --stdout "$ARM_RUN/bleu.json" -- \
    t2017 score --target-lang de --hyp "$ARM_RUN/decode/generate.de" --ref "$RUN/corpus/test.de" --json
[[ $RUN/curves.png -nt $ARM_RUN/logs/train.log ]] || t2017 plot "$RUN" >/dev/null
python -m recipes.common.report "$RUN"
