"""What the WMT14 recipes read and refuse: archives, newstests, aligned sides, limits, and data that was changed."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from recipes.wmt14_common import archives, corpora, manifest, words
from recipes.wmt14_common.cleaning import Cleaner, mend
from recipes.wmt14_common.corpora import Archive, Corpus, Limits

pytestmark = pytest.mark.unit


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
