"""The paper's experiments as settings files: configs/*.yaml and configs/table3/*.yaml are written by this module.

    python -m t2017_plugin.experiments.paper_configs configs

Sizes and dropout come from the architectures, the rest from section 5; a file lists every setting of its model, so that
each can be overridden under Hydra without a plus sign. A test fails when a file is not what this module writes.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.fairseq_side.architectures import architecture_settings as settings
from t2017_plugin.files import whole_or_nothing

GPUS, TOKENS = 8, 25_000
HYDRA = "fairseq-hydra-train --config-dir {folder} --config-name {name} task.data=DATA common.user_dir=t2017_plugin"


@dataclass(frozen=True)
class Experiment:
    """One run of the paper: what it is, what to expect, and what differs from base."""

    architecture: str
    title: str
    expect: str
    updates: int = 100_000
    # One checkpoint every ten minutes at the paper's speed: 0.4 s an update for base, 1.0 s for big (section 5.2).
    save_interval: int = 1_500
    averaged: int = 5
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    languages: tuple[str, str] = ("en", "de")
    # As printed in Table 3: perplexity a word-piece and BLEU on newstest2013.
    printed: tuple[float, float] | None = None


def row(architecture: str, what: str, perplexity: float, bleu: float, **changes: Any) -> Experiment:
    """A row of Table 3: base with one change, scored on newstest2013 without averaging."""
    expect = f"The paper: perplexity {perplexity} a word-piece, BLEU {bleu} on newstest2013, without averaging."
    title = f"Table 3, row {what}"
    return Experiment(architecture, title, expect, averaged=1, changes=changes, printed=(perplexity, bleu))


def big(architecture: str, title: str, expect: str, target: str = "de") -> Experiment:
    """A big model: 300,000 updates of about one second, the last 20 checkpoints averaged (sections 5.2 and 6.1)."""
    return Experiment(architecture, title, expect, 300_000, 600, averaged=20, languages=("en", target))


EXPERIMENTS: dict[str, Experiment] = {
    "base": Experiment("t2017_base", "Base, English-German (Table 2)", "The paper: BLEU 27.3 on newstest2014."),
    "big": big("t2017_big", "Big, English-German (Table 2)", "The paper: BLEU 28.4 on newstest2014."),
    "big_enfr": big(
        "t2017_big_enfr",
        "Big, English-French (Table 2): dropout 0.1 instead of 0.3 (section 6.1)",
        "The paper: BLEU 41.8 on newstest2014 in Table 2 and the abstract, 41.0 in the text of section 6.1.",
        target="fr",
    ),
    "parsing": Experiment(
        "t2017_parsing",
        "English constituency parsing, WSJ only (section 6.3, Table 4)",
        "The paper: F1 91.3 on section 23. Dropout, schedule and sizes it does not give are the authors' code's.",
        changes={
            "task": {"_name": "t2017_parsing", "extra_length": 300},
            "lr_scheduler": {"warmup_updates": 16_000, "noam_scale": 0.5},
            "generation": {"beam": 21, "lenpen": 0.3},
        },
        languages=("words", "tree"),
    ),
    "table3/base": row("t2017_base", "base", 4.92, 25.8),
    "table3/a_h1": row("t2017_a_h1", "A, h = 1", 5.29, 24.9),
    "table3/a_h4": row("t2017_a_h4", "A, h = 4", 5.00, 25.5),
    "table3/a_h16": row("t2017_a_h16", "A, h = 16", 4.91, 25.8),
    "table3/a_h32": row("t2017_a_h32", "A, h = 32", 5.01, 25.4),
    "table3/b_dk16": row("t2017_b_dk16", "B, d_k = 16", 5.16, 25.1),
    "table3/b_dk32": row("t2017_b_dk32", "B, d_k = 32", 5.01, 25.4),
    "table3/c_n2": row("t2017_c_n2", "C, N = 2", 6.11, 23.7),
    "table3/c_n4": row("t2017_c_n4", "C, N = 4", 5.19, 25.3),
    "table3/c_n8": row("t2017_c_n8", "C, N = 8", 4.88, 25.5),
    "table3/c_d256": row("t2017_c_d256", "C, d_model = 256, d_k = d_v = 32", 5.75, 24.5),
    "table3/c_d1024": row("t2017_c_d1024", "C, d_model = 1024, d_k = d_v = 128", 4.66, 26.0),
    "table3/c_ff1024": row("t2017_c_ff1024", "C, d_ff = 1024", 5.12, 25.4),
    "table3/c_ff4096": row("t2017_c_ff4096", "C, d_ff = 4096", 4.75, 26.2),
    "table3/d_drop0": row("t2017_d_drop0", "D, P_drop = 0.0", 5.77, 24.6),
    "table3/d_drop2": row("t2017_d_drop2", "D, P_drop = 0.2", 4.95, 25.5),
    "table3/d_ls0": row("t2017_base", "D, eps_ls = 0.0", 4.67, 25.3, criterion={"label_smoothing": 0.0}),
    "table3/d_ls2": row("t2017_base", "D, eps_ls = 0.2", 5.47, 25.7, criterion={"label_smoothing": 0.2}),
    "table3/e_learned": row("t2017_e_learned", "E, learned positions", 4.92, 25.7),
    "table3/big": replace(row("t2017_big", "big", 4.33, 26.4), updates=300_000, save_interval=600),
}


class Dumper(yaml.SafeDumper):
    """Writes mappings over several lines and lists on one."""

    def represent_list(self, data: list[Any]) -> yaml.Node:
        """A list as fairseq's own files write it: [1]."""
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


