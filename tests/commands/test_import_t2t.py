"""An imported Tensor2Tensor model under fairseq's own programs and in Python."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from t2017_plugin import T2017Transformer, Translator
from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.commands import main as cli
from tests.commands.fairseq_runs import QUIET, TASK, Outcome, generation, run_here
from tests.parity import t2t_golden

pytestmark = pytest.mark.commands

FILE = "beam_trained"
GOLDEN = t2t_golden.FOLDER / f"{FILE}.npz"
LANGUAGES = ("--source-lang", "en", "--target-lang", "de")
SINGLE = re.compile(r"beam4_alpha0.6_extra50_single/(\d+)/ids")


@dataclass(frozen=True)
class Imported:
    """The recorded model in ``folder``, the recorded sentences as text (``test.en``) and binarised."""

    folder: Path
    text: Path
    data_bin: Path

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"


def words(ids: Any) -> str:
    """Write recorded ids as the words of the vocabulary below."""
    return " ".join(f"w{number}" for number in ids if number > 1)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """With a vocabulary file that leaves out the special symbols."""
    base = tmp_path_factory.mktemp("imported")
    arrays = t2t_golden.load(FILE)
    (base / "vocab").write_text("".join(f"w{number}\n" for number in range(2, 44)))
    for language, key in (("en", "inputs"), ("de", "targets")):
        (base / f"test.{language}").write_text("".join(f"{words(row)}\n" for row in arrays[key]))
    call = ["import-t2t", GOLDEN, *LANGUAGES, "--heads", "4", "--vocab", base / "vocab", "--output", base / "model"]
    assert cli.main([str(argument) for argument in call]) == 0
    outcome = run_here(
        "preprocess", *TASK, *LANGUAGES,
        *("--srcdict", base / "model" / "dict.en.txt", "--tgtdict", base / "model" / "dict.de.txt"),
        *("--trainpref", base / "test", "--validpref", base / "test", "--testpref", base / "test"),
        *("--destdir", base / "data-bin", "--workers", "1"),
    )  # fmt: skip
    assert outcome.status == 0, outcome.error
    return Imported(base / "model", base / "test.en", base / "data-bin")


def lists(outcome: Outcome) -> dict[int, list[tuple[float, str]]]:
    """All hypotheses of each sentence: score in nats and text, best first."""
    assert outcome.status == 0, outcome.error
    found: dict[int, list[tuple[float, str]]] = {}
    for number, score, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", outcome.output, flags=re.MULTILINE):
        found.setdefault(int(number), []).append((float(score) * math.log(2), text))
    return found


def test_dictionaries_have_t2ts_ids(imported: Imported) -> None:
    """fairseq-preprocess keeps them as they are."""
    symbols = ["<pad>", "<EOS>", *(f"w{number}" for number in range(2, 44))]
    for folder in (imported.folder, imported.data_bin):
        lines = (folder / "dict.en.txt").read_text().splitlines()
        assert [line.split()[0] for line in lines] == symbols


def test_generate_gives_the_authors_lists(imported: Imported) -> None:
    """All four hypotheses of each sentence that the authors' code searched alone; scores in nats."""
    outcome = run_here("generate", *generation(imported.data_bin, imported.checkpoint, "--nbest", 4))
    ours, arrays, compared = lists(outcome), t2t_golden.load(FILE), 0
    for key in arrays:
        if single := SINGLE.fullmatch(key):
            ids, scores = arrays[key][0], arrays[key.removesuffix("ids") + "scores"][0]
            # Column 0 is no token; a list may have unfilled places.
            recorded = [(float(score), words(row[1:])) for row, score in zip(ids, scores, strict=True) if score > -1e6]
            found = ours[int(single[1])]
            assert [text for _, text in found] == [text for _, text in recorded]
            assert [score for score, _ in found] == pytest.approx([score for score, _ in recorded], abs=1e-4)
            compared += 1
    assert compared > 0
    batch = arrays["beam4_alpha0.6_extra50/ids"][:, 0]
    assert [ours[number][0][1] for number in range(len(batch))] == [words(row[1:]) for row in batch]


def test_generate_as_for_parsing(imported: Imported) -> None:
    """Beam 21, alpha 0.3: with 44 types T2T's lower hypotheses hold padding, which is not generated here."""
    flags = ("--beam", 21, "--lenpen", 0.3, "--extra-length", 300)
    ours = lists(run_here("generate", *generation(imported.data_bin, imported.checkpoint, *flags)))
    recorded = t2t_golden.load(FILE)["beam21_alpha0.3_extra300/ids"][:, 0]
    assert [ours[number][0][1] for number in range(len(recorded))] == [words(row[1:]) for row in recorded]


