"""t2017 parse: sentences in, one whole tree a line out, with exactly the words of the sentence, whatever they are."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2017_plugin.commands import main as cli
from t2017_plugin.parsing.linearisation import rebuild
from t2017_plugin.parsing.parser import Parser
from t2017_plugin.parsing.trees import escape, one_line, tree_of, words
from tests.commands.fairseq_runs import run_here
from tests.commands.parsing_run import ParsingRun, make_parsing_run

pytestmark = [pytest.mark.commands, pytest.mark.filterwarnings("ignore::UserWarning")]
ODD = [
    "",
    "   ",
    "( ) (( f(x) -LRB- [ ] { }",
    ")",
    "\u3000a\u00a0b\u2028c\x0bd\x85e",  # all of these are spaces
    "na\u00efve \u65e5\u672c\u8a9e \U0001f600 e\u0301 \u200bx\ufeff \x00 \x7f",
    "<unk> <s> </s> <pad> @@ a@@ /S S /NP (S )S",
    "\\ \\) a\\/b %s {0} & < > \" ' ` `` '' -- ...",
    "a" * 3000,
    "the " * 600,
    "\ud7ff \ufffd",
]


@pytest.fixture(scope="module")
def parsing(tmp_path_factory: pytest.TempPathFactory) -> ParsingRun:
    """100 updates on 360 trees."""
    return make_parsing_run(tmp_path_factory.mktemp("parsing"), updates=100)


@pytest.fixture
def call(parsing: ParsingRun, capfd, monkeypatch):
    """Call t2017 parse on text; returns status, stdout and stderr."""

    def run(text: str | bytes, *options: str) -> tuple[int, str, str]:
        given = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given)))
        folders = ["--checkpoint", str(parsing.checkpoint), "--data-bin", str(parsing.data_bin)]
        status = cli.main(["parse", *folders, "--cpu", *options])
        return status, *capfd.readouterr()

    return run


def sentences(parsing: ParsingRun, count: int) -> list[str]:
    return (parsing.corpus / "test.words").read_text(encoding="utf-8").splitlines()[:count]


def test_the_defaults_are_section_6_3s(parsing: ParsingRun) -> None:
    parser = Parser.load(parsing.checkpoint, parsing.data_bin)
    assert (parser.translator.beam, parser.translator.alpha) == (21, 0.3)
    generator = parser.translator._generator(1)
    assert generator.limit(17) == 317
    arguments = ["parse", "--checkpoint", "C", "--data-bin", "D"]
    args = cli.build_parser(arguments).parse_args(arguments)
    assert (args.beam, args.alpha) == (21, 0.3)


def test_the_same_as_fairseq_generate_and_rebuild(parsing: ParsingRun, call) -> None:
    given = sentences(parsing, 20)
    outcome = run_here(
        "generate",
        *(parsing.data_bin, "--user-dir", Path(cli.__file__).parent, "--task", "t2017_parsing", "--cpu"),
        *("--source-lang", "words", "--target-lang", "tree", "--path", parsing.checkpoint),
    )
    assert outcome.status == 0, outcome.error
    symbols = outcome.texts("H")
    status, output, _ = call("".join(f"{line}\n" for line in given), "--linearised")
    assert status == 0 and output.splitlines() == [symbols[number] for number in range(len(given))]
    status, output, error = call("".join(f"{line}\n" for line in given))
    rebuilt = [rebuild(symbols[number].split(), line.split()) for number, line in enumerate(given)]
    assert status == 0 and output.splitlines() == [one_line(tree) for tree, _ in rebuilt if tree is not None]
    bad = sum(not repairs.well_formed for _, repairs in rebuilt)
    assert (f"repaired: the symbols of {bad} of 20 sentences" in error) is bool(bad)


def test_any_line_gives_one_whole_tree_with_its_words(parsing: ParsingRun, call) -> None:
    lines = [line for pair in zip(ODD, sentences(parsing, len(ODD)), strict=True) for line in pair]
    status, output, error = call("\n".join(lines), "--beam", "2")
    assert status == 0
    *trees, end = output.split("\n")
    assert end == "" and len(trees) == len(lines)
    for line, tree in zip(lines, trees, strict=True):
        if not line.split():
            assert tree == ""
        else:
            assert words(tree_of(tree)) == [escape(word) for word in line.split()]
    assert "were parsed in pieces" in error and f"parsed {len(lines)} of {len(lines)} lines" in error


def test_in_python(parsing: ParsingRun) -> None:
    given = [*sentences(parsing, 3), ""]
    trees = Parser.load(parsing.checkpoint, parsing.data_bin, beam=2).parse(given)
    assert trees[-1] is None
    assert [words(tree) for tree in trees[:-1] if tree is not None] == [line.split() for line in given[:-1]]


def test_bytes_that_are_no_text_and_no_lines(call) -> None:
    assert call(b"") == (0, "", "")
    status, output, error = call(b"a \xff b\r\n", "--beam", "1")
    assert status == 0 and words(tree_of(output)) == ["a", "\ufffd", "b"]
    assert "lines that are not UTF-8: 1" in error


def test_raw_text_is_tokenised_as_in_the_treebank(call) -> None:
    status, output, _ = call("He didn't (say).\n", "--tokenize", "--beam", "1")
    assert status == 0
    assert words(tree_of(output)) == ["He", "did", "n't", "-LRB-", "say", "-RRB-", "."]


def test_refusals(parsing: ParsingRun, call, tmp_path: Path) -> None:
    status, output, error = call("a\n", "--data-bin", str(tmp_path))
    assert (status, output) == (1, "") and error.count("\n") == 1 and "text_settings.json" in error
    assert call("a\n", "--beam", "0")[0] == 2
