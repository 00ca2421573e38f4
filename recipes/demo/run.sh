#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Runs the five steps of this job, one after the other.
With --stock: first all steps with the plugin, then with stock fairseq, and a table of both at the end."
# shellcheck source=../common/run_steps.sh
source "$RECIPES/common/run_steps.sh"
run_steps "$here" "$@"
