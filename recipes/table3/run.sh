#!/usr/bin/env bash
# Runs rows of Table 3: the data once, then steps 2 to 5 for each row, and the table of all rows after each.
set -euo pipefail
here=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=job.sh
source "$here/job.sh"
ABOUT="Runs rows of Table 3: the data once, then steps 2 to 5 for each row, and the table of all rows after each.
Killed at any point, the same call goes on; rows can be added later. The table is FOLDER/report.md."
JOB_OPTIONS+="

Not --row, but:
  --rows LIST               names between commas, a group (A to E), or all (default)
  --minutes M               stop after so long, in the middle of a row if need be; the same call goes on where that was
  --dry-run                 print the rows and their commands, and do nothing"

rows=all minutes="" DRY_RUN="" common=()
while (($#)); do
    case $1 in
        --dry-run) DRY_RUN=yes ;;
        --rows | --minutes)
            (($# > 1)) || wrong_call "$1 needs a value"
            if [[ $1 == --rows ]]; then rows=$2; else minutes=$2; fi
            shift
            ;;
        --row) wrong_call "--row is for the numbered scripts; run.sh takes --rows" ;;
        --help | -h) usage && exit 0 ;;
        *) common+=("$1") ;;
    esac
    shift
done
[[ $minutes =~ ^([0-9]+(\.[0-9]+)?)?$ ]] || wrong_call "--minutes $minutes: give a number"
seconds=$(awk -v m="${minutes:-0}" 'BEGIN { printf "%d", m * 60 }')
names=$(helper table3.rows names --rows "$rows") || exit 2
mapfile -t names <<<"$names"
if [[ -n $DRY_RUN ]]; then
    read_table3_options "${common[@]}"
    helper table3.rows plan --rows "$rows" --scale "$SCALE" --seed "$SEED" ${UPDATES:+--updates "$UPDATES"} --run "$RUN" \
        "${OVERRIDES[@]}"
    exit
fi
RUN=$(read_table3_options "${common[@]}" && echo "$RUN")
began=$SECONDS

# Runs a script, but not beyond the end of the time there is.
in_time() {
    local left timer status=0
    if [[ -z $minutes ]]; then
        bash "$@"
        return
    fi
    left=$((seconds - (SECONDS - began)))
    ((left > 0)) || time_is_up "$1"
    # timeout has a group of processes of its own and ends all of it; what interrupts this script is passed on to it.
    timeout --kill-after=60 "$left" bash "$@" &
    timer=$!
    trap 'kill "$timer" 2>/dev/null; wait "$timer"; exit 130' INT TERM
    wait "$timer" || status=$?
    trap - INT TERM
    ((status != 124 && status != 137)) || time_is_up "$1"
    ((status == 0)) || exit "$status"
}

time_is_up() {
    say "the $minutes minutes are over, at $(basename "$1"); the same call goes on from the last checkpoint"
    [[ ! -f $RUN/report.md ]] || say "the rows so far: $RUN/report.md"
    exit 0
}

in_time "$here/1_prepare.sh" "${common[@]}"
for row in "${names[@]}"; do
    say "row $row"
    for script in 2_train 3_average 4_decode 5_score; do
        in_time "$here/$script.sh" --row "$row" "${common[@]}"
    done
done
say "all of it took $(((SECONDS - began + 30) / 60)) minutes ($((SECONDS - began)) s)"
