"""The WMT14 recipes from archives to both BLEUs on the miniature: base for German, killed once, big for French."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recipes.wmt14_common import mirror

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("wmt14_ende", "wmt14_enfr")
pytestmark = [pytest.mark.recipes, pytest.mark.slow]


@pytest.fixture(scope="module")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wmt14") / "a mirror"
    mirror.main(["--output", str(folder), "--pairs", "200"])
    return folder


def environment(miniature: Path | None = None, **variables: str) -> dict[str, str]:
    """The tests' own Python environment and the recipe's variables."""
    own = {"T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1", "SCALE": "mini", "WORKERS": "2"}
    if miniature:
        own |= {"WMT14_MIRROR": str(miniature), "T2017_CACHE": str(miniature.parent / "cache")}
    return {**os.environ, **own, **variables}


def call(job: str, script: str, *options: str, **settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "recipes" / job / script), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, **settings)


def kill_while_binarising(run: Path, miniature: Path) -> None:
    """Start step 1 in a process group of its own and kill the group in the middle of fairseq-preprocess."""
    command = ["bash", str(ROOT / "recipes" / "wmt14_ende" / "1_prepare.sh"), "--run", str(run)]
    process = subprocess.Popen(
        command,
        env=environment(miniature),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 600
    while not list(run.glob("data-bin.partial/dict.*")):
        assert process.poll() is None, "step 1 ended before it could be killed"
        assert time.monotonic() < deadline, "fairseq-preprocess did not begin within ten minutes"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def german(miniature: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """English-German, base: killed while binarising, then to the end; the run and what was printed."""
    run = tmp_path_factory.mktemp("wmt14") / "german run"
    kill_while_binarising(run, miniature)
    assert not (run / "data-bin").exists()
    outcome = call("wmt14_ende", "run.sh", "--run", str(run), env=environment(miniature))
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    return run, outcome.stdout


@pytest.fixture(scope="module")
def french(miniature: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """English-French, big, to the end."""
    run = tmp_path_factory.mktemp("wmt14") / "french"
    variables = environment(miniature, MODEL="big", BATCH_TOKENS="700")
    outcome = call("wmt14_enfr", "run.sh", "--run", str(run), env=variables)
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    return run, outcome.stdout


def scores_of(run: Path, model: str) -> dict:
    return json.loads((run / model / "scores.json").read_text(encoding="utf-8"))


def flags_of(run: Path, model: str) -> list[str]:
    return (run / model / "settings" / "train.flags").read_text(encoding="utf-8").split()


def test_english_german_base_goes_from_archives_to_both_scores(german: tuple[Path, str]) -> None:
    run, printed = german
    scores = scores_of(run, "base")
    assert scores["sentences"] == 3003 and scores["training"]["updates"] == 24
    assert all(name in scores for name in ("sacrebleu", "paper_bleu", "paper_bleu_normalised"))
    assert "compounds:split" in scores["paper_bleu"]["signature"]
    assert printed.count("done before, nothing has changed") == 9  # what was done before the kill
    assert "mean of 5 update checkpoints" in printed
    assert "--expect-lines 3003" in printed
    assert mirror.NOTE in printed and mirror.NOTE in (run / "report.md").read_text(encoding="utf-8")
    flags = flags_of(run, "base")
    assert {"--fp16", "--layers"} <= set(flags) and flags[flags.index("--distributed-world-size") + 1] == "8"
    # Eight devices' batches in one process, and without a GPU in float32.
    assert "each of 1 gets --update-freq 8" in printed
    command = next(line for line in printed.splitlines() if line.startswith("+ fairseq-train"))
    assert command.endswith("train.log' 2>&1") and "--fp16" not in command
    assert " --update-freq 8 --distributed-world-size 1 " in command


def test_english_french_big_goes_from_archives_to_both_scores(french: tuple[Path, str]) -> None:
    run, printed = french
    scores = scores_of(run, "big")
    assert scores["sentences"] == 3003
    assert "compounds:whole" in scores["paper_bleu"]["signature"]
    # The batch was chosen for the lengths of the data; sentences of few tokens come close to what was asked for.
    assert "for 700 tokens a side and update on 8 devices: --max-tokens " in printed
    held = re.search(r"^wpb ([\d.]+): target tokens", printed, re.MULTILINE)
    assert held and 500 < float(held[1]) < 900
    assert "mean of 20 update checkpoints" in printed
    flags = flags_of(run, "big")
    assert flags[flags.index("--dropout") + 1] == "0.1"
    facts = json.loads((run / "data-bin" / "manifest.json").read_text(encoding="utf-8"))
    assert list(facts["pairs_by_corpus"]) == [
        "europarl-v7",
        "commoncrawl",
        "news-commentary-v9",
        "un-2000",
        "giga-fren",
    ]
    assert all(counts["read"] == 216 for counts in facts["pairs_by_corpus"].values())
    assert facts["settings"]["max_ratio"] == 1.5 and facts["note"] == mirror.NOTE
    assert {archive["checked"] for archive in facts["archives"]} == {"sha256 as the miniature mirror says"}


def test_a_killed_preparation_ends_in_the_same_data(german: tuple[Path, str], tmp_path: Path) -> None:
    run, _ = german
    text = [f"--{split}pref={run}/text/{split}.bpe" for split in ("train", "valid", "test")]
    command = [Path(sys.executable).parent / "fairseq-preprocess", "-s", "en", "-t", "de", *text, "--joined-dictionary"]
    subprocess.run([*command, "--destdir", tmp_path], check=True, capture_output=True, env=environment())
    undisturbed = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "preprocess.log"}
    assert len(undisturbed) == 14
    assert {name: (run / "data-bin" / name).read_bytes() for name in undisturbed} == undisturbed
    assert (run / "data-bin" / "raw" / "test.de").read_bytes() == (run / "corpus" / "test.de").read_bytes()
    assert not (run / "data-bin.partial").exists()


def test_training_refuses_codes_that_are_not_the_data_s(german: tuple[Path, str], miniature: Path) -> None:
    run, _ = german
    codes = run / "data-bin" / "codes"
    content = codes.read_bytes()
    codes.write_bytes(content + b"x y\n")
    try:
        refused = call("wmt14_ende", "2_train.sh", "--run", str(run), env=environment(miniature))
    finally:
        codes.write_bytes(content)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and "are not the codes that" in refused.stderr


@pytest.mark.parametrize("job", JOBS)
def test_a_dry_run_downloads_nothing(job: str, tmp_path: Path) -> None:
    listed = call(
        job, "1_prepare.sh", "--dry-run", env=environment(T2017_CACHE=str(tmp_path / "cache"), WMT14_MIRROR="")
    )
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "https://www.statmt.org/wmt14/test-full.tgz" in listed.stdout and "657,632,379 bytes" in listed.stdout
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("job", JOBS)
def test_help_and_wrong_calls(job: str, tmp_path: Path) -> None:
    run = ("--run", str(tmp_path / "run"))
    helped = call(job, "1_prepare.sh", *run, "--help", env=environment())
    assert (helped.returncode, helped.stderr) == (0, "") and "WMT14_MIRROR=PLACE" in helped.stdout
    for wrong in ({"MODEL": "huge"}, {"SCALE": "tiny"}, {"WORKERS": "0"}):
        refused = call(job, "2_train.sh", *run, env=environment(**wrong))
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1 and f"{next(iter(wrong))}=" in refused.stderr
    assert call(job, "2_train.sh", *run, "--stock", env=environment()).returncode == 2
    assert not list(tmp_path.rglob("*.json"))
