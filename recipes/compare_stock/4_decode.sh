#!/usr/bin/env bash
# Step 4: translates the test set with the model of one arm and seed (fairseq-generate).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Step 4: translates the test set with the model of one arm and seed (fairseq-generate)."
# shellcheck source=../common/finish.sh
source "$RECIPES/common/finish.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
read_arm_options "$@"
# shellcheck disable=SC2034  # used by decode; the demo shows that both commands agree
ALSO_TRANSLATE=""
write_settings
decode
