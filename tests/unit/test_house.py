"""The layout: who may import whom, shapes in docstrings, patches in one file, no mocks, no ``Any`` in the paper."""

import pytest

from tests.house_rules import IMPORTED_BY_FAIRSEQ, PACKAGE, PATCHES, RINGS, SHARED, breaches, may_import, sources

pytestmark = pytest.mark.unit
SOURCES = sources()


@pytest.mark.parametrize("path", SOURCES)
def test_no_module_breaks_a_rule(path: str) -> None:
    assert breaches(path, SOURCES[path]) == []


def test_every_folder_is_a_ring() -> None:
    folders = {path.partition("/")[0] for path in SOURCES if "/" in path}
    assert folders == {*RINGS, *IMPORTED_BY_FAIRSEQ}
    assert {path for path in SOURCES if "/" not in path} <= {f"{name}.py" for name in (*SHARED, "__init__", "__main__")}
    assert PATCHES in SOURCES


def test_each_ring_sees_those_inside_of_it() -> None:
    for place, ring in enumerate(RINGS):
        assert may_import(ring) & set(RINGS) == set(RINGS[: place + 1])
    assert may_import("paper") == {"paper"} and may_import("fast") == {"paper", "fast", "errors"}
    assert all(set(SHARED) <= may_import(ring) for ring in RINGS[2:])


TENSOR = "from torch import Tensor\n"
# A module, and what is said of it; one that keeps the rules stands beside each that breaks them.
IMPORTS = [
    ("paper/x.py", "import torch\nimport math\nfrom t2017_plugin.paper.config import Model", []),
    ("paper/x.py", "import numpy", ["1: paper imports numpy"]),
    ("paper/x.py", "from fairseq import utils", ["1: paper imports fairseq"]),
    ("paper/x.py", "from t2017_plugin.errors import UsageError", ["1: paper imports errors"]),
    ("paper/x.py", "def f():\n    from t2017_plugin.fast import step", ["2: paper imports fast"]),
    ("fast/x.py", "from t2017_plugin.errors import UsageError\nfrom t2017_plugin.paper import model", []),
    ("fast/x.py", "from t2017_plugin import files", ["1: fast imports files"]),
    ("fast/x.py", "import fairseq.data", ["1: fast imports fairseq"]),
    ("text/x.py", "import numpy\nimport fairseq\nfrom t2017_plugin import checkpoints, errors", []),
    ("text/x.py", "import t2017_plugin.scoring.bleu", ["1: text imports scoring"]),
    (
        "text/x.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from t2017_plugin.commands import main",
        ["3: text imports commands"],
    ),
    ("checkpoints/x.py", "from t2017_plugin import Translator", ["1: checkpoints imports text"]),
    ("checkpoints/x.py", "importlib.import_module('t2017_plugin.text.pipeline')", ["1: checkpoints imports text"]),
    ("checkpoints/x.py", "from .loading import load", ["1: a relative import, .loading.load"]),
    ("commands/x.py", "from t2017_plugin import Translator, experiments, version", []),
    ("files.py", "import numpy\nfrom t2017_plugin.errors import UsageError", []),
    ("files.py", "from t2017_plugin.paper import config", ["1: files imports paper"]),
    ("models/x.py", "from t2017_plugin.fairseq_side.registration import register", []),
    ("tasks/x.py", "from t2017_plugin.errors import UsageError", ["1: tasks imports errors"]),
    ("__init__.py", "from t2017_plugin.commands.main import main", ["1: __init__ imports commands"]),
    ("elsewhere/x.py", "from t2017_plugin.elsewhere import y", ["1: elsewhere imports elsewhere"]),
    ("text/x.py", "from unittest import mock", ["1: imports unittest.mock"]),
    ("text/x.py", "def f():\n    import unittest.mock as m", ["2: imports unittest.mock"]),
]
NO_SHAPE = "has no Shape: in its docstring"
SHAPES = [
    (f'{TENSOR}def f(x: Tensor) -> Tensor:\n    """Square. Shape: (B, T) -> (B, T)."""', []),
    (f'{TENSOR}def f(x: Tensor) -> Tensor:\n    """Square."""', [f"2: f is on tensors and {NO_SHAPE}"]),
    ("import torch\ndef f(*x: torch.Tensor): ...", [f"2: f is on tensors and {NO_SHAPE}"]),
    (f"{TENSOR}def f(x: int) -> list[Tensor | None]: ...", [f"2: f is on tensors and {NO_SHAPE}"]),
    (f"{TENSOR}def f(x: 'dict[str, list[Tensor]]'): ...", [f"2: f is on tensors and {NO_SHAPE}"]),
    (f"{TENSOR}class A:\n    @property\n    def f(self) -> Tensor: ...", [f"4: A.f is on tensors and {NO_SHAPE}"]),
    (f"{TENSOR}class A:\n    def forward(self, x: Tensor): ...", [f"3: A.forward is on tensors and {NO_SHAPE}"]),
    (f'{TENSOR}class A:\n    """Shape: (B,)."""\n    def forward(self, x: Tensor): ...', []),
    (
        f'{TENSOR}class A:\n    """Shape: (B,)."""\n    def step(self, x: Tensor): ...',
        [f"4: A.step is on tensors and {NO_SHAPE}"],
    ),
    (f"{TENSOR}def f(x: int):\n    def g(y: Tensor): ...", []),
    (f"{TENSOR}def _f(x: Tensor): ...\nclass _A:\n    def f(self, x: Tensor): ...", []),
    (f"{TENSOR}def f(x: Mapping[str, Tensor]) -> dict[str, Tensor]: ...", []),
]
PATCHED = [
    ("from fairseq import utils\nutils.item = f", "utils.item"),
    ("import fairseq.trainer\nfairseq.trainer.Trainer.save = f", "fairseq.trainer.Trainer.save"),
    ("def f():\n    from fairseq.trainer import Trainer as T\n    T.save, x = g, 1", "T.save"),
    ("import torch\ntorch.backends.cuda.x += 1", "torch.backends.cuda.x"),
    ("from fairseq.models import REGISTRY\nREGISTRY['x'] = f", "REGISTRY['x']"),
    ("from fairseq.models import REGISTRY\nREGISTRY.update(x=f)", "REGISTRY"),
    ("from fairseq.models import REGISTRY\ndel REGISTRY['x']", "REGISTRY['x']"),
    ("import argparse\nsetattr(argparse.Action, 'x', f)", "argparse.Action"),
    ("import torch\nvars(torch)['x'] = f", "vars(torch)['x']"),
    ("import torch\ntorch.nn.__dict__.update(x=f)", "torch.nn.__dict__"),
    ("import sys\nmodule = sys.modules['fairseq_cli.train']\nvars(module)['x'] = f", "vars(module)['x']"),
    ("from fairseq.trainer import Trainer\ncls = Trainer\ncls.save = f", "cls.save"),
    ("from fairseq import utils\nwith f() as utils.item: ...", "utils.item"),
]
HARMLESS = [
    "from fairseq import utils\nclass A:\n    def f(self):\n        self.utils = utils\n        utils.item(1)",
    "from fairseq import options\ndef f(options):\n    options.beam = 4\n    setattr(options, 'x', 1)",
    "import argparse\nparser = argparse.ArgumentParser()\nparser.x = 1",
    "import torch\nx = torch.zeros(3)\nx[0] = 1\nx.requires_grad = False",
    "from t2017_plugin.paper import model\nmodel.x = 1",
]


