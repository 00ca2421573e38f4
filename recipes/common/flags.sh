# shellcheck shell=bash
# The command lines of the settings file, for 2_train and 4_decode.

# Prints the flags of a command ("train" or "generate") into a file a person can read, and sets FLAGS to them. What
# they were made from is kept beside them.
read_flags() {
    local command=$1 printed
    shift
    mkdir -p "$ARM_RUN/settings"
    printed=$ARM_RUN/settings/$command.flags
    cp "$SETTINGS" "$ARM_RUN/settings/settings.yaml"
    python -m t2017_plugin.experiments.command_line "$SETTINGS" "$command" --set "task.data=$RUN/data-bin" \
        "${OVERRIDES[@]}" "$@" --null >"$printed.null" 2>"$printed.errors" ||
        fail "$(tail -n 1 "$printed.errors")"
    mapfile -d '' FLAGS <"$printed.null"
    rm "$printed.null" "$printed.errors"
    printf '%q\n' "${FLAGS[@]}" >"$printed"
}

# Adds the overrides given with --set to FACTS, what a step is judged by.
overrides_as_facts() {
    local override
    for override in "${OVERRIDES[@]}"; do
        [[ $override == --set ]] || FACTS+=(--setting "$override")
    done
}
