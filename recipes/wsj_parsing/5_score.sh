#!/usr/bin/env bash
# Step 5: scores the trees as EVALB does, beside a right-branching baseline, and writes the report.
set -euo pipefail
source "$(dirname "$0")/job.sh"
read_options "$@"

arm_step score --needs "$ARM_RUN/decode/test.trees" corpus/test.gold --makes "$ARM_RUN/evalb.json" \
    --stdout "$ARM_RUN/evalb.json" -- \
    t2017 trees score --gold "$RUN/corpus/test.gold" --test "$ARM_RUN/decode/test.trees" --baseline --json
python -m recipes.wsj_parsing.report "$RUN"
