# shellcheck shell=bash
# Runs the five steps of this job, one after the other. The same for both languages; sourced by the job's script.
# shellcheck disable=SC2034  # printed by --help
ABOUT="Runs the five steps of this job, one after the other.
  --dry-run             list addresses, sizes and checksums, download nothing
$VARIABLES
"
# shellcheck source=../../common/run_steps.sh
source "$RECIPES/common/run_steps.sh"
[[ " $* " != *" --dry-run "* ]] || exec bash "$RECIPES/$JOB/1_prepare.sh" --dry-run
run_steps "$RECIPES/$JOB" "$@"
