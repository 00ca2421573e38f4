"""What each row of a Table 3 run found, read from its folder, and whether its pieces belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from recipes.stamps import settings_of
from recipes.table3.rows import SCALES, settings
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.runs import Run
from t2017_plugin.files import file_sha256

SIZES = {"layers": "N", "d_model": "d_model", "d_ff": "d_ff", "heads": "h", "d_k": "d_k", "d_v": "d_v"}
# Each step's output must be what the next one read: nothing of another training may stand beside it.
CHAIN = (
    ("train", "checkpoints/checkpoint_last.pt", "average"),
    ("average", "average.pt", "generate"),
    ("generate", "decode/generate.{target}", "score"),
)


def collect(run: Path, row: str) -> dict[str, Any] | None:
    """Return what one row's training and scoring found, or None when it has not been begun."""
    arm = Run(run / "rows" / row)
    if not (arm.folder / "row.yaml").exists():
        return None
    content = yaml.safe_load((arm.folder / "row.yaml").read_text(encoding="utf-8"))
    try:
        curves = arm.log
    except UsageError:
        return None
    complete = finished(run, row)
    bleu = arm.content("bleu.json") if complete else None
    first, last = (curves.validation[place] if curves.validation else None for place in (0, -1))
    model, seed = content["model"], content["common"]["seed"]
    scale = next((name for name in SCALES if settings(row, name, seed, None)["model"] == model), None)
    return {
        "row": row,
        "scale": scale,
        "model": {name: model[name] for name in (*SIZES, "dropout", "positions")},
        "label_smoothing": content["criterion"]["label_smoothing"],
        "conditions": conditions(run, row, content, scale),
        "seed": seed,
        "updates": curves.updates,
        "max_update": content["optimization"]["max_update"],
        "parameters": curves.parameters,
        "target_tokens": round(curves.target_tokens),
        "target_tokens_a_second": curves.tokens_per_second,
        "first_validation": {"updates": first.updates, "bits": first.bits} if first else None,
        "last_validation": {"updates": last.updates, "bits": last.bits} if last else None,
        "perplexity": 2**last.bits if last else None,
        "sacrebleu": bleu["sacrebleu"] if bleu else None,
        "paper_bleu": bleu["paper_bleu"] if bleu else None,
        "finished": bool(complete and last),
        "machine": arm.machine,
    }


def finished(run: Path, row: str) -> bool:
    """Whether a row was trained to its end by its settings file and scored, each step on what the one before made."""
    folder = run / "rows" / row
    stamps = {}
    for name in ("train", "average", "generate", "score"):
        stamp = Run(folder).stamp(name)
        if stamp is None:
            return False
        stamps[name] = stamp
    if stamps["train"]["settings_file"] != {"train": settings_of(folder / "row.yaml", "train")}:
        return False
    target = (Run(run).content("data.json") or {}).get("target_lang")
    for made, file, read in CHAIN:
        place = f"rows/{row}/{file.format(target=target)}"
        if stamps[made]["outputs"].get(place) != stamps[read]["inputs"].get(place, ""):
            return False
    # A training that was begun again has other weights; one whose checkpoints were thrown away is none.
    last = folder / "checkpoints" / "checkpoint_last.pt"
    return not last.exists() or file_sha256(last) in stamps["train"]["outputs"].values()


def conditions(run: Path, row: str, content: dict[str, Any], scale: str | None) -> dict[str, Any]:
    """Return what must be alike for two rows to be compared; length as a part of what the size's settings say."""
    stamp = Run(run / "rows" / row).stamp("train") or {"inputs": {}}
    whole = settings(row, scale, 1, None)["optimization"]["max_update"] if scale else None
    return {
        "scale": scale,
        "seed": content["common"]["seed"],
        "part_of_the_length": content["optimization"]["max_update"] / whole if whole else None,
        "max_tokens": content["dataset"]["max_tokens"],
        "lr_scheduler": content["lr_scheduler"],
        "data": stamp["inputs"],
    }
