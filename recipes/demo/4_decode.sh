#!/usr/bin/env bash
# Step 4: translates the test set with fairseq-generate and with t2017 translate, which must agree.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 4: translates the test set with fairseq-generate and with t2017 translate, which must agree."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_options "$@"
decode
