"""Preparation of WMT14 on the miniature: counts by reason, order, BPE, alignment, and kills at any point."""

import io
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from subword_nmt.learn_bpe import learn_bpe

from recipes.wmt14_common import corpora, download, mirror, parallel, prepare, units, words
from recipes.wmt14_common.cleaning import MENDED
from recipes.wmt14_common.corpora import Limits
from t2017_plugin.text.pipeline import TextPipeline

pytestmark = pytest.mark.unit

LIMITS = Limits(max_tokens=250, max_ratio=9)
PAIRS = 60


@pytest.fixture(scope="module")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wmt14") / "mirror"
    mirror.main(["--output", str(folder), "--pairs", str(PAIRS)])
    return folder


def whole(run: Path, miniature: Path, workers: int = 1) -> None:
    """Download and prepare English-German."""
    run.mkdir(exist_ok=True)
    download.main(
        ["--target-lang", "de", "--cache", str(run / "cache"), "--mirror", str(miniature)]
        + ["--output", str(run / "archives.json")]
    )
    prepare.prepare(prepare.Job(run, "de", LIMITS, 300, workers))


@pytest.fixture(scope="module")
def undisturbed(miniature: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("wmt14") / "run"
    whole(run, miniature)
    return run


def products(run: Path) -> dict[str, bytes]:
    """Every file that training and the report depend on; stamps hold seconds, and the cache times."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for folder in ("corpus", "words", "text")
        for path in (run / folder).rglob("*")
    }


def test_cleaning_counts_what_the_mirror_put_in(undisturbed: Path) -> None:
    for corpus in corpora.TRAINING["de"]:
        counts = json.loads((undisturbed / "words" / f"{corpus.name}.json").read_text())
        assert counts == {
            "read": PAIRS + sum(mirror.DIRT.values()),
            "kept": PAIRS + mirror.DIRT["control"],
            "empty side": mirror.DIRT["empty side"],
            "length ratio above 9": mirror.DIRT["ratio"],
            MENDED: mirror.DIRT["control"],
            "more than 250 tokens": mirror.DIRT["long"],
            "not UTF-8": mirror.DIRT["not UTF-8"],
        }
    facts = json.loads((undisturbed / "corpus" / "corpus.json").read_text())
    assert {split: of["pairs"] for split, of in facts["splits"].items()} == {
        "train": 3 * (PAIRS + mirror.DIRT["control"]),
        "valid": 3000,
        "test": 3003,
    }
    assert facts["left_out"]["not UTF-8"] == 3 * mirror.DIRT["not UTF-8"] and MENDED not in facts["left_out"]


def test_training_text_is_what_translating_will_see(undisturbed: Path) -> None:
    pipeline = TextPipeline.load(undisturbed / "text")
    for language in ("en", "de"):
        raw = (undisturbed / "corpus" / f"test.{language}").read_text(encoding="utf-8").split("\n")[:200]
        cut = (undisturbed / "text" / f"test.bpe.{language}").read_text(encoding="utf-8").split("\n")[:200]
        assert cut == [pipeline.encode(line, language) for line in raw]
        assert any("&quot;" in line for line in cut) and not any("„" in line for line in cut)


def test_any_number_of_processes_writes_the_same(
    undisturbed: Path, miniature: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "PORTION", 7)
    whole(tmp_path / "run", miniature, workers=3)
    assert products(tmp_path / "run") == products(undisturbed)


def test_codes_are_those_of_subword_nmt(undisturbed: Path) -> None:
    files = [undisturbed / "words" / f"{c.name}.{side}" for side in ("en", "de") for c in corpora.TRAINING["de"]]
    theirs = io.StringIO()
    learn_bpe(io.StringIO("".join(file.read_text("utf-8") for file in files)), theirs, 300, total_symbols=True)
    assert (undisturbed / "text" / "codes").read_text("utf-8") == theirs.getvalue()
    counted = units.count_words(files, workers=2)
    assert list(counted.items()) == list(units.count_words(files, workers=1).items())


def test_a_text_of_too_many_characters_is_refused(undisturbed: Path) -> None:
    with pytest.raises(SystemExit, match="too many for a vocabulary of 10"):
        units.learn(units.count_words([undisturbed / "words" / "test.de"], 1), 10)


def _killed(run: Path, miniature: Path, after: int) -> None:
    """Prepare, and be killed at the ``after``-th moment: before or after a file gets its name, or amid a stream."""
    moments = 0

    def moment() -> None:
        nonlocal moments
        moments += 1
        if moments == after:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(function: Callable) -> Callable:
        def call(*args: object) -> None:
            moment()
            function(*args)
            moment()

        return call

    os.replace = watched(os.replace)
    parallel.Progress.add = watched(parallel.Progress.add)
    words.PORTION = 20
    whole(run, miniature, workers=2)


def test_killed_at_any_point_it_goes_on_to_the_same_bytes(undisturbed: Path, miniature: Path, tmp_path: Path) -> None:
    run, kills = tmp_path / "run", 0
    context = multiprocessing.get_context("fork")
    for attempt in range(60):
        # The moments differ from call to call, and a step has at most some twenty.
        process = context.Process(target=_killed, args=(run, miniature, 12 + (attempt * 7) % 29))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    assert process.exitcode == 0 and kills >= 5
    assert products(run) == products(undisturbed)


def test_the_processes_of_a_killed_run_end_too() -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def killed() -> None:
        for worker in parallel.in_order(_process_id, iter(int, 1), workers=2):
            sender.send(worker)
            os.kill(os.getpid(), signal.SIGKILL)

    process = context.Process(target=killed)
    process.start()
    worker = receiver.recv()
    process.join()
    deadline = time.monotonic() + 20
    while _runs(worker):
        assert time.monotonic() < deadline, f"process {worker} of a killed run is still there after 20 seconds"
        time.sleep(0.1)


def _process_id(_: object) -> int:
    return os.getpid()


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
