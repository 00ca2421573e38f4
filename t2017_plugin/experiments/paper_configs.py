"""The paper's experiments as settings files: configs/*.yaml and configs/table3/*.yaml are written by this module.

    python -m t2017_plugin.experiments.paper_configs configs

Sizes and dropout come from the architectures, the rest from ``paper.config`` and ``paper.table3``.
A file lists every setting of its model, so that each can be overridden under Hydra without a plus
sign. A test fails when a file is not what this module writes.
"""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.fairseq_side.architectures import architecture_settings
from t2017_plugin.files import whole_or_nothing
from t2017_plugin.paper.config import AVERAGED, AVERAGED_BIG, PARSING_SEARCH, Search, Training
from t2017_plugin.paper.table3 import BY_NAME, ROWS, Row

HYDRA = "fairseq-hydra-train --config-dir {folder} --config-name {name} task.data=DATA common.user_dir=t2017_plugin"


@dataclass(frozen=True)
class Experiment:
    """One run of the paper: what it is, what to expect, and what differs from base."""

    architecture: str
    title: str
    expect: str
    training: Training = Training()
    search: Search = Search()
    averaged: int = AVERAGED  # how many of the last checkpoints; 1 for none
    task: str = "t2017_translation"
    languages: tuple[str, str] = ("en", "de")
    # The rate of the authors' program for parsing is half of equation (3).
    noam_scale: float = 1.0
    row: Row | None = None  # of Table 3, with what the paper prints

    @property
    def printed(self) -> tuple[float, float] | None:
        """Perplexity per word-piece and BLEU on newstest2013, as Table 3 prints them, for one of its rows."""
        return (self.row.perplexity, self.row.bleu) if self.row else None

    @property
    def save_interval(self) -> int:
        """Updates between two checkpoints: ten minutes at 0.4 s per update for base, 1.0 s for big (section 5.2)."""
        return 1_500 if self.training.train_steps == Training().train_steps else 600


def of_row(row: Row) -> Experiment:
    """Return the experiment of a row of Table 3, scored on newstest2013 without averaging."""
    return Experiment(
        # Rows that change the training alone have no architecture of their own.
        f"t2017_{row.name}" if row.model else "t2017_base",
        f"Table 3, row {', '.join(filter(None, (row.group, row.what)))}",
        f"The paper: perplexity {row.perplexity} a word-piece, BLEU {row.bleu} on newstest2013, without averaging.",
        training=row.training_config(),
        averaged=1,
        row=row,
    )


BIG = BY_NAME["big"].training_config()
EXPERIMENTS: dict[str, Experiment] = {
    "base": Experiment("t2017_base", "Base, English-German (Table 2)", "The paper: BLEU 27.3 on newstest2014."),
    "big": Experiment(
        "t2017_big",
        "Big, English-German (Table 2)",
        "The paper: BLEU 28.4 on newstest2014.",
        training=BIG,
        averaged=AVERAGED_BIG,
    ),
    "big_enfr": Experiment(
        "t2017_big_enfr",
        "Big, English-French (Table 2): dropout 0.1 instead of 0.3 (section 6.1)",
        "The paper: BLEU 41.8 on newstest2014 in Table 2 and the abstract, 41.0 in the text of section 6.1.",
        training=BIG,
        averaged=AVERAGED_BIG,
        languages=("en", "fr"),
    ),
    "parsing": Experiment(
        "t2017_parsing",
        "English constituency parsing, WSJ only (section 6.3, Table 4)",
        "The paper: F1 91.3 on section 23. Dropout, schedule and sizes it does not give are the authors' code's.",
        training=Training(warmup_steps=16_000),
        search=PARSING_SEARCH,
        task="t2017_parsing",
        languages=("words", "tree"),
        noam_scale=0.5,
    ),
    **{f"table3/{row.name}": of_row(row) for row in ROWS},
}


class Dumper(yaml.SafeDumper):
    """Writes mappings over several lines and lists on one."""

    def represent_list(self, data: list[Any]) -> yaml.Node:
        """Represent a list as fairseq's own files write it: [1]."""
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


Dumper.add_representer(list, Dumper.represent_list)


def content(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return all settings of an experiment in fairseq's Hydra layout."""
    source, target = experiment.languages
    training, search = experiment.training, experiment.search
    return {
        "common": {
            "user_dir": "${oc.env:PWD}/t2017_plugin",
            "seed": 1,
            "fp16": True,
            "log_format": "simple",
            "log_interval": 100,
        },
        "distributed_training": {"distributed_world_size": training.gpus},
        "task": {
            "_name": experiment.task,
            "data": "???",
            "source_lang": source,
            "target_lang": target,
            "search": "paper",
            "length_penalty_form": search.length_penalty,
            "extra_length": search.extra,
        },
        "model": {"_name": "t2017_transformer", **architecture_settings(experiment.architecture)},
        "criterion": {
            "_name": "t2017_label_smoothing",
            "label_smoothing": training.eps_ls,
            "smoothing_over": training.smoothing_over,
        },
        "optimizer": {
            "_name": "t2017_adam",
            "adam_betas": f"({training.beta_1}, {training.beta_2})",
            "adam_eps": training.epsilon,
            "adam_epsilon_form": training.epsilon_form,
        },
        "lr_scheduler": {
            "_name": "t2017_noam",
            "warmup_updates": training.warmup_steps,
            "noam_scale": experiment.noam_scale,
        },
        "optimization": {"max_update": training.train_steps, "update_freq": [1]},
        "dataset": {
            "max_tokens": training.tokens // training.gpus,
            "required_batch_size_multiple": 1,
            "num_workers": 2,
        },
        "checkpoint": {
            "save_interval_updates": experiment.save_interval,
            "keep_interval_updates": max(experiment.averaged, AVERAGED),
            "no_epoch_checkpoints": True,
        },
        "generation": {"beam": search.beam, "lenpen": search.alpha, "min_len": -1},
        "hydra": {"run": {"dir": "."}},
    }


def text(name: str, experiment: Experiment) -> str:
    """Return the file, header included."""
    training = experiment.training
    folder, _, file = f"configs/{name}".rpartition("/")
    averaging = f"the last {experiment.averaged} checkpoints averaged" if experiment.averaged > 1 else "no averaging"
    header = [
        f"{experiment.title}.",
        experiment.expect,
        f"{training.train_steps:,} updates of about {training.tokens:,} source and target tokens; {averaging}.",
        f"Written for {training.gpus} GPUs; with G of them distributed_training.distributed_world_size=G and",
        f"optimization.update_freq=[{training.gpus}/G]; on a CPU also common.fp16=false common.cpu=true.",
        "",
        "Launch, in the checkout:",
        *f"  {HYDRA.format(folder=folder, name=file)}".replace(" task.data", " \\\n      task.data").split("\n"),
        "",
        f"Same as --arch {experiment.architecture}. Written by t2017_plugin/experiments/paper_configs.py.",
    ]
    lines = [f"# {part}".rstrip() for line in header for part in textwrap.wrap(line, 98) or [""]]
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
