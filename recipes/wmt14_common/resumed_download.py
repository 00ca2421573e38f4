"""Downloads one file, going on with what an interrupted download left behind (HTTP range requests)."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

from t2017_plugin.files import write_text

BLOCK = 1 << 18
SECONDS_BETWEEN_LINES = 10


def download(places: list[str], target: Path, attempts: int = 6, patience: float = 2.0) -> None:
    """Put the file at the first of ``places`` that has it at ``target``, whole or not at all.

    What has come so far is kept as ``NAME.part`` and resumed, also by a later call, if the server says that it is
    still the same file. A broken connection is tried again after ``patience`` seconds, then twice as long, and so on.

    Raises SystemExit when no place has it or the connection keeps breaking.
    """
    for place in places[:-1]:
        try:
            return _from(place, target, attempts, patience)
        except urllib.error.HTTPError:
            continue
    try:
        _from(places[-1], target, attempts, patience)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{places[-1]}: {error.code} {error.reason}; is WMT14_MIRROR or the address right?") from error


def _from(place: str, target: Path, attempts: int, patience: float) -> None:
    part = target.with_name(f"{target.name}.part")
    for attempt in range(attempts):
        try:
            _go_on(place, part)
            os.replace(part, target)
            _tag(part).unlink(missing_ok=True)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise
            reason = f"{error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < attempts:
            wait = patience * 2**attempt
            print(f"{target.name}: {reason}; trying again in {wait:g} s", flush=True)
            time.sleep(wait)
    raise SystemExit(f"{place} cannot be downloaded ({reason}); run the step again: what has come is kept and resumed")


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _go_on(place: str, part: Path) -> None:
    """Fetch what is missing of a part; what belongs to another file is thrown away."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(place, headers={"User-Agent": "t2017-recipes"})
    tag = json.loads(_tag(part).read_text(encoding="utf-8")) if have and _tag(part).exists() else {}
    if have and tag.get("validator"):
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag["validator"])
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have == tag.get("total"):  # nothing is missing
            return
        if error.code == 416:
            part.unlink()
        raise
    with answer:
        goes_on = answer.status == 206
        start = have if goes_on else 0
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        # A weak ETag does not promise the same bytes, so the time stands in for it.
        etag = answer.headers.get("ETag") or ""
        validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
        write_text(_tag(part), json.dumps({"validator": validator, "total": total}) + "\n")
        if goes_on:
            print(f"{part.name}: going on at byte {start:,}", flush=True)
        with part.open("ab" if goes_on else "wb") as stream:
            _copy(answer, stream, part.name, start, total)
    if total is not None and part.stat().st_size != total:
        raise OSError(f"the connection ended at byte {part.stat().st_size:,} of {total:,}")


def _copy(answer: http.client.HTTPResponse, stream: object, name: str, done: int, total: int | None) -> None:
    began, start, said = time.monotonic(), done, time.monotonic()
    while block := answer.read(BLOCK):
        stream.write(block)  # type: ignore[attr-defined]
        stream.flush()  # type: ignore[attr-defined]
        done += len(block)
        if time.monotonic() - said > SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            speed = (done - start) / (said - began) / 1e6
            of = f" of {total:,}" if total else ""
            print(f"{name}: {done:,}{of} bytes, {speed:.1f} MB/s", flush=True)
