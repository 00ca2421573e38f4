# shellcheck shell=bash
# PyTorch and fairseq in the environment: kept when there, installed when not. Sourced by recipes/setup_environment.sh
# after environment_steps.sh, whose functions and variables it uses.
: "${venv:?}" "${state:?}" "${log:?}" "${python:?}" "${base?}" "${interrupted?}"

readonly fairseq_pin=requirements/fairseq-fixed.txt

keep_or_install_torch() {
    local facts=() torch=${base_torch:--}
    if [[ -x $python ]]; then
        mapfile -t facts < <(inspect_python "$python")
        torch=${facts[2]}
        [[ ${facts[4]} == - || $interrupted == torch ]] ||
            fail "$venv has a PyTorch that cannot be imported (${facts[4]}); remove $venv and try again"
    fi
    if [[ $torch == - || $interrupted == torch ]]; then
        run_step torch "$(hash_of requirements/torch.txt)" \
            "PyTorch: 200 MB for a CPU build, several GB for a CUDA build" install_torch
        [[ -z $dry_run ]] || return 0
        mapfile -t facts < <(inspect_python "$python")
        torch=${facts[2]}
        [[ $torch != - ]] || fail "PyTorch was installed but cannot be imported (${facts[4]}); details: $log"
    else
        [[ -f $state/constraints.txt ]] || say "PyTorch $torch is there and stays"
    fi
    [[ -n $dry_run ]] || echo "torch==$torch" >"$state/constraints.txt"
}

# PyTorch of requirements/torch.txt: a CPU build where there is no GPU and an index has one, else its default build.
install_torch() {
    local pin options=(--constraint requirements/torch.txt)
    pin=$(grep '^torch==' requirements/torch.txt)
    rm -f "$state/constraints.txt"
    [[ -z ${T2017_TORCH_INDEX:-} ]] || options+=(--extra-index-url "$T2017_TORCH_INDEX")
    if ! { command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU; }; then
        pip_install "${options[@]}" "$pin+cpu" && return 0
        say "no CPU build of $pin for this Python in the package index, so its default build (T2017_TORCH_INDEX can name another index)"
    fi
    pip_install "${options[@]}" "$pin"
}

keep_or_install_fairseq() {
    local pin found compiler
    pin=$(grep '^fairseq-fixed==' "$fairseq_pin")
    if [[ -x $venv/bin/fairseq-train && ! -f $state/done/fairseq && $interrupted != fairseq ]]; then
        found=$("$python" -m pip freeze 2>/dev/null | grep -iE '^(-e .*)?fairseq' | head -n 1)
        [[ $found == "$pin" ]] || say "warning: keeping ${found:-a fairseq of unknown version}; only $pin is tested"
        return 0
    fi
    compiler=${CXX:-c++}
    if [[ ! -f $state/done/fairseq ]]; then
        command -v "${compiler%% *}" >/dev/null ||
            fail "a C++ compiler is needed to install fairseq, and ${compiler%% *} is not there (on Debian and Ubuntu: apt install g++)"
        [[ -f $("$base" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h ]] ||
            fail "the C headers of $base are needed to install fairseq (on Debian and Ubuntu: apt install python3-dev)"
    fi
    run_step fairseq "$pin $(cat "$state/constraints.txt" 2>/dev/null)" \
        "$pin: compiles C++ and Cython, which takes 2 to 5 minutes the first time" install_fairseq
}

# Without its CUDA kernels, which only other models use, and without debugging symbols, which double the time.
install_fairseq() {
    export CFLAGS="${CFLAGS:-} -g0"
    unset CUDA_HOME
    pip_install --no-deps -r "$fairseq_pin" || return 1
    # pip may have kept a wheel that was compiled against another PyTorch.
    if ! compiled_parts_work; then
        say "the compiled parts belong to another PyTorch: compiling them again"
        pip_install --no-deps --no-cache-dir --force-reinstall -r "$fairseq_pin" || return 1
        compiled_parts_work
    fi
}

compiled_parts_work() {
    "$python" -c 'import torch, fairseq.libbase, fairseq.libnat, fairseq.libbleu
import fairseq.data.data_utils_fast, fairseq.data.token_block_utils_fast'
}

# One line about the finished environment; fails, with the reason, when it does not work or PyTorch was changed.
describe_environment() {
    "$python" - "$(<"$state/constraints.txt")" 2>&1 <<'PYTHON' | tail -n 1
import sys
from importlib.metadata import version
import fairseq, torch
if sys.argv[1] not in (f"torch=={version('torch')}", f"torch=={torch.__version__}"):
    sys.exit(f"PyTorch was {sys.argv[1]} and is now {version('torch')}")
python, plugin = sys.version.split()[0], version("t2017-plugin")
print(f"Python {python}, torch {torch.__version__}, fairseq {fairseq.__version__}, t2017-plugin {plugin}")
PYTHON
}
