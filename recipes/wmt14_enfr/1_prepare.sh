#!/usr/bin/env bash
# Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
  --dry-run             list addresses, sizes and checksums, download nothing
$VARIABLES
"
# shellcheck source=../wmt14_common/prepare.sh
source "$RECIPES/wmt14_common/prepare.sh"
dry_run_if_asked "$@"
read_wmt14_options "$@"
prepare_wmt14
