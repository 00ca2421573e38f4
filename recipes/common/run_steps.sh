# shellcheck shell=bash
# Runs the numbered scripts of a job's folder in order; each takes the options that run.sh was given.

run_steps() {
    local began=$SECONDS folder=$1 option script common=() arms=("") arm
    shift
    (read_options "$@")
    for option in "$@"; do
        case $option in
            --help | -h) return ;;
            --stock) arms=("" --stock) ;;
            *) common+=("$option") ;;
        esac
    done
    for arm in "${arms[@]}"; do
        for script in "$folder"/[1-5]_*.sh; do
            say "$(basename "$script") ${arm:-}"
            bash "$script" ${arm:+"$arm"} "${common[@]}"
        done
    done
    say "all of it took $(((SECONDS - began + 30) / 60)) minutes ($((SECONDS - began)) s)"
}
