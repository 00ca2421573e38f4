"""recipes/setup_environment.sh with stand-ins for Python and pip: which steps run, when again, and what is said."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.commands

ROOT = Path(__file__).resolve().parents[2]
STAMPED = (
    "setup.py",
    "pyproject.toml",
    "t2017_plugin/version.py",
    "recipes/setup_environment.sh",
    "recipes/common/environment_steps.sh",
    "recipes/common/environment_libraries.sh",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a checkout that the set-up reads."""
    folder = (tmp_path / "checkout").resolve()
    for name in STAMPED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    return folder


def environment(**variables: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYTHON", "T2017_PYTHON", "T2017_TORCH_INDEX")
    }
    return kept | variables


def set_up(checkout: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    call = ["bash", str(checkout / "recipes" / "setup_environment.sh"), *options]
    variables = {"PYTHON": str(stand_in_for_python(checkout.parent / "base" / "python", "3.12.1"))} | variables
    return subprocess.run(
        call, cwd=checkout.parent, env=environment(**variables), capture_output=True, text=True, check=False, timeout=60
    )


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def stand_in_for_python(path: Path, version: str, torch: str = "-") -> Path:
    """A program that answers the set-up's questions as a Python of that version would, and is quick at it."""
    answers = f"{version} {path} {torch} no -"
    return executable(path, f'#!/bin/sh\n[ "$1" != -c ] || exec {sys.executable} "$@"\nprintf "%s\\n" {answers}\n')


def write_stamp(checkout: Path) -> None:
    """What a finished set-up leaves: an environment and the hash of what it was made from."""
    executable(checkout / ".venv" / "bin" / "python", "#!/bin/sh\n")
    (checkout / ".venv" / "pyvenv.cfg").write_text("version = 3.11.7\n")
    files = [*sorted((checkout / "requirements").glob("*.txt")), *(checkout / name for name in STAMPED)]
    files += [checkout / ".venv" / "pyvenv.cfg"]
    content = b"".join(path.read_bytes() for path in files) + f"{checkout}\n".encode()
    state = checkout / ".venv" / ".t2017_setup"
    state.mkdir()
    (state / "stamp").write_text(f"{hashlib.sha256(content).hexdigest()} Python 3.11.7, made for a test\n")


# The call


def test_help_names_what_can_be_set(checkout: Path) -> None:
    result = set_up(checkout, "--help")
    assert result.returncode == 0
    for name in ("--dry-run", "PYTHON", "T2017_PYTHON", "T2017_TORCH_INDEX"):
        assert name in result.stdout


@pytest.mark.parametrize("options", [["--nonsense"], ["--dry-run", "more"]])
def test_wrong_call_is_status_2(checkout: Path, options: list[str]) -> None:
    result = set_up(checkout, *options)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1


def test_dry_run_says_every_step_and_does_nothing(checkout: Path) -> None:
    before = sorted(checkout.rglob("*"))
    result = set_up(checkout, "--dry-run")
    assert result.returncode == 0, result.stderr
    for words in (
        ".venv from",
        "PyTorch",
        "Cython",
        "hydra-core",
        "fairseq-fixed==0.12.3.1",
        "sacremoses",
        "pytest",
        "editable",
    ):
        assert words in result.stdout
    assert sorted(checkout.rglob("*")) == before


@pytest.mark.parametrize("version", ["3.10.13", "3.14.0", "2.7.18"])
def test_wrong_python_is_one_line(checkout: Path, version: str) -> None:
    python = stand_in_for_python(checkout.parent / "some-python", version)
    result = set_up(checkout, PYTHON=str(python))
    assert result.returncode == 1
    assert result.stderr.startswith(f"setup: Python 3.11, 3.12 or 3.13 is needed ({python} is {version})")
    assert len(result.stderr.splitlines()) == 1 and not (checkout / ".venv").exists()


def test_torch_of_another_environment_is_used_and_not_installed(checkout: Path) -> None:
    python = stand_in_for_python(checkout.parent / "env" / "python", "3.13.0", torch="2.9.1")
    result = set_up(checkout, "--dry-run", T2017_PYTHON=str(python))
    assert "PyTorch 2.9.1 there is used and not touched" in result.stdout
    assert "CUDA build" not in result.stdout


# The stamp and the lock


def test_finished_environment_is_not_made_again(checkout: Path) -> None:
    write_stamp(checkout)
    result = set_up(checkout)
    assert (result.returncode, result.stdout.count("\n")) == (0, 1)
    assert "environment is ready: Python 3.11.7, made for a test" in result.stdout


@pytest.mark.parametrize("name", ["requirements/dev.txt", "setup.py"])
def test_stamp_is_stale_when_what_it_was_made_from_changes(checkout: Path, name: str) -> None:
    write_stamp(checkout)
    with open(checkout / name, "a") as file:
        file.write("# changed\n")
    result = set_up(checkout, "--dry-run")
    assert "environment is ready" not in result.stdout


def test_moved_checkout_makes_its_environment_again(checkout: Path) -> None:
    write_stamp(checkout)
    (checkout / ".venv" / ".t2017_setup" / "location").write_text("/somewhere/else\n")
    moved = checkout.rename(checkout.parent / "moved")
    result = set_up(moved, "--dry-run")
    assert ".venv is unfinished, broken or was moved here: making it again" in result.stdout
    assert "CUDA build" in result.stdout and "editable" in result.stdout


def test_broken_environment_of_the_user_is_not_removed(checkout: Path) -> None:
    executable(checkout / ".venv" / "bin" / "python", "#!/bin/sh\nexit 1\n")
    result = set_up(checkout)
    assert result.returncode == 1 and "remove .venv and try again" in result.stderr
    assert (checkout / ".venv" / "bin" / "python").is_file()


def test_second_set_up_waits_for_the_first(checkout: Path) -> None:
    call = ["bash", str(checkout / "recipes" / "setup_environment.sh")]
    python = stand_in_for_python(checkout.parent / "base" / "python", "3.12.1")
    with open(checkout / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(call, env=environment(PYTHON=str(python)), stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert "another set-up is at work" in second.stdout.readline()
            write_stamp(checkout)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert "environment is ready" in second.stdout.readline()
    assert second.returncode == 0


# The steps

PIP = """#!/bin/sh
echo "$*" >>calls
case "$*" in *+cpu*) [ -f no_cpu_build ] && exit 1 ;; esac
[ ! -f broken ] || { echo "what went wrong"; exit 1; }
"""


def run_steps(checkout: Path, script: str, interrupted: str = "") -> subprocess.CompletedProcess[str]:
    """Run functions of the set-up in an environment whose Python only notes down how it was called."""
    if not (checkout / ".venv" / "bin" / "python").exists():
        executable(checkout / ".venv" / "bin" / "python", PIP)
        (checkout / ".venv" / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
        (checkout / ".venv" / ".t2017_setup" / "done").mkdir(parents=True)
    start = f"""set -euo pipefail; exec 3>&1
    root=$PWD venv=.venv state=.venv/.t2017_setup log=.venv/setup.log python=.venv/bin/python
    dry_run= interrupted={interrupted}
    source recipes/common/environment_steps.sh
    source recipes/common/environment_libraries.sh
    """
    call = ["bash", "-c", start + script]
    return subprocess.run(
        call, cwd=checkout, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )


def pip_calls(checkout: Path) -> list[str]:
    """The calls of pip since the last time, without the questions for the place of site-packages."""
    calls = checkout / "calls"
    lines = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return [line for line in lines if "-m pip" in line]


def test_step_runs_once_for_a_key(checkout: Path) -> None:
    for key, expected in (("one", 1), ("one", 0), ("two", 1)):
        result = run_steps(checkout, f"run_step needs {key} 'the text' pip_install -r some.txt")
        assert result.returncode == 0, result.stderr
        assert ("the text" in result.stdout, len(pip_calls(checkout))) == (bool(expected), expected)


def test_failed_step_shows_the_log_and_is_done_anew(checkout: Path) -> None:
    (checkout / "broken").touch()
    result = run_steps(checkout, "run_step needs key 'the text' pip_install -r some.txt; echo went on")
    assert result.returncode == 1 and "went on" not in result.stdout
    assert "what went wrong" in result.stderr and "failed at: the text" in result.stderr.splitlines()[-1]
    (checkout / "broken").unlink()
    pip_calls(checkout)
    running = (checkout / ".venv" / ".t2017_setup" / "running").read_text().strip()
    script = "run_step needs key 'the text' pip_install -r some.txt; run_step next key 'more' pip_install -r more.txt"
    assert run_steps(checkout, script, interrupted=running).returncode == 0
    first, second = pip_calls(checkout)
    assert "--ignore-installed" in first and "--ignore-installed" not in second
    assert not (checkout / ".venv" / ".t2017_setup" / "running").exists()


def test_pip_may_not_change_torch(checkout: Path) -> None:
    run_steps(checkout, "echo torch==2.9.1 >$state/constraints.txt; run_step needs key text pip_install -r some.txt")
    (call,) = pip_calls(checkout)
    assert "--constraint .venv/.t2017_setup/constraints.txt" in call


@pytest.mark.parametrize(("gpu", "cpu_build", "installed"), [(0, 1, ["+cpu"]), (0, 0, ["+cpu", ""]), (1, 1, [""])])
def test_torch_is_a_cpu_build_where_there_is_no_gpu_and_the_index_has_one(
    checkout: Path, gpu: int, cpu_build: int, installed: list[str]
) -> None:
    listing = "echo GPU 0: something" if gpu else "exit 9"
    executable(checkout / "bin" / "nvidia-smi", f"#!/bin/sh\n{listing}\n")
    if not cpu_build:
        (checkout / "no_cpu_build").touch()
    script = "export PATH=$PWD/bin:$PATH T2017_TORCH_INDEX=some-index; run_step torch key text install_torch"
    assert run_steps(checkout, script).returncode == 0
    calls = pip_calls(checkout)
    assert [call.split()[-1] for call in calls] == [f"torch==2.13.0{build}" for build in installed]
    assert all("--extra-index-url some-index" in call for call in calls)


def test_missing_compiler_is_one_line(checkout: Path) -> None:
    result = run_steps(checkout, f"base={sys.executable}; CXX=no-such-compiler keep_or_install_fairseq")
    assert result.returncode == 1 and pip_calls(checkout) == []
    assert "a C++ compiler is needed" in result.stderr and len(result.stderr.splitlines()) == 1
