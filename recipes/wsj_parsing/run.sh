#!/usr/bin/env bash
# Runs the five steps of parsing, one after the other: a treebank, or made-up trees, to F1.
set -euo pipefail
source "$(dirname "$0")/job.sh"
run_steps "$@"
