#!/usr/bin/env bash
# Step 1: reads or makes up trees, linearises them, cuts words into BPE units, and binarises.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: reads or makes up trees, linearises them, cuts words into BPE units, and binarises."
# shellcheck source=../common/prepare.sh
source "$RECIPES/common/prepare.sh"
# shellcheck source=prepare.sh
source "$here/prepare.sh"
read_options "$@"
prepare_parsing
