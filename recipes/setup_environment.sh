#!/usr/bin/env bash
# Makes the environment of this checkout, .venv, once; afterwards it only looks and says "ready".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
    cat <<'TEXT'
usage: recipes/setup_environment.sh [--dry-run] [--help]

Makes .venv in the checkout with PyTorch, fairseq-fixed, the plugin (editable) and the tools of the test suite. Made once
and reused; pip is asked again when requirements/, setup.py or the checkout's place change. Details: .venv/setup.log.

  --dry-run   say what would be done, and do nothing

environment variables:
  PYTHON             the Python (3.11 to 3.13) to make .venv from; default python3
  T2017_PYTHON       the Python of an environment whose PyTorch is to be used; it is read, never changed
  T2017_TORCH_INDEX  a further package index to look for PyTorch in, such as one with CPU builds

A PyTorch that is there is kept: in .venv, in the active environment, or in that of PYTHON or T2017_PYTHON.
TEXT
}

dry_run="" log=.venv/setup.log stamp=.venv/t2017_stamp running=.venv/t2017_running python=.venv/bin/python
case "$#:${1:-}" in
    0:) ;;
    1:--dry-run) dry_run=yes ;;
    1:-h | 1:--help) usage && exit 0 ;;
    *) echo "setup: at most --dry-run or --help; see --help" >&2 && exit 2 ;;
esac
# These would send packages to another place than .venv.
unset PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIREMENT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore

say() { printf '[setup %3d s] %s\n' "$SECONDS" "$*"; }
fail() { echo "setup: $*" >&2 && exit 1; }

# Prints a Python's version, that of its PyTorch (-, or broken), and the folder of packages of a virtual environment, or -.
inspect() {
    "$1" - 2>/dev/null <<'PYTHON'
import importlib.util, sys, sysconfig
torch = "-"
if importlib.util.find_spec("torch") is not None:
    try:
        import torch as module
        from importlib.metadata import version
        torch = version("torch")  # what pip compares; the module may add +cu130
    except Exception:
        torch = "broken"
inside = sys.prefix != sys.base_prefix
print("%d.%d.%d" % sys.version_info[:3], torch, sysconfig.get_path("purelib") if inside else "-")
PYTHON
}

# step TEXT PIP-ARGUMENTS...: one call of pip. One that was cut off installs all of its packages anew: a package that is
# half-written looks installed.
step() {
    local text=$1 options=("${keep[@]}")
    shift
    say "$text"
    [[ -z $dry_run ]] || return 0
    [[ $interrupted != "$text" ]] || options+=(--ignore-installed)
    echo "$text" >"$running"
    "$python" -m pip install --no-build-isolation --progress-bar off "${options[@]}" "$@" >>"$log" 2>&1 || return 1
    rm "$running"
}

must() {
    step "$@" && return
    tail -n 20 "$log" >&2
    fail "failed at: $1; look at the lines above, then run the same command again (all details: $PWD/$log)"
}

interrupted=$(cat "$running" 2>/dev/null || true) # the step that an earlier set-up was cut off in
has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU; }

named=${T2017_PYTHON:-${PYTHON:-}} base="" seen=""
for candidate in ${named:-python3 python3.13 python3.12 python3.11 python}; do
    read -r version torch packages < <(inspect "$candidate") || continue
    case $version in
        3.11.* | 3.12.* | 3.13.*) base=$candidate && break ;;
        *) seen+="${seen:+, }$candidate is $version" ;;
    esac
done
[[ -n $base ]] || fail "Python 3.11, 3.12 or 3.13 is needed (${seen:-${named:-python3} does not run}); \
name one: make venv PYTHON=/path/to/python3.12"

