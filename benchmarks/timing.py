"""What the benchmarks share: taking turns, medians with their spread, the machine, tables."""

import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import torch

from t2017_plugin.markdown import table


def alternate(arms: Mapping[str, Callable[[], Any]], rounds: int, warmup: int = 1) -> dict[str, list[float]]:
    """Return the seconds of each arm, which take turns so that a busy moment of the machine meets all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(warmup + rounds):
        for name, arm in arms.items():
            began = time.perf_counter()
            arm()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if number >= warmup:
                seconds[name].append(time.perf_counter() - began)
        print(f"round {max(0, number + 1 - warmup)} of {rounds}", end="\r", flush=True)
    print(end="\x1b[K")
    return seconds


def ratios(numerator: list[float], denominator: list[float]) -> tuple[float, float, float]:
    """Return median, lowest and highest of the ratio, round by round."""
    each = [one / other for one, other in zip(numerator, denominator, strict=True)]
    return statistics.median(each), min(each), max(each)


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    processor = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor
    return {
        "date": date.today().isoformat(),
        "device": device,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def markdown(title: str, rows: list[dict[str, Any]]) -> str:
    """Return a table under a line that names machine and date."""
    about = machine()
    columns = list(rows[0])
    cells = [[row[column] for column in columns] for row in rows]
    line = f"{title}: {about['device']}, {about['threads']} threads, torch {about['torch']}, {about['date']}"
    return f"{line}\n\n{table(columns, cells, align='l' * len(columns))}"


def report(title: str, rows: list[dict[str, Any]], output: Path | None) -> None:
    """Print a Markdown table under a line that names machine and date, and write all of it as JSON if asked."""
    print(markdown(title, rows))
    if output:
        output.write_text(json.dumps({"title": title, "machine": machine(), "rows": rows}, indent=2) + "\n")
