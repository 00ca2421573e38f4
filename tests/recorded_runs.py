"""Runs as the recipes leave them, written from text: what ``t2017 compare`` reads."""

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.commands.score import scores_of

ROOT = Path(__file__).resolve().parents[1]
REFERENCES = [f"Die Lampe {number} im Flur wurde von Haus-Automat {number + 3} eingeschaltet ." for number in range(40)]
DATA = {"data-bin/dict.en.txt": "a" * 64, "data-bin/train.en-de.en.bin": "b" * 64}


def interval(updates: int, nll: float, wps: float, extra: str = "") -> str:
    """Write a line of fairseq's format ``simple`` about 50 updates of 900 target tokens."""
    return (
        f"2026-11-30 00:58:53 | INFO | train_inner | epoch 014:    126 / 298 loss={nll + 1.5:.3f}, nll_loss={nll}, "
        f"ppl=4.3, wps={wps}, ups=7.04, wpb=900, bsz=62.2, num_updates={updates}, lr=0.00279474, gnorm=0.9, "
        f"{extra}train_wall=7, wall=504"
    )


def validation(updates: int, nll: float) -> str:
    """Write a line about the validation set."""
    return (
        f"2026-11-30 00:14:18 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 9.974 | nll_loss {nll} | "
        f"ppl 753.85 | wps 2126.5 | wpb 662.4 | bsz 40.8 | num_updates {updates} | best_loss 9.974"
    )


def log(nll: float = 2.0, wps: float = 9000.0) -> list[str]:
    """200 updates whose training loss ends at ``nll``, validated every 100."""
    lines = [
        "2026-11-30 00:50:30 | INFO | fairseq_cli.train | num. shared model params: 1,449,984 (num. trained: 1,449,984)"
    ]
    for number in range(1, 5):
        lines.append(interval(50 * number, nll + 4 - number, wps))
        if number % 2 == 0:
            lines.append(validation(50 * number, round(nll + 4.5 - number, 3)))
    return [*lines, "2026-11-30 00:59:00 | INFO | fairseq_cli.train | done training in 503.3 seconds"]


def spoiled(every: int, first: int = 0) -> list[str]:
    """Make translations: the references, but one in ``every`` lines, from line ``first`` on, lacks its last words."""
    return [line if number % every != first else " ".join(line.split()[:-3]) for number, line in enumerate(REFERENCES)]


def make_run(
    base: Path, place: str, seed: int = 1, hypotheses: list[str] | None = None, stock: bool = False, **facts: Any
) -> Path:
    """Write a run; ``facts`` may hold ``log`` (lines), ``data``, ``references`` and ``overrides`` of the settings."""
    hypotheses = hypotheses or spoiled(4)
    references = facts.get("references", REFERENCES)
    folder = base / place
    for name in ("logs", "steps", "decode"):
        (folder / name).mkdir(parents=True)
    (base / "corpus").mkdir(exist_ok=True)
    texts = {folder / "decode" / "generate.de": hypotheses, base / "corpus" / "test.de": references}
    hashes = {}
    for path, lines in texts.items():
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        hashes[str(path.relative_to(base))] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "logs" / "train.log").write_text("\n".join(facts.get("log", log())) + "\n", encoding="utf-8")
    settings = yaml.safe_load(
        (ROOT / "configs" / ("stock" if stock else ".") / "demo.yaml").read_text(encoding="utf-8")
    )
    settings["common"]["seed"] = seed
    overrides = facts.get("overrides", [])
    decoding = {name: settings[name] for name in ("generation", "task", "common", "dataset")}
    training = {name: value for name, value in settings.items() if name not in ("generation", "hydra")}
    write = {
        "steps/train.json": {
            "inputs": facts.get("data", DATA), "settings": overrides, "settings_file": {"train": training}
        },
        "steps/generate.json": {"inputs": {}, "settings": overrides, "settings_file": {"generate": decoding}},
        "steps/score.json": {"inputs": hashes, "settings": [], "settings_file": {}},
        "bleu.json": scores_of(hypotheses, references, "de"),
        "machine.json": {"packages": {"torch": "2.13.0"}, "python": "3.11.7", "processor": "p", "gpus": []},
        "memory.json": {"peak_resident_bytes": 512 * 2**20},
    }  # fmt: skip
    for name, content in write.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder
