#!/usr/bin/env bash
# Step 5: scores the translation (sacreBLEU and the paper's BLEU) and writes the report. With the variable
# AUTHORS_REFERENCE=yes also against the reference that the authors scored against: its quotation marks are all ".
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
read_wmt14_options de "$@"

arm_step score --needs "$ARM_RUN/decode/generate.de" corpus/test.de --makes "$ARM_RUN/bleu.json" \
    --stdout "$ARM_RUN/bleu.json" -- \
    t2017 score --target-lang de --hyp "$ARM_RUN/decode/generate.de" --ref "$RUN/corpus/test.de" \
    --expect-lines 3003 --normalise-punctuation ${AUTHORS_REFERENCE:+--authors-reference} --json
[[ $RUN/curves.png -nt $ARM_RUN/logs/train.log ]] || t2017 plot "$RUN" >/dev/null
python -m recipes.common.report "$RUN"
