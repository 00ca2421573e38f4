#!/usr/bin/env bash
# Runs the comparison: the data once; t2017 and stock at each rate of a small grid, to choose each arm's own by its
# validation loss; then steps 2 to 5 for each seed and arm, and t2017 compare after each seed.
# Killed at any point, the same call resumes it; more seeds can be added later. The page is FOLDER/report.html.
set -euo pipefail
source "$(dirname "$0")/job.sh"
JOB_OPTIONS+="

Not --arm, --rate and --seed, but:
  --seeds N                 seeds 1 to N of every arm; default 3
  --rates LIST              the grid, peaks of the learning rate in units of the paper's formula; default 0.7,1.0,1.4
  --singles                 beside t2017 and stock: an arm for each single difference, and one with all of them
  --dry-run                 print the arms, their commands and about what all costs, and do nothing"

seeds=3 rates=0.7,1.0,1.4 singles=() common=() DRY_RUN=""
while (($#)); do
    case $1 in
        --singles) singles=(--singles) ;;
        --dry-run) DRY_RUN=yes ;;
        --seeds | --rates)
            (($# > 1)) || wrong_call "$1 needs a value"
            if [[ $1 == --seeds ]]; then seeds=$2; else rates=$2; fi
            shift
            ;;
        --arm | --rate | --seed) wrong_call "$1 is for the numbered scripts; run.sh takes --seeds, --rates and --singles" ;;
        --help | -h) usage && exit 0 ;;
        *) common+=("$1") ;;
    esac
    shift
done
[[ $seeds =~ ^[1-9][0-9]*$ ]] || wrong_call "--seeds $seeds: give a number from 1"
[[ $rates =~ ^[0-9.]+(,[0-9.]+)*$ ]] || wrong_call "--rates $rates: give numbers between commas, such as 0.7,1.0,1.4"
IFS=, read -ra rates <<<"$rates"
plan() {
    python -m recipes.compare_stock.arms plan "${singles[@]}" --seeds "$seeds" --rates "${rates[@]}" \
        --updates "$UPDATES" --run "$RUN" "${OVERRIDES[@]}"
}
if [[ -n $DRY_RUN ]]; then
    read_options "${common[@]}"
    plan
    exit
fi
(
    DRY_RUN=yes
    read_options "${common[@]}"
    plan | sed -n 1,3p
)
RUN=$(read_options "${common[@]}" && echo "$RUN") || exit
mapfile -t arms < <(python -m recipes.compare_stock.arms names "${singles[@]}")
((${#arms[@]})) || fail "no arms; the line above says why"
run_script 0 "$HERE/1_prepare.sh" "${common[@]}"

for rate in "${rates[@]}"; do
    for arm in t2017 stock; do
        say "arm $arm at rate $rate, seed 1: for its validation loss"
        run_script 0 "$HERE/2_train.sh" --arm "$arm" --rate "$rate" --seed 1 "${common[@]}"
    done
done
chosen=$(python -m recipes.compare_stock.found rates "$RUN" --rates "${rates[@]}")
mapfile -t chosen <<<"$chosen"
say "rates: t2017 ${chosen[0]}, stock ${chosen[1]}"

folders=()
for ((seed = 1; seed <= seeds; seed++)); do
    for arm in "${arms[@]}"; do
        # A single difference is trained at the paper's rate.
        rate=${chosen[0]}
        [[ $arm != stock ]] || rate=${chosen[1]}
        say "arm $arm at rate $rate, seed $seed of $seeds"
        for script in 2_train 3_average 4_decode 5_score; do
            run_script 0 "$HERE/$script.sh" --arm "$arm" --rate "$rate" --seed "$seed" "${common[@]}"
        done
        folders+=("$RUN/arms/${arm}_rate$rate/seed$seed")
    done
    run t2017 compare "${folders[@]}" --output "$RUN/report.html" --markdown "$RUN/report.md"
    python -m recipes.compare_stock.found differences "$RUN"
done
say "all of it took $(((SECONDS + 30) / 60)) minutes ($SECONDS s)"
