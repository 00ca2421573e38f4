# shellcheck shell=bash
# What the scripts of both WMT14 recipes share: the variables that steer them, and what they mean. The job sets JOB,
# TARGET_LANG, MAX_TOKENS, MAX_RATIO, VOCABULARY and SETTINGS_OF (the settings file of each model).
# shellcheck disable=SC2034  # much of what is set here is used by the scripts of recipes/common

SOURCE_LANG=en
MODEL=${MODEL:-base} SCALE=${SCALE:-full} WORKERS=${WORKERS:-$(nproc)} WMT14_MIRROR=${WMT14_MIRROR:-}
CACHE=${T2017_CACHE:-$ROOT/runs/cache}/wmt14

VARIABLES="
Environment variables:
  MODEL=base|big        the paper's base (default) or big model; each has a folder of its own in the run
  WMT14_MIRROR=PLACE    a folder or an address (http://...) to take the archives from instead of www.statmt.org
  T2017_CACHE=FOLDER    where downloaded archives are kept; default $ROOT/runs/cache
  WORKERS=N             processes that clean, tokenise and cut; default all cores
  SCALE=mini            a tiny model and vocabulary and a few updates, to try the steps (recipes/wmt14_common/mirror.py)
  BATCH_TOKENS=N        real tokens a side and update, met by choosing max-tokens for the lengths of the data (t2017 batch);
                        default 25,000, the paper's; with SCALE=mini the batch is fixed unless this is given
  CHECKPOINT_MINUTES=M SECONDS_AN_UPDATE=S  a checkpoint every M minutes at S seconds an update; default: as in configs/,
                        ten minutes at the paper's 0.4 (base) and 1.0 (big) seconds"

# The tiny sizes of SCALE=mini. Everything else, such as dropout, loss, schedule, batch rule and search, stays the paper's.
# Validating for each of big's twenty checkpoints in as many updates would take longer than training.
MINI=(
    common.log_interval=5 dataset.max_tokens=100 dataset.max_tokens_valid=20000 dataset.num_workers=0
    model.layers=1 model.d_k=16 model.d_v=16 lr_scheduler.warmup_updates=10 optimization.max_update=24
)
MINI_base=(model.d_model=32 model.d_ff=64 model.heads=2 checkpoint.save_interval_updates=3)
MINI_big=(
    model.d_model=64 model.d_ff=128 model.heads=4 checkpoint.save_interval_updates=1 dataset.disable_validation=true
)
MINI_DECODE=(--set dataset.max_tokens=4000 --set task.extra_length=3)
MINI_VOCABULARY=600

# read_options of recipes/common, then what depends on MODEL and SCALE.
read_wmt14_options() {
    local setting scaled=()
    [[ $MODEL == base || $MODEL == big ]] || wrong_call "MODEL=$MODEL: it can be base or big"
    [[ $SCALE == full || $SCALE == mini ]] || wrong_call "SCALE=$SCALE: it can be full or mini"
    [[ $WORKERS =~ ^[1-9][0-9]*$ ]] || wrong_call "WORKERS=$WORKERS: give a number from 1"
    read_options "$@"
    [[ $SCALE == mini ]] || MINI_DECODE=()
    [[ $ARM == t2017 && -z $GENERATED ]] || wrong_call "--stock and --generated are not for this job"
    SETTINGS=$ROOT/configs/${SETTINGS_OF[$MODEL]}
    ARM_RUN=$RUN/$MODEL
    # As many checkpoints are kept as are averaged: 5 for base, 20 for big.
    LAST=$(sed -n 's/^  keep_interval_updates: //p' "$SETTINGS")
    scaled=("task.target_lang=$TARGET_LANG")
    if [[ $SCALE == mini ]]; then
        VOCABULARY=$MINI_VOCABULARY
        scaled+=("${MINI[@]}")
        if [[ $MODEL == base ]]; then scaled+=("${MINI_base[@]}"); else scaled+=("${MINI_big[@]}"); fi
    fi
    if [[ -n ${CHECKPOINT_MINUTES:-} ]]; then
        scaled+=("checkpoint.save_interval_updates=$(updates_in_minutes)")
    fi
    set -- "${OVERRIDES[@]}"
    OVERRIDES=()
    for setting in "${scaled[@]}"; do
        OVERRIDES+=(--set "$setting")
    done
    OVERRIDES+=("$@")
}

updates_in_minutes() {
    local paper=0.4
    [[ $MODEL == base ]] || paper=1.0
    awk -v m="$CHECKPOINT_MINUTES" -v s="${SECONDS_AN_UPDATE:-$paper}" \
        'BEGIN { n = (s > 0) ? int(m * 60 / s + 0.5) : 0; print (n < 1) ? 1 : n }'
}

# The paper's 25,000 real tokens a side and update, or BATCH_TOKENS; the miniature's batch is fixed unless that is given.
fit_the_batch_of_wmt14() {
    local tokens=${BATCH_TOKENS:-}
    [[ -n $tokens || $SCALE == mini ]] || tokens=25000
    [[ -n $tokens ]] || return 0
    [[ $tokens =~ ^[1-9][0-9]*$ ]] || wrong_call "BATCH_TOKENS=$tokens: give a number from 1"
    fit_the_batch "$tokens"
}
