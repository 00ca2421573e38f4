"""Writes a miniature mirror of WMT14: the same archives, paths, formats and test set sizes, with made-up text.

    python -m recipes.wmt14_common.mirror --output runs/mirror
    WMT14_MIRROR=$PWD/runs/mirror SCALE=mini recipes/wmt14_ende/run.sh --run runs/wmt14_mini

For trying the recipes where the real archives cannot be had. The sentences are those of ``generated_corpus``, dressed
with what real corpora hold: quotes, compounds, apostrophes, and pairs that cleaning must find, so many of each kind in
each corpus (``DIRT``). ``miniature.json`` lists sizes and hashes, and carries the note that every output repeats.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import tarfile
from pathlib import Path

from recipes.common import generated_corpus
from recipes.wmt14_common import corpora
from recipes.wmt14_common.corpora import Archive
from recipes.wmt14_common.download import MINIATURE
from t2017_plugin.files import file_sha256, write_text

NOTE = "MINIATURE of WMT14: made-up text that is no language; its scores say only that the steps work."
# How many pairs of each kind are put into every training corpus, beside the good ones.
DIRT = {"empty side": 3, "not UTF-8": 2, "long": 2, "ratio": 4, "control": 5}
LONG, RATIO = 300, 12

Texts = dict[str, list[bytes]]


def dressed(source: str, target: str, language: str, style: random.Random) -> tuple[str, str]:
    """Give a generated pair capitals, joined punctuation, and now and then quotes, a compound or an apostrophe."""
    source, target = (side[0].upper() + side[1:].replace(" .", ".") for side in (source, target))
    chance = style.random()
    if chance < 0.15 and language == "de":
        target = f"„{target[:-1]}“, sagte er."
        source = f"“{source[:-1]}”, he said."
    elif chance < 0.15:
        target = f"« {target[:-1]} », dit-il."
        source = f"“{source[:-1]}”, he said."
    elif chance < 0.3:
        target = f"Rein-raus-{target}" if language == "de" else f"L’eau d'{target}"
        source = f"In-and-out {source}"
    return source, target


def clean_pairs(count: int, language: str, seed: int, longest: int) -> list[tuple[str, str]]:
    """Make dressed pairs whose generated sentences have at most ``longest`` words a side."""
    style = random.Random(f"{language} {seed}")
    found = []
    for pair in generated_corpus.pairs(count * 4, seed):
        if len(pair.source.split()) <= longest and len(found) < count:
            found.append(dressed(pair.source, pair.target, language, style))
    return found


def training_text(count: int, language: str, seed: int) -> Texts:
    """Both sides of a training corpus, dirt spread among the good pairs."""
    pairs = [(s.encode(), t.encode()) for s, t in clean_pairs(count, language, seed, longest=9)]
    good = pairs[0]
    dirty = (
        [(good[0], b""), (b" ", good[1]), (b"", b"")]
        + [(b"latin-1: \xe4\xf6", good[1]), (good[0], b"\xff\xfe")]
        + [(b"long " * LONG, b"lang " * LONG)] * DIRT["long"]
        + [(b"short one", b"wort " * (2 * RATIO + 2))] * DIRT["ratio"]
        + [(b"zero\xe2\x80\x8bwidth \x07bell " + good[0], "Trenn\u00adstrich\u2028 ".encode() + good[1])]
        * DIRT["control"]
    )
    for number, pair in enumerate(dirty):
        pairs.insert((number * 7) % len(pairs), pair)
    return {corpora.SOURCE_LANG: [source for source, _ in pairs], language: [target for _, target in pairs]}


def sgm(lines: list[str], kind: str, source: str, target: str) -> bytes:
    """Return a test set in WMT's SGM: kind "src" or "ref"; documents of 50 segments with running numbers."""
    outer = {"src": "srcset", "ref": "refset"}[kind]
    attributes = f' trglang="{target}"' if kind == "ref" else ""
    text = [f'<{outer} setid="newstest2014" srclang="any"{attributes}>']
    for number, line in enumerate(lines):
        if number % 50 == 0:
            text += ["</p>", "</doc>"] if number else []
            name = f'docid="made-up.{number // 50}" genre="news" origlang="{source}"'
            text += [f'<doc sysid="ref" {name}>' if kind == "ref" else f"<doc {name}>", "<p>"]
        text.append(f'<seg id="{number % 50 + 1}">{line}</seg>')
    return ("\n".join([*text, "</p>", "</doc>", f"</{outer}>"]) + "\n").encode()


def plain(lines: list[bytes]) -> bytes:
    """Lines as a text file."""
    return b"".join(line + b"\n" for line in lines)


def contents(pairs: int) -> dict[Archive, dict[str, bytes]]:
    """Return the files of every archive, by their paths in it."""
    files: dict[Archive, dict[str, bytes]] = {
        archive: {} for lang in ("de", "fr") for archive in corpora.archives(lang)
    }
    folders = {corpora.EUROPARL: "training/", corpora.NEWS_COMMENTARY: "training/", corpora.UNITED_NATIONS: "un/"}
    for language in corpora.TARGET_LANGS:
        for seed, corpus in enumerate(corpora.TRAINING[language], start=1):
            text = training_text(pairs, language, seed)
            for name, side in zip(corpus.files[0], (corpora.SOURCE_LANG, language), strict=True):
                content = plain(text[side])
                if name.endswith(".gz"):
                    content = gzip.compress(content, mtime=0)
                files[corpus.archive][folders.get(corpus.archive, "") + name] = content
        _newstests(files, language)
    files[corpora.COMMONCRAWL]["commoncrawl.de-en.annotation"] = b"http://example.org/\thttp://example.org/\n" * pairs
    files[corpora.EUROPARL]["training/europarl-v7.cs-en.cs"] = b"jiny jazyk\n"
    return files


def _newstests(files: dict[Archive, dict[str, bytes]], language: str) -> None:
    source = corpora.SOURCE_LANG
    valid = clean_pairs(corpora.VALID_LINES, language, 101, longest=7)
    test = clean_pairs(corpora.TEST_LINES, language, 102, longest=7)
    for side, texts in ((source, [s for s, _ in valid]), (language, [t for _, t in valid])):
        files[corpora.DEVELOPMENT][f"dev/newstest2013.{side}"] = plain([text.encode() for text in texts])
    for side, texts in ((source, [s for s, _ in test]), (language, [t for _, t in test])):
        for kind in ("src", "ref"):
            name = f"test-full/newstest2014-{language}{source}-{kind}.{side}.sgm"
            files[corpora.TEST_FULL][name] = sgm(texts, kind, source, side)


def write_archive(path: Path, files: dict[str, bytes]) -> None:
    """Write a ``.tgz`` or ``.tar`` with the same bytes whenever it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain_tar = io.BytesIO()
    with tarfile.open(fileobj=plain_tar, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    content = plain_tar.getvalue()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".tgz" else content)


def main(argv: list[str] | None = None) -> None:
    """Write all archives, and last ``miniature.json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the mirror's folder")
    parser.add_argument("--pairs", type=int, default=300, help="good pairs in each training corpus")
    args = parser.parse_args(argv)
    listed = {}
    for archive, files in contents(args.pairs).items():
        path = args.output / archive.path
        write_archive(path, files)
        listed[archive.path] = {"size": path.stat().st_size, "sha256": file_sha256(path)}
        print(f"{archive.path}: {len(files)} files, {path.stat().st_size:,} bytes")
    write_text(args.output / MINIATURE, json.dumps({"note": NOTE, "archives": listed}, indent=2) + "\n")


if __name__ == "__main__":
    main()
