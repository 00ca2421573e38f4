#!/usr/bin/env bash
# Everything that wants a GPU, in at most eight minutes: parity with the CPU, training in fp16 and bf16, overflow of the
# loss scale, decoding, speed and memory beside stock. With --device cpu the same paths at small size, with more patience.
#   benchmarks/gpu_check.sh --wheelhouse benchmarks/wheelhouse      (made by benchmarks/wheelhouse.sh)
#   benchmarks/gpu_check.sh --device cpu
# shellcheck disable=SC2329  # functions are run by check, through bash -c
set -uo pipefail
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
device=cuda wheelhouse="" out=${OUT:-$root/runs/gpu_check} minutes=8

usage() { sed -n '2,5s/^# \{0,1\}//p' "$0"; }
while (($#)); do
    case $1 in
        --help | -h) usage && exit 0 ;;
        --device | --wheelhouse | --out | --minutes)
            (($# > 1)) || { echo "$0: $1 needs a value; see --help" >&2 && exit 2; }
            case $1 in
                --device) device=$2 ;;
                --wheelhouse) wheelhouse=$2 ;;
                --out) out=$2 ;;
                --minutes) minutes=$2 ;;
            esac
            shift
            ;;
        *) echo "$0: unknown option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done
# Limits are for a GPU; a CPU that others use as well needs longer for the same paths.
patience=1
[[ $device == cuda ]] || patience=5 minutes=$((minutes * 5))
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deadline=$((SECONDS + minutes * 60))
results=$out/results.txt
: >"$results"
export PYTHONPATH=$root PYTHONWARNINGS=ignore TOKENIZERS_PARALLELISM=false
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}

# check NAME LIMIT COMMAND...: runs it, at most so many seconds and not beyond the end, and notes how it went.
failures=0
check() {
    local name=$1 limit=$2 began=$SECONDS status=0 left=$((deadline - SECONDS))
    shift 2
    if ((left < 5)); then
        echo "LEFT OUT $name (no time left)" | tee -a "$results"
        failures=$((failures + 1))
        return 1
    fi
    limit=$((limit * patience))
    ((limit <= left)) || limit=$left
    timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1 || status=$?
    if ((status)); then
        failures=$((failures + 1))
        echo "FAILED   $name (status $status, $((SECONDS - began)) s)" | tee -a "$results"
        tail -n 3 "$out/$name.log" | cut -c1-300
        return 1
    fi
    echo "ok       $name ($((SECONDS - began)) s)" | tee -a "$results"
}

