# shellcheck shell=bash
# What the three launchers share. A launcher sets ABOUT and sources this file; then `read_options "$@"` gives
# COMMAND (fairseq-train with all flags), GPUS (of a machine), NODES, PORT and DRY_RUN.
set -euo pipefail
ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

fail() {
    printf '%s: %s\n' "$0" "$*" >&2
    exit "${STATUS:-1}"
}

usage() {
    cat <<TEXT
usage: $0 --data-bin FOLDER --save-dir FOLDER [options] [-- FLAGS OF fairseq-train]

$ABOUT
An update holds about 25,000 source and 25,000 target tokens whatever the number of GPUs: t2017 batch counts them.

  --settings FILE        default $ROOT/configs/base.yaml
  --gpus N               GPUs of each machine; default: those nvidia-smi shows
  --nodes N              machines; default 1 (under Slurm: those of the job)
  --port N               for the processes to meet; default 29417
  --dry-run              print the command and run nothing
  --help                 this text
TEXT
}

gpus_here() {
    command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus | wc -l || echo 0
}

read_options() {
    local settings=$ROOT/configs/base.yaml data="" save="" flags=() batch=() own=()
    GPUS="" NODES=${SLURM_JOB_NUM_NODES:-1} PORT=29417 DRY_RUN=""
    while (($#)); do
        case $1 in
            --help | -h) usage && exit 0 ;;
            --dry-run) DRY_RUN=yes ;;
            --) shift && own=("$@") && break ;;
            --settings | --data-bin | --save-dir | --gpus | --nodes | --port)
                (($# > 1)) || STATUS=2 fail "$1 needs a value; see --help"
                case $1 in
                    --settings) settings=$2 ;;
                    --data-bin) data=$2 ;;
                    --save-dir) save=$2 ;;
                    --gpus) GPUS=$2 ;;
                    --nodes) NODES=$2 ;;
                    --port) PORT=$2 ;;
                esac
                shift
                ;;
            *) STATUS=2 fail "unknown option '$1'; see --help" ;;
        esac
        shift
    done
    [[ -n $data && -n $save ]] || STATUS=2 fail "--data-bin and --save-dir are needed; see --help"
    GPUS=${GPUS:-$(gpus_here)}
    [[ $GPUS =~ ^[1-9][0-9]*$ && $NODES =~ ^[1-9][0-9]*$ && $PORT =~ ^[1-9][0-9]*$ ]] ||
        fail "--gpus $GPUS, --nodes $NODES, --port $PORT: give numbers from 1 (nvidia-smi shows $(gpus_here) GPUs here)"
    mapfile -d '' flags < <(cd "$ROOT" && python -m t2017_plugin.experiments.command_line "$settings" train \
        --set "task.data=$data" --set "checkpoint.save_dir=$save" \
        --set "distributed_training.distributed_world_size=$((NODES * GPUS))" --null)
    ((${#flags[@]})) || fail "no flags came of $settings; the line above says why"
    read -ra batch < <(t2017 batch --gpus $((NODES * GPUS)) --data-bin "$data" --flags)
    ((${#batch[@]})) || fail "no batch came of $data; the line above says why"
    # shellcheck disable=SC2034  # used by the launchers
    COMMAND=(fairseq-train "${flags[@]}" "${batch[@]}" ${own[@]+"${own[@]}"})
}

# Prints a command as one would type it and runs it in place of this script.
become() {
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    [[ -n $DRY_RUN ]] || exec "$@"
}
