#!/usr/bin/env bash
# Makes the environment of this checkout, .venv, once; afterwards it only looks and says "ready".
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: recipes/setup_environment.sh [--dry-run] [--help]

Makes .venv in the checkout with PyTorch, fairseq-fixed, the plugin (editable) and the tools of the test suite.
Made once and reused; made again in part when requirements/, setup.py or the checkout's place change. An interrupted
set-up goes on at the step it was in. Two at a time are fine: the second waits. Details go to .venv/setup.log.

  --dry-run   say what would be done, and do nothing

environment variables:
  PYTHON             the Python (3.11 to 3.13) to make .venv from; default python3
  T2017_PYTHON       the Python of an environment whose PyTorch is to be used; it is read, never changed
  T2017_TORCH_INDEX  a further package index to look for PyTorch in, such as one with CPU builds

A PyTorch that is there is kept: in .venv, in the active environment, or in that of PYTHON or T2017_PYTHON.
TEXT
}

dry_run=""
case "${1:-}" in
    "") ;;
    --dry-run) dry_run=yes ;;
    -h | --help) usage && exit 0 ;;
    *) echo "setup: unknown option '$1'; see --help" >&2 && exit 2 ;;
esac
if (($# > 1)); then
    echo "setup: at most one option; see --help" >&2 && exit 2
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
venv=.venv state=.venv/.t2017_setup log=.venv/setup.log python=.venv/bin/python
interrupted=""  # the step that an earlier set-up was cut off in
# shellcheck source=common/environment_steps.sh
source recipes/common/environment_steps.sh
# shellcheck source=common/environment_libraries.sh
source recipes/common/environment_libraries.sh

# These would send packages to another place than .venv.
unset PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIREMENT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
exec 3>&1

# What the environment is made from; a change in any of it makes the stamp stale.
stamp_key() {
    cat requirements/*.txt setup.py pyproject.toml t2017_plugin/version.py recipes/setup_environment.sh \
        recipes/common/environment_{steps,libraries}.sh "$venv/pyvenv.cfg" <(echo "$root") 2>/dev/null | sha256sum | cut -c1-64
}

leave_if_ready() {
    local key text
    if [[ -x $python && -f $state/stamp ]] && read -r key text <"$state/stamp" && [[ $key == "$(stamp_key)" ]]; then
        say "environment is ready: $text"
        [[ -z $named || ! -f $state/made_from || $(command -v "$named") == $(<"$state/made_from") ]] ||
            say "note: it is not made from $named; remove $venv to have it made again"
        exit 0
    fi
}

take_the_lock() {
    exec 9>"$root/.venv.lock"
    # The lock belongs to the open file, which this shell keeps: it lasts until the shell and its children end.
    if ! "$base" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
        say "another set-up is at work in this checkout; waiting for it"
        "$base" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' || fail "cannot lock $root/.venv.lock"
    fi
}

leave_if_ready
find_base_python
if [[ -z $dry_run ]]; then
    take_the_lock
    leave_if_ready
fi
trap 'echo >&2; echo "setup: interrupted; run it again to go on from here" >&2; exit 130' INT
trap 'echo "setup: told to stop; run it again to go on from here" >&2; exit 143' TERM

if [[ -f $state/running ]]; then
    interrupted=$(<"$state/running")
fi
make_venv
keep_or_install_torch
run_step build-tools "$(hash_of requirements/build.txt)" \
    "tools that compile: setuptools, wheel, Cython, numpy" pip_install -r requirements/build.txt
run_step fairseq-needs "$(hash_of requirements/fairseq.txt)" \
    "what fairseq needs: hydra-core, omegaconf, scikit-learn and others" pip_install -r requirements/fairseq.txt
keep_or_install_fairseq
run_step runtime "$(hash_of requirements/runtime.txt)" \
    "what the plugin needs: sacremoses, subword-nmt, sacrebleu" pip_install -r requirements/runtime.txt
run_step dev "$(hash_of requirements/dev.txt)" \
    "tools of the test suite: pytest, hypothesis, ruff, mypy, shellcheck" pip_install -r requirements/dev.txt
run_step plugin "$(hash_of setup.py pyproject.toml t2017_plugin/version.py)" \
    "the plugin itself, editable" pip_install --no-deps --editable .
if [[ -n $dry_run ]]; then
    say "nothing was done (--dry-run)"
    exit 0
fi
text=$(describe_environment) || fail "the environment does not work: $text"
echo "$(stamp_key) $text" >"$state/stamp.new"
mv "$state/stamp.new" "$state/stamp"
say "environment is ready: $text"
