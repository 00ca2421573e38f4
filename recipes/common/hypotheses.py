"""Takes the translations out of fairseq-generate's output in the order of the test set, and compares translations."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from t2017_plugin.files import read_lines, write_text


def extract(generated: Path, source: Path, output: Path) -> None:
    """Write the best hypothesis of each sentence, a line each; every line of ``source`` must have one.

    Raises:
        UsageError: a sentence of the test set has no hypothesis, or there are more than sentences.
    """
    from t2017_plugin.scoring.texts import read_generate_log

    sentences = len(read_lines(source))
    hypotheses = read_generate_log(generated, sentences)
    write_text(output, "".join(f"{line}\n" for line in hypotheses))
    print(f"{output.name}: {len(hypotheses)} hypotheses for {sentences} sentences")


def compare(one: Path, other: Path, output: Path) -> None:
    """Write and print how many lines of two translations differ, with their numbers (from 1).

    Raises:
        SystemExit: the files do not have the same number of lines.
    """
    texts = read_lines(one), read_lines(other)
    if len(texts[0]) != len(texts[1]):
        raise SystemExit(f"{one} has {len(texts[0])} lines and {other} has {len(texts[1])}; they must be equal")
    differing = [number for number, lines in enumerate(zip(*texts, strict=True), start=1) if lines[0] != lines[1]]
    facts = {"files": [one.name, other.name], "lines": len(texts[0]), "differing_lines": differing}
    write_text(output, json.dumps(facts) + "\n")
    where = f" (the first is line {differing[0]})" if differing else ""
    print(f"{one.name} and {other.name}: {len(differing)} of {len(texts[0])} lines differ{where}")


def main(argv: list[str] | None = None) -> None:
    """Read the command line and do what it asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    extracting = actions.add_parser("extract")
    extracting.add_argument("--generated", type=Path, required=True, help="what fairseq-generate printed")
    extracting.add_argument("--source", type=Path, required=True, help="the test set's source: its lines are counted")
    extracting.add_argument("--output", type=Path, required=True)
    comparing = actions.add_parser("compare")
    comparing.add_argument("one", type=Path)
    comparing.add_argument("other", type=Path)
    comparing.add_argument("--output", type=Path, required=True)
    args = vars(parser.parse_args(argv))
    {"extract": extract, "compare": compare}[args.pop("action")](**args)


if __name__ == "__main__":
    main()
