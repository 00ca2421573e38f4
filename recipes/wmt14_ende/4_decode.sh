#!/usr/bin/env bash
# Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/4_decode.sh
source "$RECIPES/wmt14_common/steps/4_decode.sh"
