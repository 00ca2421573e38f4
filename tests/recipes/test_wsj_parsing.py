"""The parsing recipe from trees to F1: made-up trees with silver ones to the end, and a treebank's layouts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recipes.wsj_parsing import corpus, grammar
from recipes.wsj_parsing.splits import split_files
from t2017_plugin.parsing.trees import one_line, read_trees, without_top

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "wsj_parsing"
pytestmark = pytest.mark.recipes
TINY = (
    "model.layers=1 model.d_model=64 model.d_ff=64 model.heads=4 model.d_k=16 model.d_v=16 model.dropout=0.0 "
    "model.attention_dropout=0.0 optimization.max_update=320 checkpoint.save_interval_updates=10 "
    "dataset.max_tokens=1500 lr_scheduler.warmup_updates=100 lr_scheduler.noam_scale=1.0 "
    "dataset.disable_validation=true generation.beam=2"
).split()


def call(script: str, run: Path, *options: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script of the recipe on 400 made-up trees."""
    environment = {**os.environ, "T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}
    environment["T2017_GENERATED_TREES"] = "400"
    command = ["bash", str(RECIPE / script), "--run", str(run), *options]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=900)


def write_treebank(folder: Path, numbers: list[int]) -> Path:
    """Files of four trees each, as the treebank lays them out."""
    for place, number in enumerate(numbers):
        path = folder / f"{number // 100:02d}" / f"wsj_{number:04d}.mrg"
        path.parent.mkdir(parents=True, exist_ok=True)
        trees = grammar.trees(4 * len(numbers))[4 * place : 4 * place + 4]
        path.write_text("".join(f"( {one_line(tree)} )\n\n" for tree in trees), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_made_up_trees_to_the_end_with_silver_ones(tmp_path: Path) -> None:
    silver = tmp_path / "silver trees"
    silver.write_text("".join(f"{one_line(tree)}\n" for tree in grammar.trees(60, seed=5)), encoding="utf-8")
    run = tmp_path / "a run"
    options = [option for setting in TINY for option in ("--set", setting)]
    outcome = call("run.sh", run, *options, "--silver", str(silver), "--gold-copies", "3", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    assert "GENERATED TREES" in outcome.stdout and "| F1 |" in outcome.stdout
    scores = json.loads((run / "t2017" / "scores.json").read_text(encoding="utf-8"))
    evalb, repairs = scores["evalb"], scores["repairs"]
    assert evalb["all"]["sentences"] == 20 and evalb["all"]["failed"] == evalb["all"]["skipped"] == 0
    # Far from what a real model reaches, and far above what needs no model.
    assert evalb["all"]["f1"] > evalb["right_branching"]["f1"] + 10
    assert repairs["sentences"] == 20 and 0 <= repairs["well_formed"] <= 20
    report = (run / "report.md").read_text(encoding="utf-8")
    assert "GENERATED TREES" in report and "well-formed before repair" in report
    words = (run / "corpus" / "test.words").read_text(encoding="utf-8").splitlines()
    trees = (run / "t2017" / "decode" / "test.trees").read_text(encoding="utf-8").splitlines()
    assert len(words) == len(trees) == 20
    # Gold trees are read three times for each time that silver ones are.
    splits = {split: facts["pairs"] for split, facts in scores["corpus"]["splits"].items()}
    assert splits == {"train": 360, "valid": 20, "test": 20, "train1": 60}
    log = (run / "t2017" / "logs" / "train.log").read_text(encoding="utf-8")
    assert "train1 words-tree 60 examples" in log and "'upsample_primary': 3" in log


def test_a_treebank_in_its_folders(tmp_path: Path) -> None:
    treebank = write_treebank(tmp_path / "treebank", [201, 2199, 2200, 2300, 1, 2400])
    corpus.main(["--output", str(tmp_path / "corpus"), "--treebank", str(treebank)])
    manifest = json.loads((tmp_path / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    assert {split: facts["pairs"] for split, facts in manifest["splits"].items()} == {"train": 8, "valid": 4, "test": 4}
    assert manifest["train_files"] == "2 of 0200-2199" and "note" not in manifest
    gold = (tmp_path / "corpus" / "test.gold").read_text(encoding="utf-8").splitlines()
    assert gold == [one_line(without_top(tree)) for tree in read_trees(treebank / "23" / "wsj_2300.mrg")]


def files(*numbers: int) -> list[Path]:
    return [Path(f"wsj_{number:04d}.mrg") for number in numbers]


def test_sections_of_the_whole_corpus_and_parts_of_the_sample() -> None:
    whole = split_files(files(1, 199, 200, 2172, 2200, 2201, 2300, 2399, 2400), {})
    assert [[file.name[4:8] for file in whole[split][1]] for split in ("train", "valid", "test")] == [
        ["0200", "2172"],
        ["2200", "2201"],
        ["2300", "2399"],
    ]
    sample = split_files(files(1, 159, 160, 179, 180, 199), {})
    assert [[file.name[4:8] for file in sample[split][1]] for split in ("train", "valid", "test")] == [
        ["0001", "0159"],
        ["0160", "0179"],
        ["0180", "0199"],
    ]
    named = split_files(files(1, 2, 3), {"train": "0001-0002", "valid": "0003-0003", "test": "0003-0003"})
    assert [len(found) for _, found in named.values()] == [2, 1, 1]


@pytest.mark.parametrize(
    "named, said",
    [
        ({}, "test: no file in 0180-0199, there is 0001-0160"),
        ({"test": "160"}, "'160' is no range of files"),
        ({"test": "0001-0160"}, "wsj_0001.mrg is for training and for test"),
    ],
)
def test_files_that_do_not_fit(named: dict[str, str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        split_files(files(1, 160), named)


def test_the_corpus_in_the_other_form(tmp_path: Path) -> None:
    corpus.main(["--output", str(tmp_path), "--generated-trees", "40", "--form", "vinyals"])
    assert (tmp_path / "train.tree").read_text().startswith("(S (NP XX")
    assert json.loads((tmp_path / "corpus.json").read_text())["form"] == "vinyals"


@pytest.mark.parametrize(
    "options, status, said",
    [
        (("--stock",), 2, "stock fairseq has no task for parsing"),
        (("--treebank", "nowhere"), 2, "--treebank nowhere: there is no such thing"),
        (("--scale", "huge"), 2, "it can be paper or small"),
        (("--form", "xml"), 2, "it can be t2t or vinyals"),
        (("--gold-copies", "0"), 2, "give a number from 1"),
    ],
)
def test_wrong_calls(options: tuple[str, ...], status: int, said: str, tmp_path: Path) -> None:
    outcome = call("1_prepare.sh", tmp_path / "run", *options)
    assert outcome.returncode == status and said in outcome.stderr and outcome.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("*.json"))


def test_help_names_the_options_of_the_job(tmp_path: Path) -> None:
    outcome = call("run.sh", tmp_path / "run", "--help")
    assert outcome.returncode == 0 and "--treebank FOLDER" in outcome.stdout and "--processes N" in outcome.stdout
