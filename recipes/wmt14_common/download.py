"""Downloads the archives of WMT14, resumes an interrupted one, and checks what it has.

A mirror (``WMT14_MIRROR``) is a folder or an address that holds the archives under their paths on the host or under
their names alone. Archives of a folder are used where they lie. A mirror with a file ``miniature.json`` is the
miniature of ``mirror.py``: its archives are checked against that file, and every output says what it was made from.

What was verified once is not read again while its size and time are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from recipes.wmt14_common import corpora
from recipes.wmt14_common.corpora import Archive
from recipes.wmt14_common.resumed_download import download
from t2017_plugin.files import write_text

MINIATURE = "miniature.json"


def is_address(mirror: str) -> bool:
    """Whether a mirror is an address rather than a folder."""
    return mirror.startswith(("http://", "https://", "ftp://"))


def listing(archives: list[Archive], mirror: str, cache: Path) -> str:
    """Return what would be downloaded: an address, a size and a checksum a line, and the sum."""
    lines, total = [], 0.0
    for archive in archives:
        size = f"{archive.size:,} bytes" if archive.size else f"about {archive.about}"
        known = f"{archive.hash_name} published by {archive.published_by}" if archive.hash_value else "no checksum"
        place = archive.url if not mirror else f"{mirror.rstrip('/')}/{archive.path}"
        lines.append(f"{place}  {size}  ({known})")
        number, unit = archive.about.split()
        total += archive.size or float(number) * {"MB": 1e6, "GB": 1e9}[unit]
    lines.append(f"in all {total / 1e9:.1f} GB, into {cache}; nothing was downloaded (--dry-run)")
    return "\n".join(lines)


def miniature_of(mirror: str) -> dict[str, Any] | None:
    """Return what a miniature mirror says of itself, None for a real one.

    Raises SystemExit when a mirror's folder is not there.
    """
    if not mirror:
        return None
    if not is_address(mirror):
        folder = Path(mirror)
        if not folder.is_dir():
            raise SystemExit(f"WMT14_MIRROR is {mirror}, which is no folder; name a folder or an address (http://...)")
        path = folder / MINIATURE
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    try:
        with urllib.request.urlopen(f"{mirror.rstrip('/')}/{MINIATURE}", timeout=60) as answer:
            content = json.loads(answer.read())
            return content if isinstance(content, dict) and "archives" in content else None
    except (urllib.error.HTTPError, ValueError):
        return None
    except OSError as error:
        raise SystemExit(f"WMT14_MIRROR {mirror} cannot be reached ({error}); is the address right?") from error


def obtain(archive: Archive, mirror: str, cache: Path) -> Path:
    """Return where an archive lies, after downloading it if need be.

    Raises SystemExit when it cannot be had.
    """
    if mirror and not is_address(mirror):
        for path in (Path(mirror) / archive.path, Path(mirror) / archive.name):
            if path.is_file():
                return path.resolve()
        raise SystemExit(f"the mirror {mirror} has neither {archive.path} nor {archive.name}; put the archive there")
    target = cache / archive.name
    if not target.exists():
        base = mirror.rstrip("/")
        places = [f"{base}/{archive.path}", f"{base}/{archive.name}"] if mirror else [archive.url]
        print(f"{archive.name}: downloading {archive.about} from {places[0]}", flush=True)
        download(places, target)
    return target


def verified(archive: Archive, path: Path, cache: Path, miniature: dict[str, Any] | None) -> dict[str, Any]:
    """Return name, size and SHA-256 of an archive that is what it should be, and by whose word.

    Raises SystemExit when it is not; a file of the cache stays, so that it can be looked at.
    """
    record = cache / "verified" / f"{archive.name}.json"
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    state = {"path": str(path), "size": path.stat().st_size, "mtime_ns": path.stat().st_mtime_ns}
    if miniature is not None:
        expected = miniature["archives"].get(archive.path, {})
        wanted = (expected.get("size"), "sha256", expected.get("sha256"), "the miniature mirror")
    else:
        wanted = (archive.size, archive.hash_name, archive.hash_value, archive.published_by)
    size, hash_name, hash_value, by = wanted
    if size is not None and state["size"] != size:
        raise SystemExit(
            f"{path} has {state['size']:,} bytes and should have {size:,}; delete it and run the step again"
        )
    if {key: known.get(key) for key in state} != state:
        print(f"{archive.name}: computing its checksum", flush=True)
        hashes = hashes_of(path)
        if known.get("first_sha256", hashes["sha256"]) != hashes["sha256"] and hash_value is None:
            raise SystemExit(
                f"{path} is not what was first downloaded (SHA-256 {known['first_sha256'][:12]}... then); "
                f"delete it, or {record} if the new one is right"
            )
        known = {**state, **hashes, "first_sha256": hashes["sha256"]}
        write_text(record, json.dumps(known, indent=2) + "\n")
    if hash_value is not None and hash_name is not None and known[hash_name] != hash_value:
        record.unlink()
        raise SystemExit(
            f"{path}: its {hash_name} is {known[hash_name]}, {by} says {hash_value}; delete it and run the step again"
        )
    word = f"{hash_name} as {by} says" if hash_value else "recorded at the first download"
    return {"name": archive.name, "size": state["size"], "sha256": known["sha256"], "checked": word}


def hashes_of(path: Path) -> dict[str, str]:
    """SHA-256 and MD5 of a file, read once."""
    digests = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    with path.open("rb") as stream:
        while block := stream.read(1 << 22):
            for digest in digests.values():
                digest.update(block)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def main(argv: list[str] | None = None) -> None:
    """Write ``archives.json``: name, place, size and hash of every archive, or list them with --dry-run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target-lang", choices=corpora.TARGET_LANGS, required=True)
    parser.add_argument("--cache", type=Path, required=True, help="folder for what is downloaded")
    parser.add_argument("--mirror", default="", help="a folder or an address to take the archives from")
    parser.add_argument("--output", type=Path, help="where archives.json is written")
    parser.add_argument("--dry-run", action="store_true", help="list addresses and sizes, download nothing")
    args = parser.parse_args(argv)
    archives = corpora.archives(args.target_lang)
    if args.dry_run:
        print(listing(archives, args.mirror, args.cache))
        return
    if args.output is None:
        parser.error("name --output, or --dry-run")
    miniature = miniature_of(args.mirror)
    # The real archives have the same names and must never be compared with the miniature's.
    cache = args.cache / "miniature" if miniature else args.cache
    cache.mkdir(parents=True, exist_ok=True)
    found, places = [], {}
    for archive in archives:
        path = obtain(archive, args.mirror, cache)
        found.append(verified(archive, path, cache, miniature))
        places[archive.name] = str(path)
        print(f"{archive.name}: {found[-1]['size']:,} bytes, {found[-1]['checked']}", flush=True)
    content = {"note": miniature["note"] if miniature else None, "archives": found, "places": places}
    write_text(args.output, json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; run the step again to resume")
