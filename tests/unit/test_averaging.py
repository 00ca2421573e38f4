"""The average of checkpoints is the mean in float64, ties intact, and nothing is left behind when it cannot be made."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary

from t2017_plugin.checkpoints.averaging import average_checkpoints, last_checkpoints
from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.architectures import architecture_settings
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.paper.averaging import RunningMean

ROOT = Path(__file__).resolve().parents[2]


def save(path, model, updates, **other):
    """Write a checkpoint as fairseq-train does."""
    state = {
        "args": None,
        "cfg": {"model": argparse.Namespace(arch="a", encoder_attention_heads=4, dropout=0.1), "common": {"seed": 1}},
        "model": model,
        "criterion": None,
        "optimizer_history": [{"num_updates": updates, "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": updates}, "ema": {"w": torch.zeros(10)}},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(1000)}}},
        **other,
    }
    torch.save(state, path)
    return path


def tiny_tied_model():
    """Our model with one table used three times (section 3.4), in small."""
    dictionary = Dictionary()
    for number in range(20):
        dictionary.add_symbol(str(number))
    sizes = {
        **architecture_settings("t2017_tiny"),
        "layers": 1,
        "d_model": 8,
        "d_ff": 16,
        "heads": 2,
        "d_k": 4,
        "d_v": 4,
    }
    task = argparse.Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return T2017Transformer.build_model(argparse.Namespace(**sizes), task)


def all_weights(model, value):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    return model.state_dict()


def test_mean_of_1_and_3_is_exactly_2_everywhere_in_a_tied_model(tmp_path):
    files = [save(tmp_path / f"{value}.pt", all_weights(tiny_tied_model(), value), value) for value in (1, 3)]
    average_checkpoints(files, tmp_path / "average.pt")
    mean = load_checkpoint(tmp_path / "average.pt")["model"]
    tied = [name for name in mean if name.endswith(("embedding.weight", "output.weight"))]
    assert len(tied) == 3  # encoder, decoder, output
    for name, weight in mean.items():
        assert torch.equal(weight, torch.full_like(weight, 2.0)), name
    assert len({mean[name].data_ptr() for name in tied}) == 1
    tiny_tied_model().load_state_dict(mean)


def test_mean_is_the_float64_mean(tmp_path):
    torch.manual_seed(1)
    weights = [torch.randn(300, 70) for _ in range(7)]
    files = [save(tmp_path / f"{n}.pt", {"w": weight, "v": weight}, n) for n, weight in enumerate(weights, start=1)]
    average_checkpoints(files, tmp_path / "average.pt")
    mean = load_checkpoint(tmp_path / "average.pt")["model"]["w"]
    exact = torch.stack(weights).double().mean(dim=0)
    assert mean.dtype == torch.float32
    # Rounded once: equal to the float64 mean rounded to float32, at most half a unit in the last place away.
    assert torch.equal(mean, exact.float())
    assert (mean.double() - exact).abs().max() < 1e-7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_summed_in_float32(dtype):
    """In bfloat16 256 + 1 is 256, so a sum of 300 ones would stop there."""
    mean = RunningMean()
    for number in range(300):
        mean.add({"w": torch.ones(5, dtype=dtype)}, str(number))
    result = mean.mean()["w"]
    assert result.dtype == torch.float32
    assert torch.equal(result, torch.ones(5))


def test_low_precision_mean_is_not_rounded_back():
    mean = RunningMean()
    for value in (1.0, 1.0078125):  # neighbours in bfloat16
        mean.add({"w": torch.full((2,), value, dtype=torch.bfloat16)}, "x")
    assert torch.equal(mean.mean()["w"], torch.full((2,), 1.00390625))


def test_buffers_that_are_no_numbers_come_from_the_newest(tmp_path):
    files = []
    for updates in (300, 100, 200):
        model = {
            "w": torch.tensor([float(updates)]),
            "seen": torch.tensor(updates),
            "flag": torch.tensor(updates == 300),
        }
        files.append(save(tmp_path / f"{updates}.pt", model, updates))
    average_checkpoints(files, tmp_path / "average.pt")
    state = load_checkpoint(tmp_path / "average.pt")
    assert state["model"]["seen"] == 300 and state["model"]["flag"]
    assert state["model"]["w"] == 200.0
    assert state["optimizer_history"][-1]["num_updates"] == 300
    assert state["extra_state"]["train_iterator"] == {"epoch": 300}


def test_weights_tied_in_one_file_only(tmp_path):
    """A file from a GPU holds tied weights apart; keys that part ways get means of their own."""
    table = torch.full((2, 2), 1.0)
    tied = save(tmp_path / "1.pt", {"a": table, "b": table, "c": table}, 1)
    apart = save(tmp_path / "2.pt", {"a": table * 3, "b": table * 5, "c": table * 3}, 2)
    for files in ([tied, apart], [apart, tied]):
        average_checkpoints(files, tmp_path / "average.pt")
        mean = load_checkpoint(tmp_path / "average.pt")["model"]
        assert [mean[key][0, 0].item() for key in "abc"] == [2.0, 3.0, 2.0]


def test_output_records_what_was_averaged_and_drops_the_optimiser(tmp_path):
    files = [save(tmp_path / f"checkpoint_1_{n}.pt", {"w": torch.tensor([float(n)])}, n) for n in (10, 20)]
    report = average_checkpoints(files, tmp_path / "average.pt")
    state = load_checkpoint(tmp_path / "average.pt")
    assert state["extra_state"]["t2017_average"] == {
        "files": ["checkpoint_1_10.pt", "checkpoint_1_20.pt"],
        "num_updates": [10, 20],
    }
    assert report.updates == [10, 20]
    assert state["last_optimizer_state"] is None
    assert "ema" not in state["extra_state"]
    assert state["cfg"]["model"].encoder_attention_heads == 4


def refused(tmp_path, files, message):
    output = tmp_path / "average.pt"
    output.write_text("from before")
    before = sorted(entry.name for entry in tmp_path.iterdir())
    with pytest.raises(UsageError, match=message) as failure:
        average_checkpoints(files, output)
    assert "\n" not in str(failure.value)
    assert output.read_text() == "from before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    w = torch.ones(2, 3)
    good = save(tmp_path / "good.pt", {"w": w, "v": w}, 1)
    heads = {"model": argparse.Namespace(arch="a", encoder_attention_heads=8, dropout=0.1)}
    others = {
        "0.pt cannot be averaged with .*good.pt: w is .2, 3. in the first and .3, 2. here": (
            {"w": w.T.contiguous(), "v": w},
            {},
        ),
        "1.pt .*: v is in one of them only": ({"w": w}, {}),
        "2.pt .*: extra is in one of them only": ({"w": w, "v": w, "extra": w}, {}),
        "3.pt .*: w is torch.float32 in the first and torch.float16 here": ({"w": w.half(), "v": w}, {}),
        "4.pt .*: w holds values that are not finite": ({"w": w * float("nan"), "v": w}, {}),
        "encoder_attention_heads is 4 in .* and 8 in": ({"w": w * 2, "v": w}, {"cfg": heads}),
    }
    for number, (message, (model, other)) in enumerate(others.items()):
        bad = save(tmp_path / f"{number}.pt", model, 2, **other)
        refused(tmp_path, [good, bad], message)


def test_dropout_may_change_within_a_run(tmp_path):
    other = {"model": argparse.Namespace(arch="a", encoder_attention_heads=4, dropout=0.3)}
    files = [
        save(tmp_path / "1.pt", {"w": torch.ones(2)}, 1),
        save(tmp_path / "2.pt", {"w": torch.ones(2)}, 2, cfg=other),
    ]
    average_checkpoints(files, tmp_path / "average.pt")


def test_a_cut_off_file_is_refused_and_named(tmp_path):
    files = [save(tmp_path / f"{n}.pt", {"w": torch.ones(500)}, n) for n in (1, 2, 3)]
    content = files[2].read_bytes()
    files[2].write_bytes(content[: len(content) // 2])
    refused(tmp_path, files, "3.pt cannot be read")


def test_each_file_once(tmp_path):
    first = save(tmp_path / "1.pt", {"w": torch.ones(2)}, 1)
    second = save(tmp_path / "2.pt", {"w": torch.zeros(2)}, 2)
    link = tmp_path / "link.pt"
    os.symlink(first, link)
    copied = tmp_path / "checkpoint_last.pt"
    copied.write_bytes(second.read_bytes())
    refused(tmp_path, [first, second, first], "same file")
    refused(tmp_path, [first, second, link], "same file")
    refused(tmp_path, [first, second, copied], "holds the same weights as .*2.pt")


def test_output_cannot_be_one_of_the_inputs(tmp_path):
    first = save(tmp_path / "1.pt", {"w": torch.ones(2)}, 1)
    content = first.read_bytes()
    with pytest.raises(UsageError, match="one of the checkpoints"):
        average_checkpoints([first], first)
    assert first.read_bytes() == content


def test_last_by_update_number_and_by_epoch(tmp_path):
    names = ["checkpoint_1_90.pt", "checkpoint_2_100.pt", "checkpoint_10_1000.pt", "checkpoint2.pt", "checkpoint10.pt"]
    for name in [
        *names,
        "checkpoint_last.pt",
        "checkpoint_best.pt",
        "checkpoint_1_90.pt.tmp",
        "checkpoint_1_5-shard0.pt",
    ]:
        (tmp_path / name).touch()
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["checkpoint_2_100.pt", "checkpoint_10_1000.pt"]
    assert [path.name for path in last_checkpoints(tmp_path, 2, "epoch")] == ["checkpoint2.pt", "checkpoint10.pt"]
    with pytest.raises(UsageError, match="holds 3 update checkpoints.*5 were asked for.*--by epoch there are 2"):
        last_checkpoints(tmp_path, 5)
    with pytest.raises(UsageError, match="holds 2 epoch checkpoints.*3 were asked"):
        last_checkpoints(tmp_path, 3, "epoch")
    with pytest.raises(UsageError, match="at least one"):
        last_checkpoints(tmp_path, 0)
    with pytest.raises(UsageError, match="not a folder"):
        last_checkpoints(tmp_path / "none", 1)


MEASURE = """
import sys
from pathlib import Path
from t2017_plugin.checkpoints.averaging import average_checkpoints

def memory(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

files = [Path(name) for name in sys.argv[2:]]
average_checkpoints(files[:2], Path(sys.argv[1]))  # imports and buffers of the libraries
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = memory("VmRSS")
average_checkpoints(files, Path(sys.argv[1]))
print(memory("VmHWM") - before)
"""


def test_not_more_than_three_models_are_in_memory(tmp_path):
    """Six files of 32 MB: what a fresh process allocates beyond the start stays below 3.5 times one of them."""
    numbers = 2**23
    torch.manual_seed(1)
    files = [save(tmp_path / f"{n}.pt", {"w": torch.randn(numbers)}, n, last_optimizer_state=None) for n in range(1, 7)]
    call = [sys.executable, "-c", MEASURE, str(tmp_path / "average.pt"), *map(str, files)]
    measured = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(measured.stdout) < 3.5 * 4 * numbers
