#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
set -euo pipefail
source "$(dirname "$0")/../wmt14_common/job.sh"
[[ " $* " != *" --dry-run "* ]] || exec bash "$HERE/1_prepare.sh" --dry-run
run_steps "$@"
