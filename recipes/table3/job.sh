# shellcheck shell=bash
# What the scripts of Table 3 share: their options, and the settings file of a row.
# shellcheck disable=SC2034  # most of what is set here is used by the scripts that source this
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

DEFAULT_RUN="$ROOT/runs/table3/demo, or the data's name, with _paper for --scale paper" NO_STOCK=yes
ROW=base SCALE=small SEED=1 UPDATES="" DATA_BIN="" RUN_GIVEN=""

JOB_OPTIONS="
  --row NAME                (2 to 5) base (default), a_h1, a_h4, a_h16, a_h32, b_dk16, b_dk32, c_n2, c_n4, c_n8, c_d256,
                            c_d1024, c_ff1024, c_ff4096, d_drop0, d_drop2, d_ls0, d_ls2, e_learned, big
  --data-bin FOLDER         a binarised corpus with its text_settings.json, instead of the demo's; --run is then by default
                            $ROOT/runs/$JOB/NAME OF THE FOLDER IT IS IN
  --scale small|paper       widths a quarter of the paper's and half its layers (default; a CPU does it), or the paper's
                            own sizes and lengths, which need GPUs
  --updates N               another length than the settings' (small: 2000; paper: 100000, big 300000), for all rows
  --seed N                  default 1"

job_option() {
    case $1 in
        --row | --data-bin | --scale | --updates | --seed) (($# > 1)) || wrong_call "$1 needs a value" ;;
        --stock) wrong_call "Table 3 is the plugin's alone; recipes/compare_stock is for stock" ;;
        *) return 1 ;;
    esac
    case $1=$2 in
        --row=*[!a-z0-9_]* | --row=) wrong_call "--row $2: give the name of a row" ;;
        --seed=*[!0-9]* | --updates=*[!0-9]* | --seed=0* | --updates=0*) wrong_call "$1 $2: give a number from 1" ;;
        --row=*) ROW=$2 ;;
        --seed=?*) SEED=$2 ;;
        --updates=?*) UPDATES=$2 ;;
        --scale=small | --scale=paper) SCALE=$2 ;;
        --scale=*) wrong_call "--scale $2: it can be small or paper" ;;
        --data-bin=*)
            [[ -d $2 ]] || wrong_call "--data-bin $2: there is no such folder"
            DATA_BIN=$(cd "$2" && pwd)
            ;;
        *) wrong_call "$1 needs a value" ;;
    esac
}

# Sets what read_options sets, and ROW, SCALE, SEED, UPDATES and DATA_BIN; ARM_RUN is the row's folder.
read_table3_options() {
    local argument before="" name=demo
    for argument in "$@"; do
        [[ $argument != --run ]] || RUN_GIVEN=yes
        [[ $before != --data-bin ]] || name=$(name_of_data "$argument")
        [[ $before != --scale || $argument != paper ]] || name+=_paper
        before=$argument
    done
    if [[ -n $RUN_GIVEN ]]; then
        read_options "$@"
    else
        read_options --run "$ROOT/runs/$JOB/$name" "$@"
    fi
}

name_of_data() {
    basename "$(cd "$1/.." 2>/dev/null && pwd || echo own)"
}

# Called by read_options.
job_settings() {
    ARM=$ROW ARM_RUN=$RUN/rows/$ROW
    SETTINGS=$ARM_RUN/row.yaml
}

# What 1_prepare.sh found out about the data, and the row's settings file: 2_train.sh has it written, --set included; the
# steps after it only check that it is what was asked for.
read_the_data_and_the_row() {
    local facts asked
    [[ -f $RUN/data.json ]] || fail "$RUN/data.json is not there; run 1_prepare.sh first"
    mapfile -t facts < <(python -c 'import json, sys
facts = json.load(open(sys.argv[1], encoding="utf-8"))
print(facts["source_lang"], facts["target_lang"], facts["data_bin"], *facts["text_flags"], sep="\n")' "$RUN/data.json")
    SOURCE_LANG=${facts[0]} TARGET_LANG=${facts[1]}
    [[ -z $DATA_BIN || $DATA_BIN -ef ${facts[2]} ]] ||
        fail "$RUN was prepared for the data in ${facts[2]}; take another --run for $DATA_BIN"
    # What makes raw text of the model's units; the codes come last.
    TEXT_FLAGS=("${facts[@]:3}")
    [[ " ${TEXT_FLAGS[*]} " != *" --bpe-codes "* ]] || TEXT_FLAGS[-1]=$RUN/data-bin/${TEXT_FLAGS[-1]}
    OVERRIDES=(--set "task.source_lang=$SOURCE_LANG" --set "task.target_lang=$TARGET_LANG" "${OVERRIDES[@]}")
    asked=(--row "$ROW" --scale "$SCALE" --seed "$SEED" ${UPDATES:+--updates "$UPDATES"} "${OVERRIDES[@]}")
    read_data_files
    if [[ $1 == write ]]; then
        python -m recipes.table3.rows write "${asked[@]}" --output "$SETTINGS" || exit
    else
        [[ -f $ARM_RUN/steps/train.json ]] || fail "row $ROW is not trained; run 2_train.sh --row $ROW first"
        python -m recipes.table3.rows check "${asked[@]}" --file "$SETTINGS" || exit
    fi
}

# Sets DATA to the files of the data-bin that training and validation read: one of another origin may hold others.
read_data_files() {
    mapfile -t DATA < <(python -c 'import json, sys
print(*(f"data-bin/{name}" for name in json.load(open(sys.argv[1], encoding="utf-8"))["files"]), sep="\n")' "$RUN/data.json")
}
