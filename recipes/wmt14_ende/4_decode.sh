#!/usr/bin/env bash
# Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 4: translates newstest2014, all 3,003 lines, with fairseq-generate and the paper's search.
$VARIABLES
"
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_wmt14_options "$@"
ALSO_TRANSLATE=""
OVERRIDES+=("${MINI_DECODE[@]}")
decode
