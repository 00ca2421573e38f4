# shellcheck shell=bash
# What the scripts of both WMT14 recipes share: the variables that steer them, and what they mean.
# shellcheck disable=SC2034  # much of what is set here is used by the scripts that source this
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

MODEL=${MODEL:-base} SCALE=${SCALE:-full} WORKERS=${WORKERS:-$(nproc)} WMT14_MIRROR=${WMT14_MIRROR:-}
CACHE=${T2017_CACHE:-$ROOT/runs/cache}/wmt14
NO_STOCK=yes DRY_RUN="" MINI_VOCABULARY="" MINI_DECODE=()

JOB_OPTIONS="
  --dry-run                 (1_prepare, run) list addresses, sizes and checksums, download nothing

Environment variables:
  MODEL=base|big        the paper's base (default) or big model; each has a folder of its own in the run
  WMT14_MIRROR=PLACE    a folder or an address (http://...) to take the archives from instead of www.statmt.org
  T2017_CACHE=FOLDER    where downloaded archives are kept; default $ROOT/runs/cache
  WORKERS=N             processes that clean, tokenise and cut; default all cores
  SCALE=mini            a tiny model and vocabulary and a few updates, to try the steps (recipes/wmt14_common/mirror.py)
  BATCH_TOKENS=N        real tokens a side and update, met by choosing max-tokens for the lengths of the data (t2017 batch);
                        default 25,000, the paper's; with SCALE=mini the batch is fixed unless this is given
  CHECKPOINT_MINUTES=M SECONDS_AN_UPDATE=S  a checkpoint every M minutes at S seconds per update; default: as in configs/,
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

# read_wmt14_options LANGUAGE "$@": read_options, then what depends on MODEL, SCALE and the target language.
read_wmt14_options() {
    local setting scaled=() options=()
    for setting in "${@:2}"; do
        if [[ $setting == --dry-run ]]; then DRY_RUN=yes; else options+=("$setting"); fi
    done
    [[ $MODEL == base || $MODEL == big ]] || wrong_call "MODEL=$MODEL: it can be base or big"
    [[ $SCALE == full || $SCALE == mini ]] || wrong_call "SCALE=$SCALE: it can be full or mini"
    [[ $WORKERS =~ ^[1-9][0-9]*$ ]] || wrong_call "WORKERS=$WORKERS: give a number from 1"
    BATCH_TOKENS=${BATCH_TOKENS:-$([[ $SCALE == mini ]] || echo 25000)}
    [[ $BATCH_TOKENS =~ ^([1-9][0-9]*)?$ ]] || wrong_call "BATCH_TOKENS=$BATCH_TOKENS: give a number from 1"
    read_options "${options[@]}"
    [[ $ARM == t2017 && -z $GENERATED ]] || wrong_call "--stock and --generated are not for this job"
    SETTINGS=$ROOT/configs/$MODEL.yaml
    [[ $MODEL$1 != bigfr ]] || SETTINGS=$ROOT/configs/big_enfr.yaml
    ARM_RUN=$RUN/$MODEL
    if [[ $SCALE == mini ]]; then
        MINI_VOCABULARY=600 MINI_DECODE=(--set dataset.max_tokens=4000 --set task.extra_length=3)
        scaled+=("${MINI[@]}")
        if [[ $MODEL == base ]]; then scaled+=("${MINI_base[@]}"); else scaled+=("${MINI_big[@]}"); fi
    fi
    [[ -z ${CHECKPOINT_MINUTES:-} ]] || scaled+=("checkpoint.save_interval_updates=$(updates_in_minutes)")
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
