# shellcheck shell=bash
# The comparison with stock fairseq: what the numbered scripts share and fairseq's settings have no place for.
JOB=compare_stock
# shellcheck source=../common/library.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/library.sh"

# shellcheck disable=SC2034  # used by the scripts of recipes/common
SOURCE_LANG=en TARGET_LANG=de BPE_MERGES=4000 LAST=5

usage() {
    cat <<TEXT
usage: $0 [options]

$ABOUT
A step that is done and whose inputs have not changed is skipped; interrupted work is gone on with.

  --data NAME               home_assistant (default) or bible (World English Bible to Elberfelder, split by verse)
  --arm NAME                t2017 (default: the paper), stock, all, or a single difference, such as positions
  --seed N                  default 1
  --updates N               default 4000; at least 500, as the last 5 checkpoints, each 100 updates apart, are averaged
  --run FOLDER              where everything is written; default $ROOT/runs/$JOB/NAME OF THE DATA
  --processes N             train with N processes (default 1; with GPUs: all of them)
  --set SECTION.NAME=VALUE  another value than the settings file's; may be given several times
  --generated               (1_prepare) take the generated corpus, as if no registry could be reached
  --help                    this text
${MORE_OPTIONS:-}
TEXT
}

# Sets DATA, SEED and UPDATES beside what read_options sets; ARM is any arm, ARM_RUN its folder for this seed.
read_arm_options() {
    local arm=t2017 rest=()
    DATA=home_assistant SEED=1 UPDATES=4000
    while (($#)); do
        case $1 in
            --stock) wrong_call "unknown option '--stock'; stock is an arm: --arm stock" ;;
            --data | --arm | --seed | --updates)
                (($# > 1)) || wrong_call "$1 needs a value"
                case $1 in
                    --data) DATA=$2 ;;
                    --arm) arm=$2 ;;
                    --seed) SEED=$2 ;;
                    --updates) UPDATES=$2 ;;
                esac
                shift
                ;;
            *) rest+=("$1") ;;
        esac
        shift
    done
    [[ $DATA == home_assistant || $DATA == bible ]] || wrong_call "--data $DATA: there are home_assistant and bible"
    [[ $arm =~ ^[a-z0-9_]+$ ]] || wrong_call "--arm $arm: give the name of an arm"
    [[ $SEED =~ ^[1-9][0-9]*$ && $UPDATES =~ ^[1-9][0-9]*$ ]] || wrong_call "--seed and --updates are numbers from 1"
    read_options --run "$ROOT/runs/$JOB/$DATA" "${rest[@]}"
    ARM=$arm ARM_RUN=$RUN/arms/$arm/seed$SEED
    SETTINGS=$ARM_RUN/arm.yaml
    # Verses are longer than a program's texts.
    # shellcheck disable=SC2034  # used by 1_prepare.sh
    MAX_WORDS=$([[ $DATA == bible ]] && echo 60 || echo 20)
}

# Writes the arm's settings file, unless it is there and newer than what it is made from, and sets KIND: "training", or
# "decoding" for an arm that differs in its search alone.
write_settings() {
    local source fresh=yes
    for source in "$ROOT"/configs/{demo,stock/demo}.yaml "$RECIPES/compare_stock/arms.py" \
        "$ROOT/t2017_plugin/differences/single_arms.py"; do
        [[ $SETTINGS -nt $source ]] || fresh=""
    done
    grep --quiet --line-regexp "  max_update: $UPDATES" "$SETTINGS" 2>/dev/null || fresh=""
    [[ -n $fresh ]] ||
        helper compare_stock.arms write --arm "$ARM" --seed "$SEED" --updates "$UPDATES" --output "$SETTINGS"
    # shellcheck disable=SC2034  # used by the numbered scripts
    KIND=$(grep --quiet '^# Decoding' "$SETTINGS" && echo decoding || echo training)
}

# Copies files of the paper's arm of this seed into this arm's folder.
take_over() {
    local paper=$RUN/arms/t2017/seed$SEED file
    for file in "$@"; do
        if [[ -f $paper/$file ]]; then
            mkdir -p "$(dirname "$ARM_RUN/$file")"
            cmp --silent "$paper/$file" "$ARM_RUN/$file" || cp "$paper/$file" "$ARM_RUN/$file"
        fi
    done
}
