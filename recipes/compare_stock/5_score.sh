#!/usr/bin/env bash
# Step 5: scores the translation of one arm and seed (both BLEUs and chrF).
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"

arm_step score --needs "$ARM_RUN/decode/generate.de" corpus/test.de --makes "$ARM_RUN/bleu.json" \
    --stdout "$ARM_RUN/bleu.json" -- \
    t2017 score --target-lang de --hyp "$ARM_RUN/decode/generate.de" --ref "$RUN/corpus/test.de" --json
