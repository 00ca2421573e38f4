"""Settings files become fairseq's flags: what they say, what is refused, and that the arms of a recipe correspond."""

import math
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from fairseq import options
from hypothesis import given, settings
from hypothesis import strategies as st

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments import command_line as module
from t2017_plugin.experiments.command_line import command_line, grouped_flags
from t2017_plugin.experiments.settings_files import read_settings

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("demo", "toy_reversal")
DATA = ("task.data=some data",)


def parsed(flags, command="train"):
    """What fairseq makes of the flags."""
    parser = options.get_training_parser() if command == "train" else options.get_generation_parser()
    return options.parse_args_and_arch(parser, flags)


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


SMALL = """\
task: {_name: translation, data: "???", source_lang: en, target_lang: de}
model:
  _name: transformer
  encoder:
    embed_dim: 32
  share_all_embeddings: true
  no_scale_embedding: false
criterion: {_name: label_smoothed_cross_entropy, label_smoothing: 0.2}
optimizer: {_name: adam, adam_betas: "(0.9, 0.98)"}
optimization:
  lr: [0.5, 0.25]
  max_update: 7
  clip_norm: -1.0
dataset: {max_tokens: 11, gen_subset: test, validate_interval: 3}
checkpoint: {save_dir: "a folder", patience: null}
generation: {beam: 3, max_len_a: 1.0}
"""


def test_fairseq_reads_back_what_the_file_says(tmp_path):
    args = parsed(command_line(write(tmp_path, SMALL), "train", DATA))
    assert (args.data, args.arch, args.encoder_embed_dim, args.share_all_embeddings) == (
        "some data",
        "transformer",
        32,
        True,
    )
    assert (args.label_smoothing, args.adam_betas, args.lr, args.max_update) == (0.2, "(0.9, 0.98)", [0.5, 0.25], 7)
    assert (args.clip_norm, args.save_dir, args.patience, args.validate_interval) == (-1.0, "a folder", -1, 3)


def test_generation_takes_its_own_sections_only(tmp_path):
    flags = command_line(write(tmp_path, SMALL), "generate", DATA)
    args = parsed(flags, "generate")
    assert (args.data, args.beam, args.max_len_a, args.max_tokens, args.gen_subset) == ("some data", 3, 1.0, 11, "test")
    assert not {"--arch", "--lr", "--validate-interval", "--save-dir"} & set(flags)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL.replace("max_update", "max_updates"), r"line 12: .*\.max_updates, no flag .*did you mean max_update\?"),
        (SMALL.replace("embed_dim", "embedding_dim"), r"line 5: .*model\.encoder\.embedding_dim, no flag --encoder-"),
        (SMALL.replace("dataset", "data_set"), r"line 14: .*no section 'data_set'; did you mean dataset\?"),
        (SMALL.replace("max_update: 7", "max_update: seven"), "argument --max-update: invalid int value: 'seven'"),
        (SMALL.replace("true", "yes please"), "line 6: .*embeddings is 'yes please'; it can be true or false"),
        (SMALL.replace("_name: transformer", "_name: transfomer"), "invalid choice: 'transfomer'"),
        (SMALL.replace("_name: adam, ", ""), "section optimizer has no _name"),
        (SMALL + "dataset: {max_tokens: 12}\n", "line 17: dataset stands twice"),
        (SMALL + "generation\n", "not readable as YAML"),
        (SMALL + "seed: 3\n", "line 17: seed is no section"),
        ("- a\n- b\n", "sections with settings are expected"),
        (SMALL.replace("7", "${oc.env:NO_SUCH_VARIABLE}"), "NO_SUCH_VARIABLE"),
        (SMALL.replace("lr: [0.5, 0.25]", 'lr: "???"'), r"line 11: optimization\.lr is left open; .*--set optimi"),
    ],
)
def test_what_fairseq_would_not_know_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(UsageError, match=message) as error:
        command_line(write(tmp_path, text), "train", DATA)
    assert "\n" not in str(error.value)


def test_data_must_be_given_and_the_file_must_exist(tmp_path):
    with pytest.raises(UsageError, match="task.data is left open"):
        command_line(write(tmp_path, SMALL), "train")
    with pytest.raises(UsageError, match="no such file"):
        command_line(tmp_path / "none.yaml", "train")


def test_overrides_win_and_keep_paths_as_they_are(tmp_path):
    overrides = (*DATA, "optimization.max_update=9", "checkpoint.save_dir=/x: y/#1", "dataset.train_subset=true words")
    args = parsed(command_line(write(tmp_path, SMALL), "train", overrides))
    assert (args.max_update, args.save_dir, args.train_subset) == (9, "/x: y/#1", "true words")
    with pytest.raises(UsageError, match="--set max_update=9: write section.name=value"):
        command_line(write(tmp_path, SMALL), "train", ("max_update=9",))
    with pytest.raises(UsageError, match="--set model.depth=2: fairseq has no setting model.depth"):
        command_line(write(tmp_path, SMALL), "train", (*DATA, "model.depth=2"))


