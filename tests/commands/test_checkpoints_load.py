"""A checkpoint with all that fairseq and the plugin put into one loads in every tool, weights-only loading left on."""

import argparse
import io
import sys
from types import SimpleNamespace

import numpy
import pytest
import torch

from t2017_plugin import Translator
from t2017_plugin.checkpoints.loading import load_checkpoint, num_updates
from t2017_plugin.commands import main as cli
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.text.pipeline import TextSettings
from tests.commands.fairseq_runs import generation, run, run_here, training


@pytest.fixture(scope="module")
def full(trained, tmp_path_factory):
    """The trained model in a file that torch's defaults refuse."""
    state = torch.load(trained, map_location="cpu")
    state["extra_state"]["best"] = numpy.float64(1.5)
    state["extra_state"]["scores"] = {"counts": numpy.arange(4), "lengths": numpy.int64(7)}
    state["cfg"]["common"] = argparse.Namespace(**state["cfg"]["common"])
    state["task_state"] = {"model": T2017TransformerConfig(d_model=32)}
    path = tmp_path_factory.mktemp("full") / "checkpoint_last.pt"
    torch.save(state, path)
    refused = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    # Registered by the plugin's import, so none is left; the file does hold them.
    assert refused == []
    content = path.read_bytes()
    for name in (b"argparse\nNamespace", b"multiarray\nscalar", b"T2017TransformerConfig"):
        assert name in content
    return path


def test_stock_generate_with_the_plugin(corpus, full):
    """In a process of its own, where only --user-dir imports the plugin."""
    outcome = run("fairseq-generate", *generation(corpus.data_bin, full))
    assert outcome.status == 0, outcome.error[-2000:]
    assert len(outcome.lines("H")) == 21


def test_stock_interactive(corpus, full):
    outcome = run_here("interactive", *generation(corpus.data_bin, full), stdin="one two .\n")
    assert outcome.status == 0, outcome.error
    assert len(outcome.lines("H")) == 1


def test_training_goes_on_from_it(corpus, full, tmp_path):
    before = num_updates(load_checkpoint(full))
    more = ("--restore-file", full, "--reset-dataloader", "--max-update", before + 2, "--disable-validation")
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *more))
    assert outcome.status == 0, outcome.error
    assert outcome.logged("train_inner")[0]["num_updates"] == before + 1


def test_average_then_every_way_to_decode(corpus, full, tmp_path, capsys):
    average = tmp_path / "average.pt"
    assert cli.main(["average", "--output", str(average), str(full)]) == 0
    capsys.readouterr()
    state = load_checkpoint(average)
    assert state["last_optimizer_state"] is None and average.stat().st_size < full.stat().st_size / 2
    TextSettings("en", "de", bpe_codes="../codes").save(corpus.data_bin)
    translations = Translator.load(average, corpus.data_bin).translate(["one two."])
    assert translations == Translator.load(full, corpus.data_bin).translate(["one two."])
    outcome = run_here("generate", *generation(corpus.data_bin, average))
    assert outcome.status == 0 and len(outcome.lines("H")) == 21


def test_from_pretrained_translates_a_line_and_a_list(corpus, full):
    hub = T2017Transformer.from_pretrained(str(full.parent), full.name, str(corpus.data_bin))
    assert hub.translate(["one two ."]) == [hub.translate("one two .")]


def test_a_stock_model_with_the_arrays_that_eval_bleu_leaves(corpus, tmp_path, monkeypatch, capsysbinary):
    """Stock fairseq-train --eval-bleu logs numpy arrays and saves them; the model is searched as ours is."""
    sizes = [f"--{side}-{name}={value}" for side in ("encoder", "decoder") for name, value in (
        ("layers", 1), ("embed-dim", 32), ("ffn-embed-dim", 64), ("attention-heads", 4))]  # fmt: skip
    outcome = run_here(
        "train", corpus.data_bin, "--arch", "transformer", "--share-all-embeddings", *sizes, "--optimizer", "adam",
        "--lr", "0.003", "--criterion", "label_smoothed_cross_entropy", "--max-tokens", 1000, "--max-update", 3,
        "--eval-bleu", "--eval-bleu-remove-bpe", "--save-dir", tmp_path, "--no-epoch-checkpoints", "--cpu",
    )  # fmt: skip
    assert outcome.status == 0, outcome.error
    stock = tmp_path / "checkpoint_last.pt"
    assert b"multiarray" in stock.read_bytes()
    TextSettings("en", "de", bpe_codes="../codes").save(corpus.data_bin)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"one two.\n\nthree.\n")))
    assert cli.main(["translate", "--checkpoint", str(stock), "--data-bin", str(corpus.data_bin)]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == 3
