#!/usr/bin/env bash
# Step 5: scores the translation (sacreBLEU and the paper's BLEU) and writes the report.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options fr "$@"

arm_step score --needs "$ARM_RUN/decode/generate.fr" corpus/test.fr --makes "$ARM_RUN/bleu.json" \
    --stdout "$ARM_RUN/bleu.json" -- \
    t2017 score --target-lang fr --hyp "$ARM_RUN/decode/generate.fr" --ref "$RUN/corpus/test.fr" \
    --expect-lines 3003 --normalise-punctuation --json
[[ $RUN/curves.png -nt $ARM_RUN/logs/train.log ]] || t2017 plot "$RUN" >/dev/null
python -m recipes.common.report "$RUN"