@settings(deadline=None)  # machines are shared; time is no property
@given(st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_an_override_means_what_the_same_value_in_the_file_means(value):
    text = yaml.safe_dump(value).splitlines()[0]
    [setting] = read_settings_of(f"common: {{seed: {text}}}")
    [overridden] = read_settings_of("common: {seed: 1}", f"common.seed={text}")
    assert setting.value == overridden.value


def read_settings_of(text: str, *overrides: str):
    """Settings of a text as if it were a file."""
    with tempfile.TemporaryDirectory() as folder:
        return read_settings(write(Path(folder), text), overrides)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("arm", ["", "stock/"])
@pytest.mark.parametrize("command", ["train", "generate"])
def test_the_files_of_the_recipes_are_accepted(job, arm, command):
    args = parsed(command_line(ROOT / "configs" / f"{arm}{job}.yaml", command, DATA), command)
    assert args.required_batch_size_multiple == 1  # else fairseq drops sentences
    if command == "generate":
        assert (args.beam, args.lenpen) == (4, 0.6)  # section 6.1


def test_the_demo_is_the_tiny_architecture_by_name():
    flags = command_line(ROOT / "configs" / "demo.yaml", "train", DATA)
    assert flags[flags.index("--arch") + 1] == "t2017_tiny"
    assert "--d-model" not in flags
    other = command_line(ROOT / "configs" / "demo.yaml", "train", (*DATA, "model.d_ff=999"))
    assert other[other.index("--arch") + 1] == "t2017_transformer"
    assert other[other.index("--d-ff") + 1] == "999"


@pytest.mark.parametrize("job", JOBS)
def test_the_stock_arm_differs_in_nothing_but_the_implementation(job):
    ours = parsed(command_line(ROOT / "configs" / f"{job}.yaml", "train", DATA))
    stock = parsed(command_line(ROOT / "configs" / "stock" / f"{job}.yaml", "train", DATA))
    for name in (
        *("seed", "max_update", "update_freq", "max_tokens", "batch_size", "required_batch_size_multiple"),
        *("dropout", "attention_dropout", "label_smoothing", "adam_betas", "adam_eps", "weight_decay", "clip_norm"),
        *("warmup_updates", "save_interval_updates", "source_lang", "target_lang", "disable_validation"),
    ):
        assert getattr(ours, name) == getattr(stock, name), name
    for side in ("encoder", "decoder"):
        assert getattr(stock, f"{side}_layers") == ours.layers
        assert getattr(stock, f"{side}_embed_dim") == ours.d_model
        assert getattr(stock, f"{side}_ffn_embed_dim") == ours.d_ff
        assert getattr(stock, f"{side}_attention_heads") == ours.heads
        assert not getattr(stock, f"{side}_normalize_before")  # post-norm, section 3.1
    assert ours.d_k == ours.d_v == ours.d_model // ours.heads  # the only choice stock has
    assert stock.share_all_embeddings and ours.embeddings == "shared"
    assert stock.activation_dropout == ours.relu_dropout
    # Section 5.3: the peak is reached at n = warmup. The file gives ten digits.
    peak = ours.noam_scale * ours.d_model**-0.5 * ours.warmup_updates**-0.5
    assert math.isclose(stock.lr[0], peak, rel_tol=1e-8)


def test_printed_for_a_shell_the_flags_come_back(tmp_path, capsys):
    path = write(tmp_path, SMALL)
    assert module.main([str(path), "train", "--set", DATA[0]]) == 0
    printed = capsys.readouterr().out
    assert shlex.split(printed.replace("\\\n", "")) == command_line(path, "train", DATA)
    assert module.main([str(path), "train", "--set", DATA[0], "--null"]) == 0
    assert capsys.readouterr().out.split("\0")[:-1] == command_line(path, "train", DATA)


def test_a_wrong_call_and_a_failure_differ_in_status(tmp_path):
    with pytest.raises(SystemExit) as wrong_call:
        module.main([str(write(tmp_path, SMALL))])
    assert wrong_call.value.code == 2
    command = [sys.executable, "-m", "t2017_plugin.experiments.command_line", "none.yaml", "train"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines()[-1].startswith("none.yaml: no such file")
    assert "Traceback" not in outcome.stderr


def test_flags_by_section_are_the_same_flags():
    path = ROOT / "configs" / "demo.yaml"
    groups = grouped_flags(path, "train", (*DATA, "model.d_ff=999"))
    assert [flag for _, flags in groups for flag in flags] == command_line(path, "train", (*DATA, "model.d_ff=999"))
    by_section = dict(groups)
    assert list(by_section)[:3] == ["task", "model", "criterion"]
    assert by_section["task"][:3] == ["some data", "--task", "t2017_translation"]
    assert by_section["criterion"] == [
        "--criterion", "t2017_label_smoothing", "--label-smoothing", "0.1", "--smoothing-over", "all",
    ]  # fmt: skip
    assert "--d-ff 999" in module.in_lines(by_section["model"])


def test_the_module_registers_what_a_settings_file_names():
    command = [sys.executable, "-m", "t2017_plugin.experiments.command_line", "configs/demo.yaml", "train"]
    outcome = subprocess.run([*command, "--set", DATA[0]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert "--arch t2017_tiny" in outcome.stdout
