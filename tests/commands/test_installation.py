"""Installing: the wheel, the pins, and what is said when something is missing. Downloads nothing."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.commands

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))


def read_pins(path: Path) -> dict[str, str]:
    """Name and version of every line of a requirements file; a line that neither pins nor forbids wheels fails."""
    pins = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith(("#", "--no-binary ")):
            match = re.fullmatch(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)", line)
            assert match, f"{path.name} does not pin: {line}"
            pins[match[1]] = match[2]
    return pins


def run_python(
    code: str, *paths: Path, cwd: Path, options: tuple[str, ...] = ("-S",)
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that sees the standard library, the checkout and the folders named, and no site-packages."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [ROOT, *paths]))}
    call = [sys.executable, *options, "-c", code]
    return subprocess.run(call, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


# The wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of a copy of the checkout, since building leaves folders behind."""
    copy, output = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.py", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "t2017_plugin", copy / "t2017_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    call = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(output),
        ".",
    ]
    subprocess.run(call, cwd=copy, check=True, capture_output=True)
    (path,) = output.glob("t2017_plugin-*.whl")
    return zipfile.ZipFile(path)


def read_from_wheel(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_string(read_from_wheel(wheel, "METADATA"))


def test_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    files = (path for path in (ROOT / "t2017_plugin").rglob("*") if path.is_file() and path.suffix != ".pyc")
    expected = {str(path.relative_to(ROOT)) for path in files}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected


def test_wheel_has_the_command_and_the_version_of_the_package(wheel: zipfile.ZipFile, metadata: Message) -> None:
    from t2017_plugin.version import __version__

    assert "t2017 = t2017_plugin.commands.main:main" in read_from_wheel(wheel, "entry_points.txt")
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"


def test_installing_touches_neither_torch_nor_fairseq(metadata: Message) -> None:
    needs = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    plain = {need.name for need in needs if need.marker is None}
    assert plain == {"google-crc32c", "matplotlib", "nltk", "sacrebleu", "sacremoses", "subword-nmt"}
    everything = {canonicalize_name(need.name) for need in needs}
    assert everything.isdisjoint({"torch", "torchaudio", "fairseq", "fairseq-fixed"})


def test_pins_are_within_the_ranges_of_the_package(metadata: Message) -> None:
    pins = {name: version for path in REQUIREMENTS for name, version in read_pins(path).items()}
    for need in (Requirement(line) for line in metadata.get_all("Requires-Dist", [])):
        assert need.specifier.contains(pins[canonicalize_name(need.name)]), need


# The pins


def test_requirements_files_agree() -> None:
    seen: dict[str, str] = {}
    for path in REQUIREMENTS:
        for name, version in read_pins(path).items():
            assert seen.setdefault(name, version) == version, f"{name} in {path.name}"


@pytest.mark.parametrize(
    "path", [path for path in REQUIREMENTS if path.stem != "fairseq-fixed"], ids=lambda path: path.stem
)
def test_requirements_file_is_complete(path: Path) -> None:
    """Whatever a pinned package needs is pinned in the same file, so that nothing else decides a version."""
    pins = read_pins(path)
    for name in pins:
        for need in map(Requirement, distribution(name).requires or []):
            # A CUDA build of PyTorch pins its own libraries.
            own = name == "torch" and need.name.startswith(("nvidia", "triton", "cuda"))
            if own or (need.marker and not need.marker.evaluate({"extra": ""})):
                continue
            assert canonicalize_name(need.name) in pins, f"{name} needs {need}"


def test_one_version_of_fairseq_is_supported_everywhere() -> None:
    from t2017_plugin.fairseq_side.guards import SUPPORTED_FAIRSEQ

    assert read_pins(ROOT / "requirements" / "fairseq-fixed.txt") == {"fairseq-fixed": SUPPORTED_FAIRSEQ}
    assert f"fairseq-fixed {SUPPORTED_FAIRSEQ}" in (ROOT / "docs" / "installation.md").read_text()


def test_fairseq_is_compiled_and_not_taken_as_a_wheel() -> None:
    """A wheel of an index is made for some other PyTorch, and its compiled parts do not load."""
    assert "\n--no-binary fairseq-fixed\n" in (ROOT / "requirements" / "fairseq-fixed.txt").read_text()


# What is said when something is missing

NEEDS_FAIRSEQ = "from t2017_plugin import Translator"


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """A folder with an empty ``torch``, so that the search goes on to fairseq."""
    (tmp_path / "torch.py").touch()
    return tmp_path


def one_line_of(result: subprocess.CompletedProcess[str]) -> str:
    (line,) = result.stderr.splitlines()
    assert result.returncode == 1
    return line


def test_without_torch_one_line_says_what_to_install(tmp_path: Path) -> None:
    line = one_line_of(run_python(NEEDS_FAIRSEQ, cwd=tmp_path))
    assert "needs torch, which is not installed for" in line and "pip install torch==2.13.0" in line


@pytest.mark.parametrize(
    "code",
    [
        NEEDS_FAIRSEQ,
        "import sys, runpy; sys.argv[1:] = ['params']; runpy.run_module('t2017_plugin', run_name='__main__')",
    ],
    ids=["python", "command"],
)
def test_without_fairseq_one_line_says_what_to_install(code: str, libraries: Path) -> None:
    line = one_line_of(run_python(code, libraries, cwd=libraries))
    assert "needs fairseq, which is not installed for" in line
    assert "pip install --no-deps --no-build-isolation -r requirements/fairseq-fixed.txt" in line
    assert "fairseq-fixed 0.12.3.1" in line


def test_a_fairseq_that_this_python_cannot_import_is_named_with_its_error(libraries: Path) -> None:
    (libraries / "fairseq.py").write_text("raise ValueError('mutable default\\nuse default_factory')")
    line = one_line_of(run_python(NEEDS_FAIRSEQ, libraries, cwd=libraries))
    assert "cannot be imported" in line and "(ValueError: mutable default use default_factory)" in line


def test_what_fairseq_needs_is_named_when_that_is_missing(libraries: Path) -> None:
    (libraries / "fairseq.py").write_text("import hydra")
    line = one_line_of(run_python(NEEDS_FAIRSEQ, libraries, cwd=libraries))
    assert "No module named 'hydra'" in line and "requirements/fairseq.txt" in line


def test_a_folder_that_hides_fairseq_is_named(libraries: Path) -> None:
    (libraries / "fairseq" / "examples").mkdir(parents=True)
    line = one_line_of(run_python(NEEDS_FAIRSEQ, libraries, cwd=libraries))
    assert f"the folder {libraries / 'fairseq'} hides it" in line


def test_the_error_can_be_caught(tmp_path: Path) -> None:
    code = f"try:\n    {NEEDS_FAIRSEQ}\nexcept ValueError as error:\n    print(str(error))"
    result = run_python(code, cwd=tmp_path)
    assert result.returncode == 0 and "needs torch" in result.stdout


def test_the_package_and_what_needs_no_fairseq_work_without_it(tmp_path: Path) -> None:
    code = (
        "import t2017_plugin, t2017_plugin.paper.config, t2017_plugin.paper.table3;"
        "from t2017_plugin.commands.main import main; main(['user-dir'])"
    )
    result = run_python(code, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "") and result.stdout == f"{ROOT / 't2017_plugin'}\n"
