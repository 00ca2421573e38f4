"""``t2017 import-t2t``: models of other shapes come back with equal logits, recorded ones with the authors' logits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from t2017_plugin.checkpoints.loading import load_checkpoint, load_for_inference, num_updates, stored_settings
from t2017_plugin.commands import main as cli
from tests.parity import t2t_golden
from tests.parity.t2t_random import SHAPES, random_model
from tests.parity.t2t_versions import Arrays, between, newer, prefixed, sharded, with_bookkeeping
from tests.parity.tf_writer import RECORDED, STEP

pytestmark = pytest.mark.parity


def imported(model: Path | str, output: Path, *flags: object) -> tuple[Any, Any]:
    """Task and model as the translator loads them, after the command has made the folder."""
    call = ["import-t2t", model, "-s", "en", "-t", "de", "--output", output, *flags]
    assert cli.main([str(argument) for argument in call]) == 0
    return load_for_inference(output / "checkpoint.pt", output, "en", "de")


def batch(source_types: int, target_types: int) -> tuple[Tensor, Tensor]:
    """Make sources padded on the right, and shifted targets with EOS in front."""
    generator = torch.Generator().manual_seed(5)
    source = torch.randint(2, source_types, (3, 9), generator=generator)
    for row, length in enumerate((9, 4, 1)):
        source[row, length - 1], source[row, length:] = 1, 0
    previous = torch.randint(2, target_types, (3, 7), generator=generator)
    previous[:, 0] = 1
    return source, previous


def logits(model: Any, source: Tensor, previous: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.as_tensor(model.eval()(source, None, previous)[0])


FORMS: list[tuple[Callable[[Arrays], Arrays], ...]] = [(), (between, sharded), (with_bookkeeping, prefixed)]
PLAIN = [shape for shape in SHAPES if not {"attention_bias", "target_space_embedding"} & set(shape)]


def named(case: Any) -> str:
    """Name a test."""
    return str(case) if isinstance(case, dict) else "+".join(form.__name__ for form in case) or "1.0"


CASES = [(shape, FORMS[number % 3]) for number, shape in enumerate(SHAPES)]
CASES += [(shape, (newer, sharded, with_bookkeeping)) for shape in PLAIN]


@pytest.mark.parametrize(("shape", "forms"), CASES, ids=named)
def test_equal_logits(tmp_path: Path, shape: dict[str, Any], forms: tuple[Callable[[Arrays], Arrays], ...]) -> None:
    """The weights are copied and the program is the same, so nothing may differ at all."""
    model, sizes, variables = random_model(3, shape)
    for form in forms:
        variables = form(variables)
    np.savez(tmp_path / "model.npz", **variables)  # type: ignore[arg-type]
    rows = ["--source-rows", sizes["vin"]] if shape.get("embeddings") == "decoder" else []
    flags = ["--heads", model.config.heads, "--target-space-id", sizes["tspace"], *rows]
    task, loaded = imported(tmp_path / "model.npz", tmp_path / "out", *flags)
    assert (len(task.source_dictionary), len(task.target_dictionary)) == (sizes["vin"], sizes["vout"])
    source, previous = batch(sizes["vin"], sizes["vout"])
    assert torch.equal(logits(loaded, source, previous), logits(model, source, previous))


# In the dropout probes training's dropout was replaced by a factor, which a loaded model has not.
RECORDED_FILES = [name for name in t2t_golden.FILES if name != t2t_golden.PIECES and "probe" not in name]


@pytest.mark.parametrize("file", RECORDED_FILES)
def test_the_authors_logits(tmp_path: Path, file: str) -> None:
    config, arrays = t2t_golden.settings(file), t2t_golden.load(file)
    sinusoid = "paper" if config.get("pos") == "paper" else "t2t"
    flags = ("--heads", config["h"], "--sinusoid", sinusoid)
    _, model = imported(t2t_golden.FOLDER / f"{file}.npz", tmp_path / "out", *flags)
    source, targets = (torch.from_numpy(arrays[name]).long() for name in ("inputs", "targets"))
    previous = torch.cat([torch.ones(len(targets), 1, dtype=torch.long), targets[:, :-1]], dim=1)
    t2t_golden.assert_matches(file, "logits", logits(model, source, previous))


def test_a_checkpoint_of_tensorflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counters and slots are left out, the part tables joined; the model is the one in the .npz file."""
    _, model = imported(RECORDED, tmp_path / "out", "--heads", 4)
    printed = capsys.readouterr().out
    assert f"{RECORDED / f'model.ckpt-{STEP}'}: 49 variables, 250,000 updates" in printed
    assert "left out: 13 of the training (optimiser slots, global_step)" in printed
    assert "left out: 8 that are zero and not in the paper" in printed
    _, same = imported(t2t_golden.FOLDER / "beam_weak.npz", tmp_path / "same", "--heads", 4)
    for name, tensor in same.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name
    state = load_checkpoint(tmp_path / "out" / "checkpoint.pt")
    assert num_updates(state) == STEP


def test_what_is_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, sizes, variables = random_model(1, {})
    np.savez(tmp_path / "model.npz", **variables)  # type: ignore[arg-type]
    imported(tmp_path / "model.npz", tmp_path / "out", "--heads", 4)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    printed = capsys.readouterr().out
    assert f"{len(variables)} variables into {parameters:,} parameters" in printed
    assert "layers 2, d_model 32, d_ff 64, heads 4, d_k 8, d_v 8, embeddings shared, 61 rows" in printed
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "checkpoint.pt", "dict.de.txt", "dict.en.txt", "text_settings.json",
    ]  # fmt: skip
    state = load_checkpoint(tmp_path / "out" / "checkpoint.pt")
    assert state["last_optimizer_state"] is None
    # One table, stored once.
    tables = ("encoder.embedding.weight", "decoder.embedding.weight", "decoder.output.weight")
    assert len({state["model"][name].data_ptr() for name in tables}) == 1
    assert stored_settings(state, "task")["_name"] == "t2017_translation"
    stored = stored_settings(state, "model")
    for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v", "embeddings", "attention_bias", "decoder_start"):
        assert stored[name] == getattr(model.config, name), name
    assert (stored["sinusoid"], stored["layer_norm_eps"]) == ("t2t", 1e-6)
    assert stored_settings(state, "criterion")["smoothing_over"] == "others"