@pytest.mark.parametrize(("path", "text", "said"), IMPORTS)
def test_imports_that_break_the_order_are_found(path: str, text: str, said: list[str]) -> None:
    assert breaches(path, text) == [f"{path}:{line}" for line in said]


@pytest.mark.parametrize(("text", "said"), SHAPES)
def test_functions_on_tensors_without_a_shape_are_found(text: str, said: list[str]) -> None:
    assert breaches("paper/x.py", text) == [f"paper/x.py:{line}" for line in said]


@pytest.mark.parametrize(("text", "target"), PATCHED)
def test_assignments_into_other_packages_are_found(text: str, target: str) -> None:
    (found,) = breaches("fairseq_side/x.py", text)
    assert found.endswith(f": changes {target}, outside of {PATCHES}")
    assert breaches(PATCHES, text) == []


@pytest.mark.parametrize("text", HARMLESS)
def test_assignments_to_what_is_our_own_are_free(text: str) -> None:
    assert breaches("fairseq_side/x.py", text) == []


def test_any_is_found_in_the_paper_and_nowhere_else() -> None:
    text = "def f(x: list[Any], ctx: Any, **kwargs: Any) -> int:\n    y: Any = x\nclass A:\n    z: 'Any' = 1"
    assert breaches("paper/x.py", text) == [
        "paper/x.py:1: x is Any",
        "paper/x.py:2: y is Any",
        "paper/x.py:4: z is Any",
    ]
    assert breaches("fast/x.py", text) == []


def test_the_package_that_is_read_is_this_one() -> None:
    assert "paper/config.py" in SOURCES and PACKAGE in SOURCES["commands/main.py"]
