# shellcheck shell=bash
# What stands around the commands of a numbered script: strict mode, the environment, options, and `step`.
# A script sources this file, or its job's file that does, and calls read_options "$@".
# shellcheck disable=SC2034  # some of what is set here is used by the scripts that source this
set -euo pipefail
umask 022

ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
RECIPES=$ROOT/recipes
HERE=$(cd -P "$(dirname "$0")" && pwd -P)
JOB=$(basename "$HERE")
# This checkout's code, wherever the caller stands: without SAFEPATH Python looks in the current folder first.
export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH} PYTHONSAFEPATH=1
# One thread for each process: where other work runs, several wait for each other by spinning, and training was
# seen twenty times slower. The number of threads also changes the last digits of every sum, and so the run.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

say() { printf '[%s] %s\n' "$JOB" "$*"; }

fail() {
    printf '[%s] %s\n' "$JOB" "$*" >&2
    exit 1
}

wrong_call() {
    printf '%s: %s; see --help\n' "$0" "$1" >&2
    exit 2
}

# The environment: T2017_ENVIRONMENT, else the checkout's .venv, else what PATH has.
environment=${T2017_ENVIRONMENT:-$ROOT/.venv}
if [[ -x $environment/bin/python ]]; then
    export PATH=$environment/bin:$PATH
elif [[ -n ${T2017_ENVIRONMENT:-} ]]; then
    fail "T2017_ENVIRONMENT is $T2017_ENVIRONMENT, which has no bin/python; name a virtual environment"
fi
for program in python t2017 fairseq-train fairseq-generate fairseq-preprocess; do
    command -v "$program" >/dev/null ||
        fail "the program $program is not there; run 'make venv' in $ROOT, or activate an environment that has it"
done

# Prints what the script says of itself in its first lines, and the options.
usage() {
    printf 'usage: %s [options]\n\n' "$0"
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" | grep -v '^shellcheck '
    cat <<TEXT
A step that is done and whose inputs have not changed is skipped; interrupted work is resumed.

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
    RUN=${DEFAULT_RUN:-$ROOT/runs/$JOB} ARM=t2017 PROCESSES="" GENERATED="" OVERRIDES=()
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
    ARM_RUN=$RUN/$ARM
    SETTINGS=$ROOT/configs/$([[ $ARM == t2017 ]] || echo stock/)$JOB.yaml
    if declare -F job_settings >/dev/null; then job_settings; fi
    if [[ -z ${DRY_RUN:-} ]]; then
        mkdir -p "$RUN" 2>/dev/null || fail "$RUN cannot be written; take another --run"
        ARM_RUN=${ARM_RUN#"$RUN"}
        RUN=$(cd "$RUN" && pwd)
        ARM_RUN=$RUN$ARM_RUN
    fi
}

# Runs a command after printing it.
run() {
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    "$@"
}

# step NAME --needs FILE... --makes FILE... -- COMMAND...
# Runs a command once and keeps a log and a stamp (recipes/step.py); files are told from RUN.
step() {
    python -m recipes.step "$1" --run "$RUN" "${@:2}"
}

# The same for a step of an arm, whose stamp is in the arm's folder.
arm_step() {
    step "$1" --folder "$ARM_RUN" "${@:2}"
}

# The same for a command that begins with the FLAGS written in the script: "train" or "generate" says which of the
# settings they are. Another settings file than WRITTEN_FROM, and --set, change them, which is printed.
flags_step() {
    arm_step "$2" --settings "$SETTINGS" "$1" --flags "${#FLAGS[@]}" \
        --written-from "$ROOT/$WRITTEN_FROM" ${WRITTEN_WITH:+"$WRITTEN_WITH"} "${OVERRIDES[@]}" "${@:3}"
}

# Prints one setting, such as generation.beam, of the settings file with what --set says.
setting() {
    python -c 'import sys
from pathlib import Path
from t2017_plugin.experiments.settings_files import read_settings
print(*(each.value for each in read_settings(Path(sys.argv[2]), sys.argv[4::2]) if each.key == sys.argv[1]))' \
        "$1" "$SETTINGS" "${OVERRIDES[@]}"
}

# Chooses max-tokens for the lengths of the data, so that an update of the paper's 8 devices holds so many tokens a side,
# padding not counted, and puts it before the overrides.
fit_the_batch() {
    local chosen
    chosen=$(t2017 batch --gpus 8 --update-freq 1 --tokens "$1" --data-bin "$RUN/data-bin" -s "$2" -t "$3" --flags)
    say "for $1 tokens a side and update on 8 devices: $chosen"
    chosen=${chosen#--max-tokens }
    OVERRIDES=(--set "dataset.max_tokens=${chosen%% *}" "${OVERRIDES[@]}")
}

# run_script SECONDS SCRIPT OPTIONS...: runs a script, 0 seconds without limit, in a group of processes of its own, so that
# whatever ends the caller ends all that the script runs; 124 or 137 when time was up.
run_script() {
    local limit=$1 timer status=0
    shift
    timeout --kill-after=60 "$limit" bash "$@" &
    timer=$!
    trap 'kill "$timer" 2>/dev/null; wait "$timer" || true; say "interrupted; the same call resumes it"; exit 130' INT TERM
    wait "$timer" || status=$?
    trap - INT TERM
    return "$status"
}

# Runs the numbered scripts of the job in order, with --stock first for the plugin and then for stock fairseq; each takes
# the options that run.sh was given.
run_steps() {
    local option script common=() arms=("") arm
    (read_options "$@")
    for option in "$@"; do
        case $option in
            --help | -h) return ;;
            --stock) arms=("" --stock) ;;
            *) common+=("$option") ;;
        esac
    done
    for arm in "${arms[@]}"; do
        for script in "$HERE"/[1-5]_*.sh; do
            say "$(basename "$script") $arm"
            run_script 0 "$script" ${arm:+"$arm"} "${common[@]}"
        done
    done
    say "all of it took $(((SECONDS + 30) / 60)) minutes ($SECONDS s)"
}
