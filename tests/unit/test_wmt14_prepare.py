"""Preparation of WMT14 on the miniature: counts by reason, order, BPE, alignment, and kills at any point."""

import io
import json
import multiprocessing
import os
import signal
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from subword_nmt.learn_bpe import learn_bpe

from recipes.wmt14_common import archives, corpora, download, manifest, mirror, parallel, prepare, units, words
from recipes.wmt14_common.cleaning import MENDED, Cleaner, mend
from recipes.wmt14_common.corpora import Archive, Corpus, Limits
from t2017_plugin.text_pipeline import TextPipeline

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


def archive_with(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"training/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def corpus_of(*names: str, lines: int | None = None) -> Corpus:
    return Corpus("made-up", Archive("a.tgz", "1 MB"), ((names[0], names[1]),), lines)


def test_sides_that_are_not_aligned_are_refused_by_file_and_line(tmp_path: Path) -> None:
    path = archive_with(tmp_path / "a.tgz", en=b"1\n2\n3\n", de=b"eins\nzwei\n")
    with pytest.raises(SystemExit, match=r"a\.tgz: de ends before line 3, where en goes on"):
        list(archives.raw_pairs(corpus_of("en", "de"), path))
    (tmp_path / "x.en").write_text("1\n2\n3\n")
    (tmp_path / "x.de").write_text("1\n2\n")
    with pytest.raises(SystemExit, match=r"x\.de ends after line 2, where x\.en goes on to line 3"):
        words.check_aligned([tmp_path / "x.en", tmp_path / "x.de"])


def test_a_newstest_of_another_size_is_refused(tmp_path: Path) -> None:
    text = b"".join(b'<seg id="1">a</seg>\n' for _ in range(2737))
    path = archive_with(tmp_path / "a.tgz", **{"s.sgm": text, "t.sgm": text})
    with pytest.raises(SystemExit, match=r"s\.sgm has 2,737 lines, 3,003 are expected; 2,737 lines are the filtered"):
        words.newstest(corpus_of("s.sgm", "t.sgm", lines=3003), path, tmp_path, tmp_path, "test", ("en", "de"))
    assert [file.name for file in tmp_path.iterdir()] == ["a.tgz"]


def test_an_archive_without_the_file_or_cut_off_is_named(tmp_path: Path) -> None:
    path = archive_with(tmp_path / "a.tgz", en=os.urandom(100_000))
    with pytest.raises(SystemExit, match=r"a\.tgz holds no file de"):
        list(archives.member_lines(path, "de"))
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(SystemExit, match=r"a\.tgz cannot be read"):
        list(archives.member_lines(path, "en"))


def test_newstest2013_may_be_plain_or_sgm(tmp_path: Path) -> None:
    corpus = corpora.VALID["de"]
    sgm_only = archive_with(tmp_path / "a.tgz", **{"newstest2013-src.en.sgm": b"", "newstest2013-ref.de.sgm": b""})
    assert archives.chosen_files(corpus, sgm_only) == ("newstest2013-src.en.sgm", "newstest2013-ref.de.sgm")
    with pytest.raises(SystemExit, match="holds none of newstest2013.en"):
        archives.chosen_files(corpus, archive_with(tmp_path / "b.tgz", other=b""))


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        ("a\u00adb\u200bc\ufeff", "abc"),
        ("a\x07b\x00", "a b"),
        ("a\u2028b\x85c", "a b c"),
        ("a\u00a0%\tb", "a\u00a0%\tb"),
    ],
)
def test_control_characters_are_mended(raw: str, mended: str) -> None:
    assert mend(raw) == mended


def test_limits_are_of_moses_tokens_on_either_side() -> None:
    cleaner = Cleaner(("en", "de"), Limits(max_tokens=4, max_ratio=2))
    pairs = {b"a b c d": "kept", b"a b c, d": "more than 4 tokens", b"a": "length ratio above 2"}
    for source, reason in pairs.items():
        counts = cleaner.clean([(source, b"a b c")]).counts
        assert counts["kept"] == (reason == "kept") and (reason == "kept" or counts[reason] == 1)


def data_bin(folder: Path) -> Path:
    folder.mkdir()
    files = {"codes": "#version: 0.2\n", "dict.de.txt": "a 1\nb 2\n", "dict.en.txt": "a 1\nb 2\n", "train.bin": "x"}
    for name, content in files.items():
        (folder / name).write_text(content)
    facts = {"target_lang": "de", "codes_sha256": manifest.file_sha256(folder / "codes")}
    (folder / "manifest.json").write_text(json.dumps(facts))
    return folder


def test_data_that_is_not_what_its_manifest_says_is_refused(tmp_path: Path) -> None:
    good = data_bin(tmp_path / "good")
    manifest.main(["complete", str(good)])
    assert json.loads((good / "manifest.json").read_text())["dictionary_tokens"] == 2
    manifest.main(["check", str(good)])
    for name, message in (
        ("codes", "codes are not the codes"),
        ("dict.en.txt", "dict.en.txt is not what 1_prepare.sh made"),
        ("train.bin", "train.bin is not what"),
    ):
        content = (good / name).read_text()
        (good / name).write_text("other")
        with pytest.raises(SystemExit, match=message):
            manifest.check(good)
        (good / name).write_text(content)
    (good / "manifest.json").unlink()
    with pytest.raises(SystemExit, match="run 1_prepare.sh"):
        manifest.check(good)


def test_the_real_list_names_every_corpus_once() -> None:
    assert [corpus.name for corpus in corpora.TRAINING["fr"]][:3] == [corpus.name for corpus in corpora.TRAINING["de"]]
    assert len(corpora.TRAINING["fr"]) == 5
