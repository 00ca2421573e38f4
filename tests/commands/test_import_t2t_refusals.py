"""What ``t2017 import-t2t`` refuses, in one line, with nothing left behind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from t2017_plugin.commands import main as cli
from tests.parity import t2t_golden

pytestmark = pytest.mark.commands

GOLDEN = t2t_golden.FOLDER / "beam_trained.npz"
LANGUAGES = ("--source-lang", "en", "--target-lang", "de")


def broken(tmp_path: Path, name: str) -> Path:
    """Write a file that is no model, by what is wrong with it."""
    path = tmp_path / name
    variables = {key: array for key, array in t2t_golden.load("beam_trained").items() if key.startswith("var/")}
    if name == "array.npz":
        with open(path, "wb") as file:
            np.save(file, np.ones(3))
    elif name == "text.npz":
        path.write_text("not an archive")
    elif name == "objects.npz":
        np.savez(path, weights=np.array([{}], dtype=object))
    elif name == "cut.npz":
        path.write_bytes(GOLDEN.read_bytes()[:-3000])
    elif name == "damaged.npz":
        data = bytearray(GOLDEN.read_bytes())
        data[len(data) // 3] ^= 255
        path.write_bytes(data)
    elif name == "torch.npz":
        torch.save({"model": {"weight": torch.ones(2)}}, path)
    elif name == "nan.npz":
        key = next(key for key in variables if "conv1" in key)
        np.savez(path, **{**variables, key: variables[key] * np.nan})
    return path


CALLS = [
    (["absent.npz"], "absent.npz: no such file, and no"),
    (["array.npz"], "array.npz cannot be read as an .npz file of arrays"),
    (["text.npz"], "text.npz cannot be read as an .npz file of arrays"),
    (["objects.npz"], "cannot be read as an .npz file of arrays (Object arrays cannot be loaded"),
    (["cut.npz"], "cut.npz cannot be read as an .npz file of arrays"),
    (["damaged.npz"], "damaged.npz is damaged, found at"),
    (["torch.npz"], "no variable .../encoder/layer_0/"),
    (["nan.npz"], "conv1_single/kernel holds values that are no finite numbers"),
    ([GOLDEN, "--heads", 5], "--heads 5 does not divide the 32 channels"),
    ([GOLDEN, "--target-space-id", 40], "target space 40: body/target_space_embedding/kernel has 32 rows"),
    ([GOLDEN, "--vocab", "absent"], "absent: no such file or directory"),
    ([GOLDEN, "--vocab", "v", "--source-vocab", "v"], "--vocab is for both languages"),
    ([GOLDEN, "--source-vocab", "v"], "they share one vocabulary: use --vocab"),
    ([GOLDEN, "--target-lang", "en"], "source and target are both en"),
    ([GOLDEN, "--bpe-codes", "absent"], "absent: no such file or directory"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message[:40] for _, message in CALLS])
def test_refused_in_one_line_and_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], call: list[Any], message: str
) -> None:
    model = broken(tmp_path, call[0]) if isinstance(call[0], str) else call[0]
    before = sorted(tmp_path.iterdir())
    arguments = ["import-t2t", model, *LANGUAGES, "--output", tmp_path / "out", "--heads", 4, *call[1:]]
    assert cli.main([str(argument) for argument in arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith("t2017 import-t2t: ") and message in printed.err
    assert sorted(tmp_path.iterdir()) == before


def test_where_it_may_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder is taken, one with files and a missing parent are not."""
    call = ["import-t2t", str(GOLDEN), *LANGUAGES, "--heads", "4", "--output"]
    (tmp_path / "empty").mkdir()
    assert cli.main([*call, str(tmp_path / "empty")]) == 0
    assert (tmp_path / "empty" / "checkpoint.pt").exists()
    capsys.readouterr()
    for output, message in (("empty", "is there already"), ("absent/out", "absent is not a folder")):
        assert cli.main([*call, str(tmp_path / output)]) == 1
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_wrong_calls() -> None:
    assert cli.main(["import-t2t", str(GOLDEN), "--output", "x"]) == 2
    assert cli.main(["import-t2t"]) == 2
