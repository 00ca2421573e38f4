# shellcheck shell=bash
# Step 2: fairseq-train with the flags of the settings file, on the devices there are, gone on with after an interruption.
# A job may set MEASURE to a command that runs another one, such as recipes/common/peak_memory.py.
# shellcheck disable=SC2034  # STEPS and FACTS are read by step and as_facts

train() {
    local FACTS=() STEPS=$ARM_RUN/steps
    as_facts input < <(data_bin_files)
    FACTS+=(--settings-file "$SETTINGS" train --base "$RUN")
    overrides_as_facts
    step train "${FACTS[@]}" --output "$ARM_RUN/checkpoints/checkpoint_last.pt" -- train_from_where_it_stands
}

train_from_where_it_stands() {
    local checkpoints=$ARM_RUN/checkpoints record=$ARM_RUN/steps/training_began.json aside resumed gpus FLAGS=()
    mkdir -p "$ARM_RUN/logs"
    read_flags train --set "checkpoint.save_dir=$checkpoints"
    if [[ -d $checkpoints && $(helper common.steps start "$record" "${FACTS[@]}") != same ]]; then
        aside=$checkpoints.$(date +%Y%m%d-%H%M%S)
        say "the data or settings are others than those training began with; its checkpoints are now in $aside"
        mv "$checkpoints" "$aside"
        rm -f "$record"
    fi
    [[ -d $checkpoints ]] || mv -f "$ARM_RUN/logs/train.log" "$ARM_RUN/logs/train.log.before" 2>/dev/null || true
    mkdir -p "$checkpoints"
    helper common.steps start "$record" "${FACTS[@]}" >/dev/null
    resumed=$(helper common.resume_point "$checkpoints")
    [[ -z $resumed ]] || say "training goes on from $resumed"
    gpus=$(helper common.machine --output "$ARM_RUN/machine.json" --root "$ROOT")
    launch "$gpus" "$ARM_RUN/logs/train.log" ${MEASURE[@]+"${MEASURE[@]}"} fairseq-train "${FLAGS[@]}"
}

# Trains with one process, one for each GPU, or several on the CPUs; extra arguments win over those before.
launch() {
    local gpus=$1 log=$2 processes
    shift 2
    processes=${PROCESSES:-$((gpus > 1 ? gpus : 1))}
    say "training with $processes process(es) on $( ((gpus)) && echo "$gpus GPU(s)" || echo CPUs); the log is $log"
    share_the_batch "$processes" "$@"
    set -- "$@" "${SHARE[@]}"
    if ((!gpus)); then
        without_fp16 "$@"
        set -- "${KEPT[@]}"
    fi
    show_the_batch "$processes" "$@"
    if ((gpus)); then
        ((processes <= gpus)) || fail "--processes $processes, but there are $gpus GPUs"
        # fairseq starts the processes itself.
        run_logged "$log" "$@" --distributed-world-size "$processes"
    elif ((processes == 1)); then
        run_logged "$log" "$@"
    else
        launch_on_cpus "$log" "$processes" "$@"
    fi
}

# Sets SHARE to the flags that keep the tokens of an update what the settings file gives to the processes it was written
# for (--distributed-world-size, 1 if it names none): as many batches an update as are needed, smaller ones where the number
# does not divide.
share_the_batch() {
    local processes=$1 written_for update_freq tokens batches each
    shift
    SHARE=()
    written_for=$(value_of --distributed-world-size "$@")
    ((processes != ${written_for:-1})) || return 0
    update_freq=$(value_of --update-freq "$@")
    tokens=$(value_of --max-tokens "$@")
    batches=$((${written_for:-1} * ${update_freq:-1}))
    each=$(((batches + processes - 1) / processes))
    SHARE=(--update-freq "$each")
    ((batches % processes == 0)) || SHARE+=(--max-tokens $((batches * tokens / (processes * each))))
    say "for the same tokens an update as ${written_for:-1} process(es) have, each of $processes gets ${SHARE[*]}"
    SHARE+=(--distributed-world-size "$processes")
}

# Sets KEPT to the arguments without --fp16, which is for GPUs.
without_fp16() {
    local argument
    KEPT=()
    for argument in "$@"; do
        if [[ $argument == --fp16 ]]; then
            say "no GPU: training in float32, without --fp16"
        else
            KEPT+=("$argument")
        fi
    done
}

# Prints what an update will hold, counted over the data as fairseq makes its batches, and keeps it beside the log.
show_the_batch() {
    local processes=$1 update_freq multiple
    shift
    update_freq=$(value_of --update-freq "$@")
    multiple=$(value_of --required-batch-size-multiple "$@")
    run t2017 batch --gpus "$processes" --max-tokens "$(value_of --max-tokens "$@")" --update-freq "${update_freq:-1}" \
        --required-batch-size-multiple "${multiple:-8}" --data-bin "$RUN/data-bin" \
        -s "$SOURCE_LANG" -t "$TARGET_LANG" | tee "$ARM_RUN/logs/batch.txt"
}

# Chooses max-tokens for the lengths of the data, so that an update of the settings' devices holds so many tokens a side,
# padding not counted.
fit_the_batch() {
    local tokens=$1 devices chosen
    devices=$(sed -n 's/^  distributed_world_size: //p' "$SETTINGS")
    chosen=$(t2017 batch --gpus "$devices" --update-freq 1 --tokens "$tokens" --data-bin "$RUN/data-bin" \
        -s "$SOURCE_LANG" -t "$TARGET_LANG" --flags)
    say "for $tokens tokens a side and update on $devices devices: $chosen"
    chosen=${chosen#--max-tokens }
    OVERRIDES=(--set "dataset.max_tokens=${chosen%% *}" "${OVERRIDES[@]}")
}

# Prints the value of a flag in a list of arguments, the last one where it stands twice.
value_of() {
    local flag=$1 value=""
    shift
    while (($#)); do
        [[ $1 != "$flag" ]] || value=${2:-}
        shift
    done
    echo "$value"
}

# fairseq takes the number of processes on a machine from its GPUs, so on CPUs each process is told its rank; and torch's
# own gradient exchange is given a GPU by fairseq, so fairseq's is taken.
launch_on_cpus() {
    local log=$1 processes=$2 port rank status=0 pids=() logs=()
    shift 2
    port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    set -- "$@" --cpu --distributed-world-size "$processes" --distributed-init-method "tcp://127.0.0.1:$port" \
        --distributed-backend gloo --distributed-no-spawn --ddp-backend legacy_ddp --distributed-rank
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((($(nproc) + processes - 1) / processes))}
    trap 'kill "${pids[@]}" 2>/dev/null' EXIT
    for ((rank = 0; rank < processes; rank++)); do
        logs+=("$log$([[ $rank == 0 ]] || echo ".rank$rank")")
        print_command "$@" "$rank"
        printf ' >>%q 2>&1 &\n' "${logs[rank]}"
        # exec: the number kept must be the training's own, to end it when another fails.
        (exec "$@" "$rank" >>"${logs[rank]}" 2>&1) &
        pids+=("$!")
    done
    for ((rank = 0; rank < processes && status == 0; rank++)); do
        wait -n || status=$?
    done
    if ((status)); then
        tail -n 5 "${logs[@]}" >&2
        fail "one of the $processes processes ended with status $status; their whole output is in $log*"
    fi
    trap - EXIT
}
