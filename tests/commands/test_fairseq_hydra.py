"""fairseq-hydra-train: the model as a section of a settings file, with absolute and relative paths."""

from pathlib import Path

import pytest
import torch

from tests.commands.fairseq_runs import PLUGIN, Corpus, finish_all, generation, run, run_here, start, training

pytestmark = pytest.mark.commands

# The tiny model and the settings of the command lines in fairseq_runs.py, as YAML.
SETTINGS = """\
hydra: {{run: {{dir: .}}}}
common: {{user_dir: {user_dir}, cpu: true, seed: 3, log_format: json, log_interval: 1}}
task: {{_name: t2017_translation, data: {data}}}
dataset: {{max_tokens: 400, num_workers: 0, required_batch_size_multiple: 1, disable_validation: true}}
optimization: {{max_update: 6}}
optimizer: {{_name: t2017_adam}}
lr_scheduler: {{_name: t2017_noam, warmup_updates: 30, noam_scale: 0.2}}
criterion: {{_name: t2017_label_smoothing}}
checkpoint: {{save_dir: {save_dir}, no_epoch_checkpoints: true}}
model: {{_name: t2017_transformer, layers: 2, d_model: 32, d_ff: 64, heads: 4, d_k: 8, d_v: 8}}
"""


@pytest.mark.slow
def test_paths_and_overrides(corpus: Corpus, tmp_path: Path) -> None:
    """Three runs at once, each from a directory of its own; the same weights as fairseq-train's by flags."""
    runs = {name: tmp_path / name for name in ("absolute", "relative", "override")}
    for name, folder in runs.items():
        folder.mkdir()
        paths = {"user_dir": str(PLUGIN), "data": str(corpus.data_bin), "save_dir": str(folder / "out")}
        if name == "relative":
            (folder / "bin").symlink_to(corpus.data_bin)
            up = "/".join([".."] * (len(folder.parts) - 1))
            paths = {"user_dir": up + str(PLUGIN), "data": "bin", "save_dir": "out"}
        (folder / "tiny.yaml").write_text(SETTINGS.format(**paths))
    call = ("fairseq-hydra-train", "--config-dir", ".", "--config-name", "tiny")
    running = {name: start(call, cwd=folder) for name, folder in runs.items() if name != "override"}
    running["override"] = start([*call, "model.layers=1", "+model.sinusoid=t2t"], cwd=runs["override"])
    for name, outcome in zip(running, finish_all(list(running.values())), strict=True):
        assert outcome.status == 0, (name, outcome.error[-2000:])
    states = {
        name: torch.load(folder / "out" / "checkpoint_last.pt", weights_only=True) for name, folder in runs.items()
    }
    by_flags = tmp_path / "flags"
    more = ("--max-update", 6, "--disable-validation", "--no-epoch-checkpoints")
    assert run_here("train", *training(corpus.data_bin, by_flags, *more)).status == 0
    expected = torch.load(by_flags / "checkpoint_last.pt", weights_only=True)["model"]
    for name in ("absolute", "relative"):
        assert states[name]["model"].keys() == expected.keys()
        assert all(torch.equal(states[name]["model"][weight], expected[weight]) for weight in expected)
    assert not any("layers.1" in weight for weight in states["override"]["model"])
    # And fairseq-generate reads such a checkpoint.
    generated = run_here("generate", *generation(corpus.data_bin, runs["absolute"] / "out" / "checkpoint_last.pt"))
    assert generated.status == 0 and len(generated.lines("H")) == 21


def test_a_misspelt_setting_is_named(corpus: Corpus, tmp_path: Path) -> None:
    text = SETTINGS.format(user_dir=PLUGIN, data=corpus.data_bin, save_dir=tmp_path / "out")
    (tmp_path / "tiny.yaml").write_text(text.replace("d_model: 32", "dmodel: 32"))
    outcome = run("fairseq-hydra-train", "--config-dir", ".", "--config-name", "tiny", cwd=tmp_path)
    assert outcome.status != 0
    assert "dmodel" in outcome.error and "T2017TransformerConfig" in outcome.error
    assert not list(tmp_path.glob("out/*.pt"))