Dumper.add_representer(list, Dumper.represent_list)


def content(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """All settings of an experiment in fairseq's Hydra layout."""
    source, target = experiment.languages
    tree: dict[str, dict[str, Any]] = {
        "common": {
            "user_dir": "${oc.env:PWD}/t2017_plugin",
            "seed": 1,
            "fp16": True,
            "log_format": "simple",
            "log_interval": 100,
        },
        "distributed_training": {"distributed_world_size": GPUS},
        "task": {
            "_name": "t2017_translation",
            "data": "???",
            "source_lang": source,
            "target_lang": target,
            "search": "paper",
            "length_penalty_form": "gnmt",
            "extra_length": 50,
        },
        "model": {"_name": "t2017_transformer", **settings(experiment.architecture)},
        "criterion": {"_name": "t2017_label_smoothing", "label_smoothing": 0.1, "smoothing_over": "all"},
        "optimizer": {
            "_name": "t2017_adam",
            "adam_betas": "(0.9, 0.98)",
            "adam_eps": 1e-9,
            "adam_epsilon_form": "paper",
        },
        "lr_scheduler": {"_name": "t2017_noam", "warmup_updates": 4000, "noam_scale": 1.0},
        "optimization": {"max_update": experiment.updates, "update_freq": [1]},
        "dataset": {"max_tokens": TOKENS // GPUS, "required_batch_size_multiple": 1, "num_workers": 2},
        "checkpoint": {
            "save_interval_updates": experiment.save_interval,
            "keep_interval_updates": max(experiment.averaged, 5),
            "no_epoch_checkpoints": True,
        },
        "generation": {"beam": 4, "lenpen": 0.6, "min_len": -1},
        "hydra": {"run": {"dir": "."}},
    }
    for section, values in experiment.changes.items():
        tree[section].update(values)
    return tree


def text(name: str, experiment: Experiment) -> str:
    """The file, header included."""
    folder, _, file = f"configs/{name}".rpartition("/")
    averaging = f"the last {experiment.averaged} checkpoints averaged" if experiment.averaged > 1 else "no averaging"
    header = [
        f"{experiment.title}.",
        experiment.expect,
        f"{experiment.updates:,} updates of about {TOKENS:,} source and target tokens; {averaging}.",
        f"Written for {GPUS} GPUs; with G of them distributed_training.distributed_world_size=G and",
        f"optimization.update_freq=[{GPUS}/G]; on a CPU also common.fp16=false common.cpu=true.",
        "",
        "Launch, in the checkout:",
        f"  {HYDRA.format(folder=folder, name=file)}",
        "",
        f"Same as --arch {experiment.architecture}. Written by t2017_plugin/experiments/paper_configs.py.",
    ]
    lines = [f"# {line}".rstrip() for line in header]
    body = yaml.dump(content(experiment), Dumper=Dumper, sort_keys=False, width=110)
    return "\n".join(lines) + "\n" + body


def main(argv: Sequence[str] | None = None) -> int:
    """Write all files below a folder."""
    parser = argparse.ArgumentParser(description="Write the settings files of the paper's experiments.")
    parser.add_argument("folder", type=Path, help="where to, usually configs")
    folder: Path = parser.parse_args(argv).folder
    for name, experiment in EXPERIMENTS.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_or_nothing(path) as unfinished:
            unfinished.write_text(text(name, experiment), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
