#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Runs the five steps of parsing, one after the other: a treebank, or made-up trees, to F1."
# shellcheck source=../common/run_steps.sh
source "$RECIPES/common/run_steps.sh"
run_steps "$here" "$@"
