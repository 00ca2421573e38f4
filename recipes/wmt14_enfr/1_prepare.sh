#!/usr/bin/env bash
# Step 1: downloads WMT14's archives, cleans, tokenises, learns joint BPE and binarises.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/1_prepare.sh
source "$RECIPES/wmt14_common/steps/1_prepare.sh"
