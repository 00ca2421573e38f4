# shellcheck shell=bash
# What every numbered script sources: strict mode, the environment, printing, steps that are done once, and options.
# A script sets JOB (a folder of recipes/) before it sources this file, and calls read_options "$@" after it.
# shellcheck disable=SC2034  # some of what is set here is used by the scripts that source this
set -euo pipefail
umask 022

ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
RECIPES=$ROOT/recipes

SUBSET="test"  # what is translated and scored; a job may have another
DRY_RUN=""     # set: nothing is written

say() { printf '[%s] %s\n' "$JOB" "$*"; }

fail() {
    printf '[%s] %s\n' "$JOB" "$*" >&2
    exit 1
}

# The environment: T2017_ENVIRONMENT, else the checkout's .venv, else what PATH has.
environment=${T2017_ENVIRONMENT:-$ROOT/.venv}
if [[ -x $environment/bin/python ]]; then
    PATH=$environment/bin:$PATH
    export PATH
elif [[ -n ${T2017_ENVIRONMENT:-} ]]; then
    fail "T2017_ENVIRONMENT is $T2017_ENVIRONMENT, which has no bin/python; name a virtual environment"
fi
for program in python t2017 fairseq-train fairseq-generate fairseq-preprocess; do
    command -v "$program" >/dev/null ||
        fail "the program $program is not there; run 'make venv' in $ROOT, or activate an environment that has it"
done

# Runs a command after printing it as one would type it.
run() {
    print_command "$@"
    printf '\n'
    "$@"
}

print_command() {
    printf '+'
    if [[ $1 == helper ]]; then
        printf ' PYTHONPATH=%q python -m %q' "$ROOT" "recipes.$2"
        shift 2
    fi
    printf ' %q' "$@"
}

# Runs a command as `run` does, its output going to a log file only; when it fails, the end of the log is shown.
run_logged() {
    local log=$1 status=0
    shift
    mkdir -p "$(dirname "$log")"
    print_command "$@"
    printf ' >>%q 2>&1\n' "$log"
    "$@" >>"$log" 2>&1 || status=$?
    if ((status)); then
        tail -n 15 "$log" >&2
        fail "that command ended with status $status; its whole output is in $log"
    fi
}

# run_script SECONDS SCRIPT OPTIONS...: runs a script, 0 seconds without limit, in a group of processes of its own, so that
# whatever ends the caller ends all that the script runs; 124 or 137 when time was up.
run_script() {
    local limit=$1 timer status=0
    shift
    timeout --kill-after=60 "$limit" bash "$@" &
    timer=$!
    trap 'kill "$timer" 2>/dev/null; wait "$timer" || true; say "interrupted; the same call goes on there"; exit 130' INT TERM
    wait "$timer" || status=$?
    trap - INT TERM
    return "$status"
}

# Runs one of the recipes' Python helpers, wherever the caller stands.
helper() {
    PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH} python -m "recipes.$1" "${@:2}"
}

# step NAME --input FILE... --setting TEXT... --output FILE... -- FUNCTION
# Runs FUNCTION unless NAME is done: made before from the same inputs and settings, its outputs still as it left them.
# The stamp of a step, RUN/steps/NAME.json, holds their hashes and the seconds it took.
step() {
    local name=$1 facts=() folder=${STEPS:-$RUN/steps} began=$SECONDS reason status=0
    shift
    while [[ $1 != -- ]]; do
        facts+=("$1")
        shift
    done
    reason=$(helper common.steps check "$folder/$name.json" "${facts[@]}") || status=$?
    case $status in
        0) say "$name: done before, nothing has changed" && return ;;
        3) say "$name: $reason" ;;
        *) exit 1 ;;
    esac
    "${@:2}"
    helper common.steps finish "$folder/$name.json" --seconds $((SECONDS - began)) "${facts[@]}"
    say "$name: done in $((SECONDS - began)) s"
}

# Sets the array FACTS to "--input FILE" or "--output FILE" for each line of the standard input.
as_facts() {
    local kind=$1 file
    while IFS= read -r file; do
        FACTS+=("--$kind" "$file")
    done
}

# Stops when the files named do not all have the same number of lines.
same_number_of_lines() {
    local first file lines
    first=$(wc -l <"$1")
    for file in "$@"; do
        lines=$(wc -l <"$file")
        ((lines == first)) || fail "$file has $lines lines and $1 has $first: from line $(((lines < first ? lines : first) + 1)) \
on the sides are no longer aligned"
    done
    say "lines: $first in each of $(basename -a "$@" | paste -sd ' ')"
}

usage() {
    cat <<TEXT
usage: $0 [options]

$ABOUT
A step that is done and whose inputs have not changed is skipped; interrupted work is gone on with.

  --run FOLDER              where everything is written; default ${DEFAULT_RUN:-$ROOT/runs/$JOB}
  --processes N             train with N processes (default 1; with GPUs: all of them)
  --set SECTION.NAME=VALUE  another value than the settings file's; may be given several times
  --generated               (1_prepare) take the generated corpus, as if no registry could be reached
  --help                    this text
TEXT
    [[ -n ${NO_STOCK:-} ]] || cat <<TEXT
  --stock                   stock fairseq's model, loss, schedule and optimiser instead of the plugin's
TEXT
    [[ -z ${JOB_OPTIONS:-} ]] || printf '\noptions of this job:%s\n' "$JOB_OPTIONS"
}

# Sets RUN (the job's folder), ARM (t2017 or stock), ARM_RUN (the arm's folder), SETTINGS (the file of configs/),
# OVERRIDES (--set ...), PROCESSES and GENERATED. With DRY_RUN set nothing is written.
read_options() {
    RUN=$ROOT/runs/$JOB ARM=t2017 PROCESSES="" GENERATED="" OVERRIDES=()
    while (($#)); do
        # A job may have options of its own, each with a value.
        if declare -F job_option >/dev/null && job_option "$@"; then
            shift 2
            continue
        fi
        case $1 in
            --help | -h) usage && exit 0 ;;
            --stock) ARM=stock ;;
            --generated) GENERATED=yes ;;
            --run | --processes | --set)
                (($# > 1)) || wrong_call "$1 needs a value"
                case $1 in
                    --run) RUN=$2 ;;
                    --processes) PROCESSES=$2 ;;
                    --set) OVERRIDES+=(--set "$2") ;;
                esac
                shift
                ;;
            *) wrong_call "unknown option '$1'" ;;
        esac
        shift
    done
    [[ $PROCESSES =~ ^([1-9][0-9]*)?$ ]] || wrong_call "--processes $PROCESSES: give a number from 1"
    if [[ -z $DRY_RUN ]]; then
        mkdir -p "$RUN/logs" 2>/dev/null || fail "$RUN cannot be written; take another --run"
        RUN=$(cd "$RUN" && pwd)
    fi
    ARM_RUN=$RUN/$ARM
    SETTINGS=$ROOT/configs/$([[ $ARM == t2017 ]] || echo stock/)$JOB.yaml
    if declare -F job_settings >/dev/null; then job_settings; fi
    [[ -n $DRY_RUN ]] || take_the_lock
}

wrong_call() {
    printf '%s: %s; see --help\n' "$0" "$1" >&2
    exit 2
}

# One script at a time works in a run. The lock belongs to the open file, so it also lasts while a command goes on whose
# script was killed; one that is just ending is waited for.
take_the_lock() {
    exec 9>"$RUN/.lock"
    if command -v flock >/dev/null && ! flock --timeout 10 9; then
        fail "another script, or a command it left running, is at work in $RUN; wait for it or stop it"
    fi
}
