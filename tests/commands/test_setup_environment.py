"""recipes/setup_environment.sh with stand-ins for Python and pip: what is installed, when again, and what is said."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.commands

ROOT = Path(__file__).resolve().parents[2]
# A program that answers as a Python of that version would, and notes down how pip was called. ``broken`` names the step
# that fails; ``no_cpu_build`` is there when the index has none.
PYTHON = """#!/bin/sh
home={home}
case "$1 $2 $3" in
    "- "*) torch={torch}; [ ! -f $home/has_torch ] || torch=$(cat $home/has_torch); echo {version} $torch -; exit ;;
    "-m venv "*) for last; do :; done; mkdir -p $last/bin
        for name in python t2017 fairseq-train; do cp "$0" $last/bin/$name; done; rm $last/bin/fairseq-train
        [ "$3" != --system-site-packages ] || echo "include-system-site-packages = true" >$last/pyvenv.cfg
        exit ;;
    "-m pip "*) echo "$*" >>$home/calls
        case "$*" in *+cpu*) [ ! -f $home/no_cpu_build ] || exit 1 ;; esac
        [ ! -f $home/broken ] || { case "$*" in *"$(cat $home/broken)"*) echo "what went wrong"; exit 1 ;; esac; }
        case "$*" in
            *torch==2.13.0*) echo 2.13.0 >$home/has_torch ;;
            *fairseq-fixed.txt*) cp $(dirname "$0")/python $(dirname "$0")/fairseq-train ;;
        esac
        exit ;;
    "--version "*) echo "t2017 made for a test"; exit ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a checkout that the set-up reads."""
    folder = (tmp_path / "checkout").resolve()
    for name in ("setup.py", "pyproject.toml", "t2017_plugin/version.py", "recipes/setup_environment.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    return folder


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def stand_in(checkout: Path, version: str = "3.12.1", torch: str = "-") -> Path:
    home = checkout.parent / "home"
    home.mkdir(exist_ok=True)
    text = PYTHON.replace("{home}", str(home)).replace("{torch}", torch).replace("{version}", version)
    return executable(home / f"python-{version}", text)


def environment(**variables: str) -> dict[str, str]:
    ours = ("PYTHON", "T2017_PYTHON", "T2017_TORCH_INDEX")
    return {name: value for name, value in os.environ.items() if name not in ours} | variables


def set_up(checkout: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    call = ["bash", str(checkout / "recipes" / "setup_environment.sh"), *options]
    variables = {"PYTHON": str(stand_in(checkout))} | variables
    return subprocess.run(
        call, cwd=checkout.parent, env=environment(**variables), capture_output=True, text=True, check=False, timeout=60
    )


def pip_calls(checkout: Path) -> list[str]:
    """The calls of pip since the last time."""
    calls = checkout.parent / "home" / "calls"
    lines = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return lines


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
    steps = (
        ".venv from",
        "PyTorch",
        "Cython",
        "hydra-core",
        "fairseq-fixed==0.12.3.1",
        "sacremoses",
        "pytest",
        "editable",
    )
    for words in steps:
        assert words in result.stdout
    assert sorted(checkout.rglob("*")) == before and pip_calls(checkout) == []


@pytest.mark.parametrize("version", ["3.10.13", "3.14.0", "2.7.18"])
def test_wrong_python_is_one_line(checkout: Path, version: str) -> None:
    python = stand_in(checkout, version)
    result = set_up(checkout, PYTHON=str(python))
    assert result.returncode == 1
    assert result.stderr.startswith(f"setup: Python 3.11, 3.12 or 3.13 is needed ({python} is {version})")
    assert len(result.stderr.splitlines()) == 1 and not (checkout / ".venv").exists()


def test_it_is_made_once(checkout: Path) -> None:
    result = set_up(checkout)
    assert result.returncode == 0, result.stderr
    calls = pip_calls(checkout)
    assert "torch==2.13.0+cpu" in calls[0] and "--editable ." in calls[-1]
    # From then on no package may change PyTorch.
    assert all("--constraint .venv/t2017_constraints.txt" in call for call in calls[1:])
    assert (checkout / ".venv" / "t2017_constraints.txt").read_text() == "torch==2.13.0\n"
    again = set_up(checkout)
    assert (again.returncode, again.stdout.count("\n")) == (0, 1)
    assert "environment is ready: t2017 made for a test" in again.stdout and pip_calls(checkout) == []


@pytest.mark.parametrize("name", ["requirements/dev.txt", "setup.py"])
def test_pip_is_asked_again_when_what_it_was_made_from_changes(checkout: Path, name: str) -> None:
    assert set_up(checkout).returncode == 0
    pip_calls(checkout)
    with open(checkout / name, "a") as file:
        file.write("# changed\n")
    result = set_up(checkout)
    assert result.returncode == 0 and "PyTorch 2.13.0 is there and stays" in result.stdout
    calls = pip_calls(checkout)
    assert calls and not any("torch==2.13.0" in call or "fairseq-fixed.txt" in call for call in calls)


def test_torch_of_another_environment_is_used_and_not_installed(checkout: Path) -> None:
    python = stand_in(checkout, "3.13.0", torch="2.9.1")
    result = set_up(checkout, T2017_PYTHON=str(python))
    assert result.returncode == 0, result.stderr
    assert "PyTorch 2.9.1 there is used and not touched" in result.stdout
    calls = pip_calls(checkout)
    assert not any("torch==" in call.replace("--constraint", "") for call in calls)
    # Programs of what is seen of the other environment would be missing.
    assert all("--force-reinstall" in call for call in calls)
    assert (checkout / ".venv" / "t2017_constraints.txt").read_text() == "torch==2.9.1\n"


@pytest.mark.parametrize(("gpu", "cpu_build", "installed"), [(0, 1, ["+cpu"]), (0, 0, ["+cpu", ""]), (1, 1, [""])])
def test_torch_is_a_cpu_build_where_there_is_no_gpu_and_the_index_has_one(
    checkout: Path, gpu: int, cpu_build: int, installed: list[str]
) -> None:
    listing = "echo GPU 0: something" if gpu else "exit 9"
    executable(checkout / "bin" / "nvidia-smi", f"#!/bin/sh\n{listing}\n")
    stand_in(checkout)
    if not cpu_build:
        (checkout.parent / "home" / "no_cpu_build").touch()
    path = f"{checkout / 'bin'}:{os.environ['PATH']}"
    assert set_up(checkout, PATH=path, T2017_TORCH_INDEX="some-index").returncode == 0
    calls = [call for call in pip_calls(checkout) if "torch==2.13.0" in call]
    assert [call.split()[-1] for call in calls] == [f"torch==2.13.0{build}" for build in installed]
    assert all("--extra-index-url some-index" in call for call in calls)


def test_a_failed_step_shows_its_log_and_is_done_anew(checkout: Path) -> None:
    stand_in(checkout)
    broken = checkout.parent / "home" / "broken"
    broken.write_text("requirements/fairseq.txt")
    result = set_up(checkout)
    assert result.returncode == 1 and "what went wrong" in result.stderr
    assert "failed at: what fairseq needs" in result.stderr.splitlines()[-1]
    assert not any("dev.txt" in call for call in pip_calls(checkout))
    broken.unlink()
    assert set_up(checkout).returncode == 0
    anew = {call.split()[-1]: "--ignore-installed" in call for call in pip_calls(checkout)}
    # Only the step that was cut off: a half-written package looks installed.
    assert anew["requirements/fairseq.txt"] and not anew["requirements/build.txt"] and not anew["requirements/dev.txt"]


def test_broken_environment_of_the_user_is_not_removed(checkout: Path) -> None:
    executable(checkout / ".venv" / "bin" / "python", "#!/bin/sh\nexit 1\n")
    result = set_up(checkout)
    assert result.returncode == 1 and "remove .venv and try again" in result.stderr
    assert (checkout / ".venv" / "bin" / "python").is_file()


def test_second_set_up_waits_for_the_first(checkout: Path) -> None:
    assert set_up(checkout).returncode == 0
    stamp = checkout / ".venv" / "t2017_stamp"
    content = stamp.read_text()
    stamp.unlink()
    call = ["bash", str(checkout / "recipes" / "setup_environment.sh")]
    with open(checkout / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        variables = environment(PYTHON=str(stand_in(checkout)))
        with subprocess.Popen(call, env=variables, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert "another set-up is at work" in second.stdout.readline()
            stamp.write_text(content)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert "environment is ready" in second.stdout.readline()
    assert second.returncode == 0


def test_missing_compiler_is_one_line(checkout: Path) -> None:
    result = set_up(checkout, CXX="no-such-compiler")
    assert result.returncode == 1 and not any("fairseq-fixed" in call for call in pip_calls(checkout))
    assert "a C++ compiler is needed" in result.stderr and len(result.stderr.splitlines()) == 1
