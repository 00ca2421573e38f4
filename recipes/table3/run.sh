#!/usr/bin/env bash
# Runs rows of Table 3: the data once, then steps 2 to 5 for each row, and the table of all rows after each.
# Killed at any point, the same call resumes it; rows can be added later. The table is FOLDER/report.md.
set -euo pipefail
source "$(dirname "$0")/job.sh"
JOB_OPTIONS+="

Not --row, but:
  --rows LIST               names between commas, a group (A to E), or all (default)
  --minutes M               stop after so long, in the middle of a row if need be; the same call resumes it
  --dry-run                 print the rows and their commands, and do nothing"

# Adds the languages of a data-bin to the settings of the plan.
languages_of() {
    local sides
    sides=$(python -c 'import sys
from t2017_plugin.errors import UsageError
from t2017_plugin.text.pipeline import load_text_settings
try:
    settings = load_text_settings(sys.argv[1])
except UsageError as error:
    sys.exit(str(error))
print(settings.source_lang, settings.target_lang)' "$1") || exit
    OVERRIDES=(--set "task.source_lang=${sides% *}" --set "task.target_lang=${sides#* }" "${OVERRIDES[@]}")
}

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
names=$(python -m recipes.table3.rows names --rows "$rows") || exit 2
mapfile -t names <<<"$names"
if [[ -n $DRY_RUN ]]; then
    read_table3_options "${common[@]}"
    [[ -z $DATA_BIN ]] || languages_of "$DATA_BIN"
    python -m recipes.table3.rows plan --rows "$rows" --scale "$SCALE" --seed "$SEED" ${UPDATES:+--updates "$UPDATES"} --run "$RUN" \
        "${OVERRIDES[@]}"
    exit
fi
RUN=$(read_table3_options "${common[@]}" && echo "$RUN") || exit
began=$SECONDS

# Runs a script, but not beyond the end of the time there is.
in_time() {
    local left=0 status=0
    if [[ -n $minutes ]]; then
        left=$((seconds - (SECONDS - began)))
        ((left > 0)) || time_is_up "$1"
    fi
    run_script "$left" "$@" || status=$?
    [[ -z $minutes ]] || ((status != 124 && status != 137)) || time_is_up "$1"
    ((status == 0)) || exit "$status"
}

time_is_up() {
    say "the $minutes minutes are over, at $(basename "$1"); the same call resumes it"
    [[ ! -f $RUN/report.md ]] || say "the rows so far: $RUN/report.md"
    exit 0
}

in_time "$HERE/1_prepare.sh" "${common[@]}"
for row in "${names[@]}"; do
    say "row $row"
    for script in 2_train 3_average 4_decode 5_score; do
        in_time "$HERE/$script.sh" --row "$row" "${common[@]}"
    done
done
say "all of it took $(((SECONDS - began + 30) / 60)) minutes ($((SECONDS - began)) s)"