key=$(cat requirements/*.txt setup.py pyproject.toml t2017_plugin/version.py recipes/setup_environment.sh <(pwd -P) | sha256sum)
ready() { [[ -x $python && -f $stamp && $(head -n 1 "$stamp") == "$key" ]] && say "environment is ready: $(tail -n 1 "$stamp")"; }
if ready; then exit 0; fi
if [[ -z $dry_run ]]; then
    exec 9>.venv.lock
    flock --nonblock 9 || { say "another set-up is at work in this checkout; waiting for it" && flock 9; }
    if ready; then exit 0; fi
fi

options=() link=t2017_base_environment.pth
[[ $torch != broken ]] || fail "$base has a PyTorch that cannot be imported; mend or remove it"
if [[ -e .venv ]] && ! inspect "$python" >/dev/null; then
    fail ".venv is there but $python does not run (was the checkout moved?); remove .venv and try again"
elif [[ ! -e .venv ]]; then
    say ".venv from $base (Python $version, $([[ $torch == - ]] && echo "no PyTorch there" || echo "PyTorch $torch there is used and not touched"))"
    if [[ -z $dry_run ]]; then
        [[ $torch == - || $packages != - ]] || options=(--system-site-packages)
        "$base" -m venv "${options[@]}" .venv ||
            fail "$base -m venv failed (on Debian and Ubuntu: apt install python3-venv)"
        # An environment made from another one does not see the packages of that one, so it is told where they are.
        [[ $torch == - || $packages == - ]] ||
            echo "import site; site.addsitedir('$packages')" >"$(echo .venv/lib/python3*/site-packages)/$link"
    fi
fi

# What is there of another environment is not enough: its programs are not in .venv/bin.
keep=()
[[ -n $dry_run ]] || read -r version torch packages < <(inspect "$python")
if grep -qs "^include-system-site-packages = true" .venv/pyvenv.cfg || compgen -G ".venv/lib/python3*/site-packages/$link" >/dev/null; then
    keep=(--force-reinstall)
fi
text="PyTorch: 200 MB for a CPU build, several GB for a CUDA build"
if [[ $torch == - || $interrupted == "$text" ]]; then
    options=(--constraint requirements/torch.txt ${T2017_TORCH_INDEX:+--extra-index-url "$T2017_TORCH_INDEX"})
    pin=$(grep '^torch==' requirements/torch.txt)
    if has_gpu || ! step "$text" "${options[@]}" "$pin+cpu"; then
        must "$text" "${options[@]}" "$pin"
    fi
    [[ -n $dry_run ]] || read -r version torch packages < <(inspect "$python")
else
    say "PyTorch $torch is there and stays"
fi
[[ $torch != broken ]] || fail ".venv has a PyTorch that cannot be imported; remove .venv and try again"
[[ -n $dry_run ]] || { echo "torch==$torch" >.venv/t2017_constraints.txt && keep+=(--constraint .venv/t2017_constraints.txt); }
must "tools that compile: setuptools, wheel, Cython, numpy" -r requirements/build.txt
must "what fairseq needs: hydra-core, omegaconf, scikit-learn and others" -r requirements/fairseq.txt
command -v "${CXX:-c++}" >/dev/null ||
    fail "a C++ compiler is needed to install fairseq, and ${CXX:-c++} is not there (on Debian and Ubuntu: apt install g++ python3-dev)"
# Without its CUDA kernels, which only other models use, and without debugging symbols, which double the time.
export CFLAGS="${CFLAGS:-} -g0"
unset CUDA_HOME
compiled="import torch, fairseq.libbase, fairseq.libnat, fairseq.libbleu, fairseq.data.data_utils_fast"
fairseq="$(grep '^fairseq-fixed==' requirements/fairseq-fixed.txt): compiles C++ and Cython, 2 to 5 minutes the first time"
works() { "$python" -c "$compiled" 2>/dev/null; }
if [[ ! -x .venv/bin/fairseq-train || $interrupted == "$fairseq" ]]; then
    must "$fairseq" --no-deps -r requirements/fairseq-fixed.txt
fi
# pip may have kept a wheel that was compiled against another PyTorch.
if [[ -z $dry_run ]] && ! works; then
    must "$fairseq, again for this PyTorch" --no-deps --no-cache-dir --force-reinstall -r requirements/fairseq-fixed.txt
fi
must "what the plugin needs: sacremoses, subword-nmt, sacrebleu" -r requirements/runtime.txt
must "tools of the test suite: pytest, hypothesis, ruff, mypy, shellcheck" -r requirements/dev.txt
must "the plugin itself, editable" --no-deps --editable .
[[ -z $dry_run ]] || { say "nothing was done (--dry-run)" && exit 0; }
printf '%s\n' "$key" "$(.venv/bin/t2017 --version)" >"$stamp.new"
mv "$stamp.new" "$stamp"
say "environment is ready: $(tail -n 1 "$stamp")"
