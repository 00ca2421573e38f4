"""configs/: one source of truth. YAML under Hydra, named architecture and command line resolve to the same settings."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options
from fairseq.data.data_utils import infer_language_pair
from fairseq.dataclass.initialize import add_defaults, hydra_init
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from t2017_plugin.experiments.command_line import command_line
from t2017_plugin.experiments.paper_configs import EXPERIMENTS, text
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings
from tests.commands.fairseq_runs import Corpus

# Hydra tells fairseq in many lines what it will no longer do one day.
pytestmark = [pytest.mark.commands, pytest.mark.filterwarnings("ignore::UserWarning")]
ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
FILES = sorted(path.relative_to(CONFIGS).as_posix()[:-5] for path in CONFIGS.rglob("*.yaml"))
SECTIONS = ("task", "criterion", "optimizer", "lr_scheduler", "optimization", "dataset", "checkpoint")


def test_files_are_what_the_module_writes() -> None:
    for name, experiment in EXPERIMENTS.items():
        written = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
        assert written == text(name, experiment), "run: python -m t2017_plugin.experiments.paper_configs configs"


def test_every_row_of_table_3_has_a_file_and_each_architecture_a_use() -> None:
    rows = [name for name in EXPERIMENTS if name.startswith("table3/")]
    assert len(rows) == 20
    used = {experiment.architecture for experiment in EXPERIMENTS.values()}
    assert used == set(ARCHITECTURES) - {"t2017_tiny"}


@pytest.mark.parametrize("name", FILES)
def test_header_says_what_to_expect_and_how_to_launch(name: str) -> None:
    header = [line for line in (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    assert len(header) >= 4
    assert any("fairseq-hydra-train" in line for line in header)


def by_hydra(name: str) -> Any:
    """The settings as fairseq-hydra-train resolves them."""
    GlobalHydra.instance().clear()
    folder, _, file = name.rpartition("/")
    hydra_init(file)
    with initialize_config_dir(str(CONFIGS / folder), version_base="1.1"):
        composed = compose(file, overrides=["task.data=DATA"])
    assert composed.common.fp16 is (name in EXPERIMENTS)
    resolved = OmegaConf.create(OmegaConf.to_container(composed, resolve=True, enum_to_str=True))
    OmegaConf.set_struct(resolved, True)
    add_defaults(resolved)
    return resolved


def by_command_line(name: str) -> Any:
    """The settings as fairseq-train resolves the flags that the recipes pass."""
    flags = command_line(CONFIGS / f"{name}.yaml", "train", ["task.data=DATA"])
    assert ("--fp16" in flags) is (name in EXPERIMENTS)
    # Refused where there is no GPU.
    flags = [flag for flag in flags if flag != "--fp16"]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), flags))


def flat(config: Any, section: str) -> dict[str, Any]:
    values = OmegaConf.to_container(config[section], resolve=True, enum_to_str=True)
    assert isinstance(values, dict)
    # Numbers come as text from one side and betas as list or text.
    return {key: str(value).replace("[", "(").replace("]", ")") for key, value in values.items() if key != "_name"}


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("stock/")])
def test_yaml_and_command_line_resolve_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(ROOT))
    yaml, flags = by_hydra(name), by_command_line(name)
    for section in SECTIONS:
        one, other = flat(yaml, section), flat(flags, section)
        for key in one.keys() & other.keys():
            assert one[key] == other[key] or float(one[key]) == float(other[key]), f"{section}.{key}"
        assert yaml[section]["_name"] == flags[section]["_name"]
    assert flat(yaml, "model") == flat(flags, "model")
    assert yaml.common.seed == flags.common.seed
    if name in EXPERIMENTS:
        wanted = architecture_settings(EXPERIMENTS[name].architecture)
        assert flat(yaml, "model") == {key: str(value) for key, value in wanted.items()}
        assert flags.model._name == EXPERIMENTS[name].architecture


def test_every_setting_of_our_parts_is_listed() -> None:
    """So that each can be overridden without a plus sign."""
    tree = OmegaConf.load(CONFIGS / "base.yaml")
    assert set(tree.model) - {"_name"} == set(architecture_settings("t2017_base"))
    from t2017_plugin.fairseq_side.training import T2017LabelSmoothingConfig, T2017NoamConfig

    assert set(tree.criterion) >= set(T2017LabelSmoothingConfig.__dataclass_fields__) - {"_name", "sentence_avg"}
    assert set(tree.lr_scheduler) >= {"warmup_updates", "noam_scale"} & set(T2017NoamConfig.__dataclass_fields__)


TINY = (
    "model.layers=1 model.d_model=32 model.d_ff=32 model.heads=2 model.d_k=8 model.d_v=8 common.fp16=false "
    "common.cpu=true distributed_training.distributed_world_size=1 optimization.max_update=3 dataset.max_tokens=200 "
    "dataset.num_workers=0"
).split()


@pytest.mark.parametrize("folder, name", [("configs", "base"), ("configs/table3", "b_dk16")])
def test_hydra_trains_from_relative_paths(folder: str, name: str, corpus: Corpus, tmp_path: Path) -> None:
    """The header's launch command, made small, from a folder where the plugin and the data lie at relative paths."""
    for part in ("t2017_plugin", "configs"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "DATA").symlink_to(corpus.data_bin)
    source, target = infer_language_pair(str(corpus.data_bin))
    call = [sys.executable, "-c", "from fairseq_cli.hydra_train import cli_main; cli_main()"]
    call += ["--config-dir", folder, "--config-name", name, "task.data=DATA", "common.user_dir=t2017_plugin"]
    call += [*TINY, f"task.source_lang={source}", f"task.target_lang={target}"]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    checkpoint = torch.load(tmp_path / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    assert checkpoint["optimizer_history"][-1]["num_updates"] == 3
    assert checkpoint["cfg"]["model"]["d_model"] == 32
    assert not any(isinstance(value, argparse.Namespace) for value in checkpoint["cfg"].values())
