"""Checkpoints load with weights-only loading on, and one line tells what is wrong with those that do not."""

import argparse
import fractions
import os

import numpy
import pytest
import torch
from fairseq.logging import meters
from omegaconf import OmegaConf

from t2017_plugin.checkpoints.loading import load_checkpoint, num_updates, stored_settings
from t2017_plugin.errors import UsageError


def state(**extra):
    """What fairseq-train writes, with little in it."""
    return {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch="transformer", dropout=0.1), "task": {"_name": "translation"}},
        "model": {"weight": torch.arange(6.0).view(2, 3)},
        "optimizer_history": [{"num_updates": 7}],
        "extra_state": {"val_loss": 1.5},
        "last_optimizer_state": None,
        **extra,
    }


def held_by_fairseq():
    """Objects of every kind that fairseq of some version has stored beside tensors."""
    return {
        "namespace": argparse.Namespace(a=1, b=argparse.Namespace(c=[1, 2])),
        "numbers": [numpy.float64(1.5), numpy.float32(2.5), numpy.int64(3), numpy.bool_(True), numpy.str_("x")],
        "array": numpy.array([[1, 2], [3, 4]]),
        "meters": {"loss": meters.AverageMeter(), "wps": meters.TimeMeter(), "wall": meters.StopwatchMeter()},
        "cfg": OmegaConf.create({"a": 1, "b": [1, "x", None, 2.5], "c": {"d": True}}),
    }


@pytest.mark.parametrize("new_format", [True, False])
def test_everything_fairseq_holds_loads_weights_only(tmp_path, new_format):
    path = tmp_path / "checkpoint.pt"
    held = held_by_fairseq()
    torch.save(state(held=held), path, _use_new_zipfile_serialization=new_format)
    loaded = load_checkpoint(path)["held"]
    assert loaded["namespace"] == held["namespace"]
    assert loaded["numbers"] == held["numbers"]
    assert [type(number) for number in loaded["numbers"]] == [type(number) for number in held["numbers"]]
    assert (loaded["array"] == held["array"]).all()
    assert {name: type(meter) for name, meter in loaded["meters"].items()} == {
        name: type(meter) for name, meter in held["meters"].items()
    }
    assert loaded["cfg"] == held["cfg"]
    # The same file with torch's own call, as the stock tools make it.
    assert torch.load(path, map_location="cpu", weights_only=True)["held"]["array"].sum() == 10


def test_numbers_written_under_numpy_1_load(tmp_path):
    """Under numpy 1 the module was numpy.core; a file names it by its text."""
    path = tmp_path / "checkpoint.pt"
    torch.save(state(number=numpy.float64(1.5)), path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    new, old = b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"
    assert new in content or old in content
    path.write_bytes(content.replace(new, old))
    assert load_checkpoint(path)["number"] == 1.5


def test_tied_weights_are_one_tensor_again(tmp_path):
    path = tmp_path / "checkpoint.pt"
    table = torch.randn(3, 4)
    torch.save(state(model={"source": table, "target": table}), path)
    model = load_checkpoint(path)["model"]
    assert model["source"].data_ptr() == model["target"].data_ptr()


def test_settings_of_new_and_old_files():
    new = state()
    assert num_updates(new) == 7
    assert stored_settings(new, "model") == {"arch": "transformer", "dropout": 0.1}
    assert stored_settings(new, "task") == {"_name": "translation"}
    old = {"args": argparse.Namespace(arch="transformer", task="translation"), "model": {}}
    assert num_updates(old) == 0
    assert stored_settings(old, "model")["task"] == "translation"


def cut(content, share):
    return content[: int(len(content) * share)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:3],
        lambda content: cut(content, 0.5),
        lambda content: cut(content, 0.99),
        lambda content: b"no checkpoint\n" * 20,
        lambda content: b"\0" * 1000,
        lambda content: b"PK\x03\x04" + b"\0" * 1000,
    ],
)
@pytest.mark.parametrize("new_format", [True, False])
def test_damaged_and_foreign_files_are_named(tmp_path, damage, new_format):
    path = tmp_path / "checkpoint.pt"
    torch.save(state(model={"w": torch.randn(1000)}), path, _use_new_zipfile_serialization=new_format)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError) as failure:
        load_checkpoint(path)
    assert str(path) in str(failure.value)
    assert "cut off" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_type_that_is_not_allowed_is_named(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save(state(odd=fractions.Fraction(1, 2)), path)
    with pytest.raises(UsageError, match=r"checkpoint\.pt holds an object of fractions\.Fraction"):
        load_checkpoint(path)


def test_a_program_in_a_checkpoint_does_not_run(tmp_path):
    class Program:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    path = tmp_path / "checkpoint.pt"
    torch.save(state(odd=Program()), path)
    with pytest.raises(UsageError, match=r"holds posix\.mkdir"):
        load_checkpoint(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [[1, 2], {"weights": {}}, {"model": torch.zeros(2)}])
def test_other_torch_files_are_no_checkpoints(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    with pytest.raises(UsageError, match="no 'model' entry"):
        load_checkpoint(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UsageError, match="no such checkpoint"):
        load_checkpoint(tmp_path / "none.pt")
    with pytest.raises(UsageError, match="is a folder"):
        load_checkpoint(tmp_path)
