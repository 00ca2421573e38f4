"""The plugin as fairseq finds it: user-dir, installed copy, architectures, flags, nothing else touched."""

import dataclasses
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import models, options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.registry import REGISTRIES

import t2017_plugin  # noqa: F401  (registers)
from tests.commands.fairseq_runs import PAPER, PLUGIN, Corpus, environment, finish_all, run_here, start, training

pytestmark = pytest.mark.commands

ARCHITECTURES = sorted(
    name for name, model in models.ARCH_MODEL_REGISTRY.items() if model.__name__ == "T2017Transformer"
)


@pytest.mark.slow
def test_by_path_and_installed_from_another_directory(corpus: Corpus, tmp_path: Path) -> None:
    """A relative path with a trailing slash; an installed copy by its path; the checkout beside an installed copy."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    installed = tmp_path / "site-packages"
    shutil.copytree(PLUGIN, installed / "t2017_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    relative = Path(*[".."] * (len(elsewhere.parts) - 1), *PLUGIN.parts[1:])
    cases = {
        "relative": (f"{relative}/", {}),
        "installed": (installed / "t2017_plugin", {"PYTHONPATH": str(installed)}),
        "both": (PLUGIN, {"PYTHONPATH": str(installed)}),
    }
    more = ("--max-update", 1, "--disable-validation")
    running = {
        name: start(
            ["fairseq-train", *training(corpus.data_bin, tmp_path / name, *more, "--user-dir", path)],
            cwd=elsewhere,
            variables=variables,
        )
        for name, (path, variables) in cases.items()
    }
    for name, outcome in zip(running, finish_all(list(running.values())), strict=True):
        assert outcome.status == 0, (name, outcome.error)
        assert (tmp_path / name / "checkpoint_last.pt").is_file()
    assert not list(elsewhere.iterdir())


SIDE_EFFECTS = """
import copy, logging, os, random, signal, sys, warnings
import numpy, torch
import fairseq.tasks.translation, fairseq.hub_utils, fairseq.criterions, fairseq.optim, fairseq.models
from argparse import Namespace
from fairseq.utils import import_user_module

def state():
    root = logging.getLogger()
    return {
        "random": (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()),
        "torch": (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(),
                  torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()),
        "logging": (root.level, list(root.handlers), logging.raiseExceptions),
        "warnings": list(warnings.filters),
        "process": (os.getcwd(), dict(os.environ), list(sys.argv), sys.excepthook, sys.stdout, sys.stderr),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "folder": sorted(os.listdir(".")),
        "torch.load": torch.load,
    }

before, path = state(), list(sys.path)
import_user_module(Namespace(user_dir=sys.argv[1]))
import_user_module(Namespace(user_dir=sys.argv[1] + "/"))
after = state()
assert [name for name in before if before[name] != after[name]] == []
assert [p for p in sys.path if p not in path] == [os.path.dirname(sys.argv[1])]
import t2017_plugin
assert "fairseq_cli.train" not in sys.modules and "t2017_plugin.text.translator" not in sys.modules
from fairseq.models import MODEL_REGISTRY
assert "t2017_transformer" in MODEL_REGISTRY
print("same")
"""


def test_importing_does_nothing_but_register(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIDE_EFFECTS, str(PLUGIN)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


def sections() -> Iterator[tuple[str, type]]:
    """Every settings dataclass whose flags can stand on one command line with ours: fairseq's sections and ours."""
    for section in dataclasses.fields(FairseqConfig):
        kind = section.type if isinstance(section.type, type) else None
        if kind is not None and issubclass(kind, FairseqDataclass):
            yield section.name, kind
    yield "model", models.MODEL_DATACLASS_REGISTRY["t2017_transformer"]
    for name in sorted(tasks.TASK_DATACLASS_REGISTRY):
        if name.startswith("t2017"):
            yield f"task {name}", tasks.TASK_DATACLASS_REGISTRY[name]
    for registry, name in (
        ("criterion", "t2017_label_smoothing"),
        ("optimizer", "t2017_adam"),
        ("lr_scheduler", "t2017_noam"),
    ):
        yield registry, REGISTRIES[registry]["dataclass_registry"][name]


def test_no_two_sections_share_a_flag() -> None:
    """fairseq gives both the first one's default, silently; only a field that refers to the other may have its name."""
    found = dict(sections())
    assert len(found) >= 15
    ours = {name for name, kind in found.items() if kind.__module__.startswith("t2017_plugin")}
    assert {"model", "criterion", "optimizer", "lr_scheduler", "task t2017_translation"} <= ours
    owners = defaultdict(list)
    for section, kind in found.items():
        for field in dataclasses.fields(kind):
            if not str(field.default).startswith("${"):
                owners[field.name].append(section)
    clashes = {
        name: where
        for name, where in owners.items()
        if name != "_name" and set(where) & ours and len({w.split()[0] for w in where}) > 1
    }
    assert clashes == {}


