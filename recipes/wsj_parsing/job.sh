# shellcheck shell=bash
# What the scripts of parsing share: their options.
# shellcheck disable=SC2034  # most of what is set here is used by the scripts that source this
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

NO_STOCK=yes TREEBANK="" SCALE="" SILVER="" GOLD_COPIES=1 FORM=t2t FILES=()

JOB_OPTIONS="
  --treebank FOLDER         the Penn Treebank's wsj_NNNN.mrg files, below it anywhere: the LDC's corpus (sections 2-21,
                            22 and 23) or NLTK's sample; without it trees are made up from a small grammar
  --train-files 0001-0159   other files than those of the layout; likewise --valid-files and --test-files, which may
                            be the same
  --scale paper|small       the settings: configs/parsing.yaml (a treebank's default) or configs/parsing_small.yaml
  --silver FILE             trees that a parser made, for training beside the gold ones (semi-supervised)
  --gold-copies N           read the gold trees N times for each time silver ones are read (default 1)
  --form t2t|vinyals        how trees are linearised (default t2t, the authors')"

# Takes one of the options above with its value; fails for any other.
job_option() {
    case $1 in
        --treebank | --scale | --silver | --gold-copies | --form | --train-files | --valid-files | --test-files)
            (($# > 1)) || wrong_call "$1 needs a value" ;;
        --stock) wrong_call "stock fairseq has no task for parsing" ;;
        *) return 1 ;;
    esac
    [[ $1 != --treebank && $1 != --silver ]] || [[ -e $2 ]] || wrong_call "$1 $2: there is no such thing"
    case $1 in
        --treebank) TREEBANK=$(absolute "$2") ;;
        --silver) SILVER=$(absolute "$2") ;;
        --scale) SCALE=$2 ;;
        --gold-copies) GOLD_COPIES=$2 ;;
        --form) FORM=$2 ;;
        *-files) FILES+=("$1" "$2") ;;
    esac
}

absolute() {
    (cd "$(dirname "$1")" && printf '%s/%s' "$PWD" "$(basename "$1")")
}

# Called by read_options: the settings file, the size of the source vocabulary, and what was asked for.
job_settings() {
    SCALE=${SCALE:-$([[ -n $TREEBANK ]] && echo paper || echo small)}
    case $SCALE in
        paper) SETTINGS=$ROOT/configs/parsing.yaml MERGES=$([[ -n $SILVER ]] && echo 32000 || echo 16000) ;;
        small) SETTINGS=$ROOT/configs/parsing_small.yaml MERGES=2000 ;;
        *) wrong_call "--scale $SCALE: it can be paper or small" ;;
    esac
    [[ $GOLD_COPIES =~ ^[1-9][0-9]*$ ]] || wrong_call "--gold-copies $GOLD_COPIES: give a number from 1"
    [[ $FORM == t2t || $FORM == vinyals ]] || wrong_call "--form $FORM: it can be t2t or vinyals"
    [[ -z $SILVER ]] || OVERRIDES+=(--set "task.upsample_primary=$GOLD_COPIES")
}

# Before training: the paper's settings are for 16-bit floats, which PyTorch has on GPUs only.
paper_size_needs_a_gpu() {
    [[ $SCALE == paper && " ${OVERRIDES[*]} " != *" common.fp16=false "* ]] || return 0
    python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
        fail "the paper's size needs a GPU; without one take --scale small, or --set common.fp16=false and much time"
}
