#!/usr/bin/env bash
# Step 5: scores the translation (t2017 score: sacreBLEU and the paper's BLEU) and writes the report.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/5_score.sh
source "$RECIPES/wmt14_common/steps/5_score.sh"