install_wheels() {
    python3 -m pip install --quiet --no-index --no-deps --target "$work/packages" "$wheelhouse"/*.whl
}
mkdir -p "$work/bin" "$work/packages"
export PYTHONPATH=$root:$work/packages PATH=$work/bin:$work/packages/bin:$PATH
export -f install_wheels
export wheelhouse work
[[ -z $wheelhouse ]] || check install 90 bash -c install_wheels || exit 1
# fairseq imports scikit-learn and scipy for two tasks that are not used here; stand-ins do where they are missing.
python3 - "$work/packages" <<'PYTHON'
import importlib.util, pathlib, sys
wanted = {"sklearn": {"__init__": "metrics = None", "metrics": "f1_score = matthews_corrcoef = None"},
          "scipy": {"__init__": "", "stats": "pearsonr = spearmanr = None"}}
for name, modules in wanted.items():
    if importlib.util.find_spec(name) is None:
        folder = pathlib.Path(sys.argv[1], name)
        folder.mkdir(parents=True)
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text + "\n")
PYTHON
for program in train generate preprocess interactive; do
    printf '#!/bin/sh\nexec python3 -c "from fairseq_cli.%s import cli_main; cli_main()" "$@"\n' $program \
        >"$work/bin/fairseq-$program"
done
printf '#!/bin/sh\nexec python3 -m t2017_plugin "$@"\n' >"$work/bin/t2017"
# Not a link: a virtual environment is found by the place of its own python3.
printf '#!/bin/sh\nexec %q "$@"\n' "$(command -v python3)" >"$work/bin/python"
chmod +x "$work"/bin/*

check versions 60 t2017 --version && head -n 1 "$out/versions.log"
check parity 90 python3 -m benchmarks.gpu_parity --device "$device"

toy() { # FOLDER OPTIONS...: the toy recipe from preparation to score
    local folder=$1
    shift
    bash "$root/recipes/toy_reversal/run.sh" --run "$folder" "$@"
}
train_toy() { # FOLDER OPTIONS...: training only, on the data of the first toy
    local folder=$1
    shift
    mkdir -p "$folder" && cp -r "$work/toy/"{corpus,text,data-bin,steps} "$folder/"
    bash "$root/recipes/toy_reversal/2_train.sh" --run "$folder" "$@"
    tail -n 3 "$folder/t2017/logs/train.log"
}
overflow() { # a loss scale far too high: halved until it fits, or until the floor ends the run in one line
    local flags=(--fp16 --fp16-init-scale 1073741824 --max-update 20 --no-save --log-format simple --log-interval 5)
    flags+=(--task t2017_translation --arch t2017_tiny --criterion t2017_label_smoothing --optimizer t2017_adam)
    flags+=(--lr-scheduler t2017_noam --user-dir "$root/t2017_plugin" --max-tokens 2000 --disable-validation)
    fairseq-train "$work/toy/data-bin" "${flags[@]}" >"$work/overflow.log" 2>&1 || return 1
    grep -c "gradient overflow detected" "$work/overflow.log"
    grep "num_updates=20" "$work/overflow.log" | tail -n 1
    ! fairseq-train "$work/toy/data-bin" "${flags[@]}" --min-loss-scale 536870912 >"$work/floor.log" 2>&1 || return 1
    grep "Minimum loss scale reached.*--noam-scale" "$work/floor.log" | tail -n 1
}
export -f toy train_toy overflow
export root work
half=() small=(--set optimization.max_update=60)
[[ $device == cpu ]] || half=(--set common.fp16=true)
[[ $device == cuda ]] || export CUDA_VISIBLE_DEVICES=""
check train_decode_score 150 bash -c 'toy "$@"' toy "$work/toy" "${half[@]}" &&
    grep -h "BLEU |" "$out/train_decode_score.log" | tee -a "$results"
check train_bf16 60 bash -c 'train_toy "$@"' train "$work/bf16" "${small[@]}" --set common.bf16=true
check train_fp32 60 bash -c 'train_toy "$@"' train "$work/fp32" "${small[@]}"
if [[ $device == cuda ]]; then
    check overflow 60 bash -c overflow
    check speed_base_bf16 60 python3 -m benchmarks.train --size base --device cuda --precision bf16 --rounds 30 \
        --warmup 5 --output "$out/base_bf16.json"
    check speed_base_fp16 60 python3 -m benchmarks.train --size base --device cuda --precision fp16 --rounds 30 \
        --warmup 5 --output "$out/base_fp16.json"
    check speed_decode_fp32 60 python3 -m benchmarks.decode --size base --device cuda --output "$out/decode_fp32.json"
    check speed_decode_fp16 60 python3 -m benchmarks.decode --size base --device cuda --precision fp16 \
        --output "$out/decode_fp16.json"
    check speed_big_bf16 90 python3 -m benchmarks.train --size big --device cuda --precision bf16 --rounds 20 \
        --warmup 5 --output "$out/big_bf16.json"
    check speed_base_compiled 120 python3 -m benchmarks.train --size base --device cuda --precision bf16 --compile \
        --rounds 30 --warmup 8 --output "$out/base_compiled.json"
else
    echo "left out: overflow (fairseq scales the loss on a GPU only; tests/commands/test_precision.py drives it here)"
    check speed_tiny_fp32 90 python3 -m benchmarks.train --size tiny --rounds 2 --output "$out/tiny_fp32.json"
    check speed_tiny_bf16 90 python3 -m benchmarks.train --size tiny --precision bf16 --rounds 2
    check speed_decode_fp32 90 python3 -m benchmarks.decode --size tiny --vocabulary 4000 --rounds 2 \
        --output "$out/decode_fp32.json"
    check speed_decode_bf16 90 python3 -m benchmarks.decode --size tiny --vocabulary 4000 --rounds 2 --precision bf16
fi
grep -h "^|" "$out"/speed_*.log 2>/dev/null
echo "$failures failed; $SECONDS s; logs in $out"
exit $((failures > 0))
