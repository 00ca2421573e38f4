#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck source=../wmt14_common/steps/run.sh
source "$RECIPES/wmt14_common/steps/run.sh"
