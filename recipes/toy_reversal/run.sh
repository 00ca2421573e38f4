#!/usr/bin/env bash
# Runs the five steps of this job, one after the other.
# With --stock: first all steps with the plugin, then with stock fairseq, and a table of both at the end.
set -euo pipefail
source "$(dirname "$0")/../common.sh"
run_steps "$@"
