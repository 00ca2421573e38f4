"""Which archives and files WMT14 is made of: the one list that downloading, cleaning and the miniature mirror read.

Sizes in bytes and checksums stand here only where somebody publishes them. TensorFlow Datasets publishes size and
SHA-256 of the three training archives for English-German, sacreBLEU the MD5 of the test sets; the size of giga-fren.tar
stands in public programs that download it. What nobody publishes is recorded at the first download and compared later.
"""

from __future__ import annotations

from dataclasses import dataclass

HOST = "https://www.statmt.org"
SOURCE_LANG = "en"
VALID_LINES, TEST_LINES = 3000, 3003


@dataclass(frozen=True)
class Archive:
    """A file to download.

    Attributes:
        path: where it lies on the host, and below a mirror.
        about: its size as WMT's pages tell it.
        size: bytes, where they are published.
        hash_name, hash_value: a published checksum, "sha256" or "md5".
        published_by: who publishes it.
    """

    path: str
    about: str
    size: int | None = None
    hash_name: str | None = None
    hash_value: str | None = None
    published_by: str | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def url(self) -> str:
        """The original address."""
        return f"{HOST}/{self.path}"


@dataclass(frozen=True)
class Corpus:
    """Two aligned files in an archive, found by their names whatever folder they lie in; ``.gz`` is unpacked.

    ``files`` may name several pairs: the first that the archive holds is read. ``lines`` is the number expected.
    """

    name: str
    archive: Archive
    files: tuple[tuple[str, str], ...]
    lines: int | None = None


EUROPARL = Archive(
    "wmt13/training-parallel-europarl-v7.tgz",
    "628 MB",
    657_632_379,
    "sha256",
    "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    "TensorFlow Datasets",
)
COMMONCRAWL = Archive(
    "wmt13/training-parallel-commoncrawl.tgz",
    "876 MB",
    918_311_367,
    "sha256",
    "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    "TensorFlow Datasets",
)
NEWS_COMMENTARY = Archive(
    "wmt14/training-parallel-nc-v9.tgz",
    "77 MB",
    80_418_416,
    "sha256",
    "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    "TensorFlow Datasets",
)
UNITED_NATIONS = Archive("wmt13/training-parallel-un.tgz", "2.3 GB")
GIGA = Archive("wmt10/training-giga-fren.tar", "2.3 GB", 2_595_102_720)
DEVELOPMENT = Archive("wmt14/dev.tgz", "17 MB")
TEST_FULL = Archive(
    "wmt14/test-full.tgz", "3.2 MB", None, "md5", "a8cd784e006feb32ac6f3d9ec7eb389a", "sacreBLEU (wmt14/full)"
)


def _training(target_lang: str) -> list[Corpus]:
    def files(stem: str) -> tuple[tuple[str, str], ...]:
        return ((f"{stem}.{SOURCE_LANG}", f"{stem}.{target_lang}"),)

    pair = f"{target_lang}-{SOURCE_LANG}"
    corpora = [
        Corpus("europarl-v7", EUROPARL, files(f"europarl-v7.{pair}")),
        Corpus("commoncrawl", COMMONCRAWL, files(f"commoncrawl.{pair}")),
        Corpus("news-commentary-v9", NEWS_COMMENTARY, files(f"news-commentary-v9.{pair}")),
    ]
    if target_lang == "fr":
        giga = ("giga-fren.release2.fixed.en.gz", "giga-fren.release2.fixed.fr.gz")
        corpora += [
            Corpus("un-2000", UNITED_NATIONS, files(f"undoc.2000.{pair}")),
            Corpus("giga-fren", GIGA, (giga,)),
        ]
    return corpora


def _valid(target_lang: str) -> Corpus:
    plain = (f"newstest2013.{SOURCE_LANG}", f"newstest2013.{target_lang}")
    sgm = (f"newstest2013-src.{SOURCE_LANG}.sgm", f"newstest2013-ref.{target_lang}.sgm")
    return Corpus("newstest2013", DEVELOPMENT, (plain, sgm), VALID_LINES)


def _test(target_lang: str) -> Corpus:
    stem = f"newstest2014-{target_lang}{SOURCE_LANG}"
    files = (f"{stem}-src.{SOURCE_LANG}.sgm", f"{stem}-ref.{target_lang}.sgm")
    return Corpus("newstest2014-full", TEST_FULL, (files,), TEST_LINES)


@dataclass(frozen=True)
class Limits:
    """What a training pair must keep: tokens are Moses tokens, before BPE."""

    max_tokens: int
    max_ratio: float


TARGET_LANGS = ("de", "fr")
TRAINING = {target_lang: _training(target_lang) for target_lang in TARGET_LANGS}
VALID = {target_lang: _valid(target_lang) for target_lang in TARGET_LANGS}
TEST = {target_lang: _test(target_lang) for target_lang in TARGET_LANGS}


def archives(target_lang: str) -> list[Archive]:
    """Return the archives that a language pair needs, in the order in which they are downloaded."""
    corpora = [*TRAINING[target_lang], VALID[target_lang], TEST[target_lang]]
    return list(dict.fromkeys(corpus.archive for corpus in corpora))
