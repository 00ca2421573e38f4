#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Runs the five steps of this job, one after the other.
  --dry-run             list addresses, sizes and checksums, download nothing
$VARIABLES
"
# shellcheck source=../common/run_steps.sh
source "$RECIPES/common/run_steps.sh"
[[ " $* " != *" --dry-run "* ]] || exec bash "$here/1_prepare.sh" --dry-run
run_steps "$here" "$@"
