# shellcheck shell=bash
# The steps of recipes/setup_environment.sh, which sources this file and sets the variables used here:
# root venv state log python (paths), dry_run (empty or yes), interrupted (the step an earlier set-up was cut off in).
: "${root:?}" "${venv:?}" "${state:?}" "${log:?}" "${python:?}"

readonly link_to_base=t2017_base_environment.pth
named=""         # the interpreter that the user named, if any
base=""          # the interpreter that .venv is made from
base_version=""  # such as 3.11.7
base_torch=""    # its PyTorch, or empty
base_is_venv=""  # yes when it is itself a virtual environment

if [[ -n ${T2017_PYTHON:-} ]]; then
    named=$T2017_PYTHON
elif [[ ${PYTHON:-python3} != python3 ]]; then
    named=$PYTHON
fi

say() {
    printf '[setup %3d s] %s\n' "$SECONDS" "$*" >&3
}

fail() {
    echo "setup: $*" >&2
    exit 1
}

hash_of() {
    cat "$@" | sha256sum | cut -c1-64
}

# Prints: version, executable, PyTorch or -, yes or no for "is a virtual environment", error of importing PyTorch or -.
inspect_python() {
    "$1" - 2>/dev/null <<'PYTHON'
import sys
print("%d.%d.%d" % sys.version_info[:3])
print(sys.executable)
torch, error = "-", "-"
if sys.version_info >= (3, 11):
    import importlib.util
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        try:
            import torch as module
            from importlib.metadata import PackageNotFoundError, version
            try:
                torch = version("torch")  # what pip compares; the module may add +cu130
            except PackageNotFoundError:
                torch = str(module.__version__)
        except Exception as exception:
            error = " ".join("{}: {}".format(type(exception).__name__, exception).split())[:300]
print(torch)
print("yes" if sys.prefix != getattr(sys, "base_prefix", sys.prefix) else "no")
print(error)
PYTHON
}

# Choose the interpreter: a named one or nothing else; otherwise the first of the usual names that fits.
find_base_python() {
    local candidates=(python3 python3.13 python3.12 python3.11 python) candidate seen="" facts=()
    [[ -z $named ]] || candidates=("$named")
    for candidate in "${candidates[@]}"; do
        command -v "$candidate" >/dev/null || continue
        mapfile -t facts < <(inspect_python "$candidate")
        ((${#facts[@]} == 5)) || continue
        case ${facts[0]} in
            3.11.* | 3.12.* | 3.13.*)
                base=${facts[1]} base_version=${facts[0]} base_torch=${facts[2]#-} base_is_venv=${facts[3]#no}
                [[ ${facts[4]} == - ]] || fail "$base has a PyTorch that cannot be imported (${facts[4]}); mend or remove it"
                return
                ;;
        esac
        seen+="${seen:+, }$candidate is ${facts[0]}"
    done
    fail "Python 3.11, 3.12 or 3.13 is needed (${seen:-${named:-python3} does not run}); name one: make venv PYTHON=/path/to/python3.12"
}

# Make .venv, or take the one that is there; one that this script made and that is broken or was moved is made again.
make_venv() {
    local ours="" facts=()
    [[ -f $state/location ]] && ours=yes
    if [[ -e $venv ]]; then
        mapfile -t facts < <(inspect_python "$python")
        if [[ -n $ours && (-f $state/making || ${#facts[@]} -ne 5 || $(<"$state/location") != "$root") ]]; then
            say "$venv is unfinished, broken or was moved here: making it again"
            if [[ -n $dry_run ]]; then
                state=$venv/gone python=$venv/gone  # what is there would not count
            else
                rm -rf "$venv"
            fi
            interrupted=""
        elif ((${#facts[@]} != 5)); then
            fail "$venv is there but $python does not run; remove $venv and try again"
        else
            case ${facts[0]} in
                3.11.* | 3.12.* | 3.13.*) ;;
                *) fail "$venv is Python ${facts[0]}, and 3.11, 3.12 or 3.13 is needed; remove $venv and try again" ;;
            esac
            "$python" -m pip --version >/dev/null 2>&1 || [[ -n $dry_run ]] || "$python" -m ensurepip >>"$log" 2>&1 ||
                fail "$venv has no pip and ensurepip does not work; remove $venv and try again"
            mkdir_state
            return
        fi
    fi
    local options=() what="no PyTorch there"
    if [[ -n $base_torch ]]; then
        what="PyTorch $base_torch there is used and not touched"
        [[ -n $base_is_venv ]] || options=(--system-site-packages)
    fi
    say "$venv from $base (Python $base_version, $what)"
    [[ -z $dry_run ]] || return 0
    mkdir_state
    echo "$root" >"$state/location"
    command -v "${named:-$base}" >"$state/made_from"
    : >"$state/making"
    "$base" -m venv "${options[@]}" "$venv" >>"$log" 2>&1 ||
        fail "$base -m venv failed (on Debian and Ubuntu: apt install python3-venv); details: $log"
    [[ -z $base_torch || -z $base_is_venv ]] || see_packages_of_base
    rm "$state/making"
}

mkdir_state() {
    [[ -n $dry_run ]] || mkdir -p "$state/done"
}

# A virtual environment made from another one does not see the packages of that one, so .venv is told where they are.
see_packages_of_base() {
    echo "import site; site.addsitedir('$(site_packages "$base")')" >"$(site_packages)/$link_to_base"
}

site_packages() {
    "${1:-$python}" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

# run_step NAME KEY TEXT COMMAND...: run COMMAND unless NAME was finished with the same KEY.
run_step() {
    local name=$1 key=$2 text=$3
    shift 3
    if [[ -f $state/done/$name && $(<"$state/done/$name") == "$key" && $interrupted != "$name" ]]; then
        return 0
    fi
    say "$text"
    [[ -z $dry_run ]] || return 0
    rm -f "$state/stamp" "$state/done/$name"
    echo "$name" >"$state/running"
    printf '\n=== %s: %s\n' "$(date '+%F %T')" "$text" >>"$log"
    "$@" >>"$log" 2>&1 || step_failed "$text"
    echo "$key" >"$state/done/$name"
    rm "$state/running"
    interrupted=${interrupted/#$name/}
}

step_failed() {
    local advice="look at the lines above, then run the same command again: it goes on from here"
    if tail -n 200 "$log" | grep -q "No space left"; then
        advice="the disk is full: make room, then run the same command again"
    elif tail -n 50 "$log" | grep -qE "NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError"; then
        advice="the package index cannot be reached: check the network or pip's settings, then run the same command again"
    elif tail -n 50 "$log" | grep -q "ResolutionImpossible"; then
        advice="pip would have to change a package that is to stay, such as PyTorch; nothing was changed"
    fi
    tail -n 20 "$log" >&2
    fail "failed at: $1; $advice (all details: $root/$log)"
}

# A package that an interrupted pip left half-written looks installed, so the interrupted step installs all of its own anew.
pip_install() {
    local options=(--no-build-isolation --progress-bar off)
    if [[ $(<"$state/running") == "$interrupted" ]]; then
        options+=(--ignore-installed)
    elif [[ -f $(site_packages)/$link_to_base ]] || grep -q "^include-system-site-packages = true" "$venv/pyvenv.cfg"; then
        # What is there of the base is not enough: its programs are not in .venv/bin.
        options+=(--force-reinstall)
    fi
    # PyTorch stays what it is, whatever a package may ask for.
    [[ -f $state/constraints.txt ]] && options+=(--constraint "$state/constraints.txt")
    "$python" -m pip install "${options[@]}" "$@"
}
