#!/usr/bin/env bash
# Step 4: parses the test set with the paper's search (t2017 parse) and rebuilds whole trees (t2017 trees rebuild).
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 4: parses the test set with the paper's search (t2017 parse) and rebuilds whole trees (t2017 trees rebuild)."
# shellcheck source=../common/train.sh
source "$RECIPES/common/train.sh"
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=prepare.sh
source "$here/prepare.sh"
# shellcheck source=../common/flags.sh
source "$RECIPES/common/flags.sh"
# shellcheck source=finish.sh
source "$here/finish.sh"
read_options "$@"
decode_trees
