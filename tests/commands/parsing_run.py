"""A tiny parsing model, trained by fairseq's own programs on trees of a small grammar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recipes.wsj_parsing import corpus, units
from t2017_plugin.text.pipeline import TextSettings
from tests.commands.fairseq_runs import PLUGIN, QUIET, TINY, run_here

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class ParsingRun:
    """Trees and words (``test.gold``, ``test.words``), the data-bin and a checkpoint."""

    corpus: Path
    data_bin: Path
    checkpoint: Path


def make_parsing_run(folder: Path, trees: int = 400, updates: int = 150) -> ParsingRun:
    """Prepare as the recipe's first step does, then train."""
    made = ParsingRun(folder / "corpus", folder / "data-bin", folder / "checkpoints" / "checkpoint_last.pt")
    text = folder / "text"
    corpus.main(["--output", str(made.corpus), "--generated-trees", str(trees)])
    units.main(["--corpus", str(made.corpus), "--output", str(text), "--merges", "100"])
    prefixes = [part for split in SPLITS for part in (f"--{split}pref", text / f"{split}.bpe")]
    sides = ("--source-lang", "words", "--target-lang", "tree")
    outcome = run_here("preprocess", *sides, *prefixes, "--destdir", made.data_bin)
    assert outcome.status == 0, outcome.error
    (made.data_bin / "codes").write_bytes((text / "codes").read_bytes())
    TextSettings("words", "tree", tokenizer="none", bpe_codes="codes").save(made.data_bin)
    outcome = run_here(
        "train",
        *(made.data_bin, "--user-dir", PLUGIN, "--task", "t2017_parsing", *sides, *TINY, "--dropout", "0"),
        *("--embeddings", "separate", "--optimizer", "t2017_adam", "--lr-scheduler", "t2017_noam"),
        *("--warmup-updates", "50", "--noam-scale", "0.4", "--criterion", "t2017_label_smoothing"),
        *("--max-tokens", "1500", "--max-update", updates, "--save-dir", made.checkpoint.parent, *QUIET),
        *("--no-epoch-checkpoints", "--disable-validation"),
    )
    assert outcome.status == 0, outcome.error
    return made
