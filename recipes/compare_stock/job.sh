# shellcheck shell=bash
# What the scripts of the comparison share: their options, and the settings file of an arm.
# shellcheck disable=SC2034  # most of what is set here is used by the scripts that source this
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

NO_STOCK=yes DATA=home_assistant ARM_NAME=t2017 RATE="" SIZE=demo SEED=1 UPDATES=4000
JOB_OPTIONS="
  --data NAME               home_assistant (default) or bible (World English Bible to Elberfelder, split by verse)
  --arm NAME                t2017 (default: the paper), stock, all, or a single difference, such as positions
  --rate R                  another peak of the learning rate, in units of the paper's formula; default: configs/'s
  --size NAME               demo (default), layers6 (six layers) or d256 (twice as wide)
  --seed N                  default 1
  --updates N               default 4000; at least 500, as the last 5 checkpoints, each 100 updates apart, are averaged"
DEFAULT_RUN="$ROOT/runs/compare_stock/NAME OF THE DATA"

job_option() {
    case $1 in
        --stock) wrong_call "unknown option '--stock'; stock is an arm: --arm stock" ;;
        --data | --arm | --rate | --size | --seed | --updates) (($# > 1)) || wrong_call "$1 needs a value" ;;
        *) return 1 ;;
    esac
    case $1=$2 in
        --data=home_assistant | --data=bible) DATA=$2 ;;
        --data=*) wrong_call "--data $2: there are home_assistant and bible" ;;
        --arm=*[!a-z0-9_]* | --arm=) wrong_call "--arm $2: give the name of an arm" ;;
        --arm=*) ARM_NAME=$2 ;;
        --rate=*[!0-9.]* | --rate=) wrong_call "--rate $2: give a number, such as 1.0" ;;
        --rate=*) RATE=$2 ;;
        --size=demo | --size=layers6 | --size=d256) SIZE=$2 ;;
        --size=*) wrong_call "--size $2: there are demo, layers6 and d256" ;;
        *=*[!0-9]* | *=0* | *=) wrong_call "$1 $2: give a number from 1" ;;
        --seed=*) SEED=$2 ;;
        --updates=*) UPDATES=$2 ;;
    esac
}

# Called by read_options; ARM_RUN is the folder of an arm for one seed.
job_settings() {
    [[ $RUN != "$DEFAULT_RUN" ]] || RUN=$ROOT/runs/compare_stock/$DATA
    VARIANT=${RATE:+_rate$RATE}$([[ $SIZE == demo ]] || echo "_$SIZE")
    ARM=$ARM_NAME ARM_RUN=$RUN/arms/$ARM_NAME$VARIANT/seed$SEED
    SETTINGS=$ARM_RUN/arm.yaml
}

# Writes the arm's settings file and sets KIND: "training", or "decoding" for an arm that differs in its search alone.
write_settings() {
    KIND=$(python -m recipes.compare_stock.arms write --arm "$ARM" --seed "$SEED" --updates "$UPDATES" \
        --size "$SIZE" ${RATE:+--rate "$RATE"} --output "$SETTINGS")
}

# Copies files of the paper's arm of this seed into this arm's folder.
take_over() {
    local paper=$RUN/arms/t2017$VARIANT/seed$SEED file
    for file in "$@"; do
        if [[ -f $paper/$file ]]; then
            mkdir -p "$(dirname "$ARM_RUN/$file")"
            cmp --silent "$paper/$file" "$ARM_RUN/$file" || cp "$paper/$file" "$ARM_RUN/$file"
        fi
    done
}
