#!/usr/bin/env bash
# Step 5: scores the trees as EVALB does (t2017 trees score), beside a right-branching baseline, and writes the report.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
# shellcheck disable=SC2034  # printed by --help
ABOUT="Step 5: scores the trees as EVALB does (t2017 trees score), beside a right-branching baseline, and writes the report."
# shellcheck source=finish.sh
source "$here/finish.sh"
read_options "$@"
score_trees