def parameters(V: int, N: int, d: int, d_ff: int, h: int, d_k: int, d_v: int, tables: int, learned: int) -> int:  # noqa: N803
    """Counted by section 3: attention without biases, feed-forward network and norms with; ``tables`` of V rows."""
    attention = h * (2 * d_k + d_v) * d + h * d_v * d
    network = d * d_ff + d_ff + d_ff * d + d
    norm = 2 * d
    encoder = attention + network + 2 * norm
    decoder = 2 * attention + network + 3 * norm
    return N * (encoder + decoder) + tables * V * d + 2 * learned * d


# What differs from base (N 6, d_model 512, d_ff 2048, h 8, d_k 64, d_v 64), by Table 3 and sections 6.1 and 6.3.
PRESETS: dict[str, dict[str, Any]] = {
    "t2017_transformer": {},
    "t2017_base": {},
    "t2017_big": {"d": 1024, "d_ff": 4096, "h": 16, "dropout": 0.3},
    "t2017_big_enfr": {"d": 1024, "d_ff": 4096, "h": 16},
    "t2017_tiny": {"N": 2, "d": 128, "d_ff": 512, "h": 4, "d_k": 32, "d_v": 32},
    "t2017_a_h1": {"h": 1, "d_k": 512, "d_v": 512},
    "t2017_a_h4": {"h": 4, "d_k": 128, "d_v": 128},
    "t2017_a_h16": {"h": 16, "d_k": 32, "d_v": 32},
    "t2017_a_h32": {"h": 32, "d_k": 16, "d_v": 16},
    "t2017_b_dk16": {"d_k": 16},
    "t2017_b_dk32": {"d_k": 32},
    "t2017_c_n2": {"N": 2},
    "t2017_c_n4": {"N": 4},
    "t2017_c_n8": {"N": 8},
    "t2017_c_d256": {"d": 256, "d_k": 32, "d_v": 32},
    "t2017_c_d1024": {"d": 1024, "d_k": 128, "d_v": 128},
    "t2017_c_ff1024": {"d_ff": 1024},
    "t2017_c_ff4096": {"d_ff": 4096},
    "t2017_d_drop0": {"dropout": 0.0},
    "t2017_d_drop2": {"dropout": 0.2},
    "t2017_e_learned": {"learned": 1024},
    "t2017_parsing": {"N": 4, "d": 1024, "d_k": 128, "d_v": 128, "dropout": 0.2, "tables": 3},
}


def read_flags(*flags: object) -> Any:
    """As fairseq-train reads its command line."""
    call = ["data", "--user-dir", PLUGIN, "--task", "t2017_translation", *PAPER, *flags]
    parser = options.get_training_parser()
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, [str(word) for word in call]))


def count(cfg: Any, types: int) -> int:
    """Parameters of the model that the flags describe, without any memory for them."""
    dictionary = Dictionary()
    for number in range(types - len(dictionary)):
        dictionary.add_symbol(str(number))
    task = tasks.TASK_REGISTRY["t2017_translation"](cfg.task, dictionary, dictionary)
    with torch.device("meta"):
        model = task.build_model(cfg.model)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("arch", sorted(PRESETS))
def test_an_architecture_has_the_parameters_of_the_formula(arch: str) -> None:
    preset = {
        "N": 6,
        "d": 512,
        "d_ff": 2048,
        "h": 8,
        "d_k": 64,
        "d_v": 64,
        "dropout": 0.1,
        "learned": 0,
        "tables": 1,
        **PRESETS[arch],
    }
    dropout, size = preset.pop("dropout"), 120
    cfg = read_flags("--arch", arch)
    assert count(cfg, size) == parameters(V=size, **preset)
    assert cfg.model.dropout == dropout
    # The schedule sees the architecture's width.
    assert cfg.lr_scheduler.d_model == preset["d"]


def test_known_architectures_are_those_tested_here() -> None:
    assert sorted(PRESETS) == ARCHITECTURES


def test_flags_win_over_an_architecture() -> None:
    cfg = read_flags("--arch", "t2017_big", "--layers", 1, "--d-k", 32, "--dropout", 0.25, "--embeddings", "separate")
    expected = parameters(V=50, N=1, d=1024, d_ff=4096, h=16, d_k=32, d_v=64, tables=3, learned=0)
    assert count(cfg, 50) == expected
    assert cfg.model.dropout == 0.25
    cfg = read_flags("--arch", "t2017_tiny", "--d-model", 48)
    assert cfg.lr_scheduler.d_model == 48
    # A flag with the base model's value wins too.
    assert read_flags("--arch", "t2017_big", "--d-model", 512, "--dropout", 0.1).model.d_model == 512
    assert read_flags("--arch", "t2017_big", "--dropout", 0.0).model.dropout == 0.0


def test_fairseq_train_prints_the_count(corpus: Corpus, tmp_path: Path) -> None:
    more = ("--max-update", 1, "--disable-validation", "--no-save", "--arch", "t2017_c_n2", "--d-model", 16)
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *more, "--embeddings", "decoder"))
    types = len(Dictionary.load(str(corpus.data_bin / "dict.en.txt")))
    expected = parameters(V=types, N=2, d=16, d_ff=64, h=4, d_k=8, d_v=8, tables=2, learned=0)
    assert f"num. shared model params: {expected:,} " in outcome.log