def test_interactive_translate_and_python(imported: Imported) -> None:
    """The folder of the import is data-bin enough for all of them."""
    best = t2t_golden.load(FILE)["beam4_alpha0.6_extra50/ids"][:, 0]
    expected, source = [words(row[1:]) for row in best], imported.text.read_text()
    call = generation(imported.folder, imported.checkpoint, *LANGUAGES)
    outcome = run_here("interactive", *call, stdin=source)
    assert outcome.status == 0, outcome.error
    assert list(outcome.texts("D").values()) == expected
    translator = Translator.load(imported.checkpoint, imported.folder, device="cpu")
    assert translator.translate(source.splitlines()) == expected
    hub = T2017Transformer.from_pretrained(
        str(imported.folder), "checkpoint.pt", str(imported.folder), source_lang="en", target_lang="de"
    )
    assert hub.translate(source.splitlines()) == expected


def test_words_outside_the_vocabulary(imported: Imported) -> None:
    """The translator leaves them out and counts them, so that a line stays a line; fairseq's programs stop."""
    translator = Translator.load(imported.checkpoint, imported.folder, device="cpu")
    line = imported.text.read_text().splitlines()[0]
    first, rest = line.split(" ", 1)
    assert translator.translate([f"{first} other {rest} <EOS>", line]) == translator.translate([line, line])
    assert translator.unknown == 2
    call = generation(imported.folder, imported.checkpoint, *LANGUAGES)
    outcome = run_here("interactive", *call, stdin="w3 other\n")
    assert outcome.status == 1 and "'other' is not in the vocabulary" in outcome.error


def test_validate_gives_the_authors_loss(imported: Imported) -> None:
    """By the stored settings of the loss. T2T takes its least possible value off; fairseq logs bits, three digits."""
    flags = ("--valid-subset", "valid", "--batch-size", 8, "--log-format", "json")
    outcome = run_here("validate", *generation(imported.data_bin, imported.checkpoint, *flags))
    assert outcome.status == 0, outcome.error
    (line,) = outcome.logged("valid")
    eps, classes = 0.1, t2t_golden.settings(FILE)["vout"]
    least = -((1 - eps) * math.log(1 - eps) + eps * math.log(eps / (classes - 1)))
    recorded = (float(t2t_golden.load(FILE)["loss_total"]) + least) / math.log(2)
    assert line["valid_loss"] == pytest.approx(recorded, abs=0.0006)


@pytest.mark.parametrize("way", ["--finetune-from-model", "--restore-file"])
def test_training_goes_on(imported: Imported, tmp_path: Path, way: str) -> None:
    """With the flags that the command prints; one update with a learning rate near zero leaves the weights."""
    model = ("--arch", "t2017_base", "--layers", 1, "--d-model", 32, "--d-ff", 64, "--heads", 4, "--d-k", 8)
    model += ("--d-v", 8, "--dropout", 0.1, "--sinusoid", "t2t")
    paper = ("--optimizer", "t2017_adam", "--lr-scheduler", "t2017_noam", "--noam-scale", 1e-6)
    outcome = run_here(
        "train", imported.data_bin, *TASK, *model, *paper, "--criterion", "t2017_label_smoothing",
        *("--max-tokens", 200, "--max-update", 1, "--save-dir", tmp_path, "--disable-validation"),
        *(way, imported.checkpoint, *QUIET),
    )  # fmt: skip
    assert outcome.status == 0, outcome.error
    before, after = (load_checkpoint(path)["model"] for path in (imported.checkpoint, tmp_path / "checkpoint_last.pt"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.allclose(after[name], tensor, atol=1e-6), name


def test_raw_text_with_the_models_bpe(tmp_path: Path, corpus: Any) -> None:
    """With its codes and Moses the translator takes raw text; the units are the vocabulary's."""
    lines = (corpus.data_bin / "dict.en.txt").read_text().splitlines()
    units = [line.split()[0] for line in lines]
    (tmp_path / "vocab.bpe").write_text("".join(f"{unit}\n" for unit in units))
    assert len(units) + 2 <= 44
    call = ["import-t2t", GOLDEN, *LANGUAGES, "--heads", "4", "--vocab", tmp_path / "vocab.bpe"]
    assert cli.main([str(part) for part in [*call, "--bpe-codes", corpus.codes, "--output", tmp_path / "out"]]) == 0
    translator = Translator.load(tmp_path / "out" / "checkpoint.pt", tmp_path / "out", device="cpu")
    translated = translator.translate(["one two three.", ""])
    assert translator.unknown == 0 and translator.units > 4
    assert translated[0] and "@@" not in translated[0] and translated[1] == ""
