#!/usr/bin/env bash
# Runs the comparison: the data once, then steps 2 to 5 for each seed and arm, and t2017 compare after each seed.
# Killed at any point, the same call resumes it; more seeds can be added later. The page is FOLDER/report.html.
set -euo pipefail
source "$(dirname "$0")/job.sh"
JOB_OPTIONS+="

Not --arm and --seed, but:
  --seeds N                 seeds 1 to N of every arm; default 3
  --singles                 beside t2017 and stock: an arm for each single difference, and one with all of them
  --dry-run                 print the arms and their commands, and do nothing"

seeds=3 singles=() common=() DRY_RUN=""
while (($#)); do
    case $1 in
        --singles) singles=(--singles) ;;
        --dry-run) DRY_RUN=yes ;;
        --seeds)
            (($# > 1)) || wrong_call "$1 needs a value"
            seeds=$2
            shift
            ;;
        --arm | --seed) wrong_call "$1 is for the numbered scripts; run.sh takes --seeds and --singles" ;;
        --help | -h) usage && exit 0 ;;
        *) common+=("$1") ;;
    esac
    shift
done
[[ $seeds =~ ^[1-9][0-9]*$ ]] || wrong_call "--seeds $seeds: give a number from 1"
if [[ -n $DRY_RUN ]]; then
    read_options "${common[@]}"
    python -m recipes.compare_stock.arms plan "${singles[@]}" --seeds "$seeds" --updates "$UPDATES" --run "$RUN" "${OVERRIDES[@]}"
    exit
fi
RUN=$(read_options "${common[@]}" && echo "$RUN") || exit
mapfile -t arms < <(python -m recipes.compare_stock.arms names "${singles[@]}")
((${#arms[@]})) || fail "no arms; the line above says why"
run_script 0 "$HERE/1_prepare.sh" "${common[@]}"
folders=()
for ((seed = 1; seed <= seeds; seed++)); do
    for arm in "${arms[@]}"; do
        say "arm $arm, seed $seed of $seeds"
        for script in 2_train 3_average 4_decode 5_score; do
            run_script 0 "$HERE/$script.sh" --arm "$arm" --seed "$seed" "${common[@]}"
        done
        folders+=("$RUN/arms/$arm/seed$seed")
    done
    run t2017 compare "${folders[@]}" --output "$RUN/report.html" --markdown "$RUN/report.md"
done
say "all of it took $(((SECONDS + 30) / 60)) minutes ($SECONDS s)"
