"""t2017 trees: linearise, rebuild, score and show, as one calls them."""

import io
import json
import sys
import xml.etree.ElementTree
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2017_plugin.commands import main as cli

pytestmark = pytest.mark.commands
FILE = """( (S (NP-SBJ (DT The) (NN cat)) (VP (VBD sat) (NP (-NONE- *))) (. .)) )
( (S (NP (-NONE- *))) )
(TOP (S (NP (DT A) (NN dog))
        (VP (VBD saw) (NP (PRP it))) (. .)))
"""
GOLD = [
    "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))",
    "(S (NP (DT A) (NN dog)) (VP (VBD saw) (NP (PRP it))) (. .))",
]
SYMBOLS = ["S NP DT NN /NP VP VBD /VP . /S", "S NP DT NN /NP VP VBD NP PRP /NP /VP . /S"]
VINYALS = "(S (NP XX XX )NP (VP XX )VP XX )S"


def lines(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """Write a file as the treebank has them, with a tree that is nothing but a trace."""
    path = tmp_path / "wsj_0001.mrg"
    path.write_text(FILE, encoding="utf-8")
    return path


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


def test_there_and_back(trees: Path, tmp_path: Path, capfd, monkeypatch) -> None:
    words, gold = tmp_path / "words", tmp_path / "gold"
    assert cli.main(["trees", "linearise", str(trees), "--words", str(words), "--gold", str(gold)]) == 0
    printed = capfd.readouterr()
    assert printed.out == lines(*SYMBOLS) and "no word but traces: 1" in printed.err
    assert words.read_text() == lines("The cat sat .", "A dog saw it .") and gold.read_text() == lines(*GOLD)
    give(monkeypatch, printed.out)
    repairs = tmp_path / "repairs.json"
    assert cli.main(["trees", "rebuild", "--words", str(words), "--json", str(repairs)]) == 0
    printed = capfd.readouterr()
    assert printed.out == gold.read_text() and "well-formed before repair: 2 of 2 (100.0 %)" in printed.err
    assert json.loads(repairs.read_text())["well_formed"] == 2


def test_a_folder_the_other_form_and_trees_as_they_are(trees: Path, capfd) -> None:
    assert cli.main(["trees", "linearise", str(trees.parent), "--form", "vinyals"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == VINYALS
    assert cli.main(["trees", "linearise", str(trees), "--as-is"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == "S NP-SBJ DT NN /NP-SBJ VP VBD NP -NONE- /NP /VP . /S"


def test_repairs_are_told(tmp_path: Path, capfd, monkeypatch) -> None:
    words = tmp_path / "words"
    words.write_text(lines("The cat sat .", "", "It did"))
    give(monkeypatch, lines("S NP DT NN VP VBD . /S", "S NN /S", VINYALS))
    assert cli.main(["trees", "rebuild", "--words", str(words)]) == 0
    printed = capfd.readouterr()
    repaired, blank, other = printed.out.splitlines()
    assert repaired == "(S (NP (DT The) (NN cat) (VP (VBD sat) (. .))))" and blank == ""
    assert other.startswith("(S ") and "It" in other and "did" in other
    assert "well-formed before repair: 0 of 2" in printed.err


def test_scores(tmp_path: Path, capfd) -> None:
    gold, test = tmp_path / "gold", tmp_path / "test"
    gold.write_text(lines(*GOLD))
    test.write_text(lines(GOLD[0], "(S (NP (DT A) (NN dog)) (VP (VBD saw)) (NP (NN it)) (. .))"))
    call = ["trees", "score", "--gold", str(gold), "--test", str(test)]
    assert cli.main([*call, "--baseline"]) == 0
    table = dict((line[:20].strip(), line[20:].split()) for line in capfd.readouterr().out.splitlines()[1:])
    # Six of seven brackets on either side: the second VP ends too early.
    assert table["F1"][:2] == table["recall"][:2] == table["precision"][:2] == ["85.71", "85.71"]
    assert table["complete match"][0] == "50.00" and table["tagging accuracy"][0] == "85.71"
    assert len(table["F1"]) == 3 and table["compared"] == ["2", "2", "2"]
    assert cli.main([*call, "--json"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["all"]["brackets"] == {"matched": 6, "gold": 7, "test": 7} and set(scores) == {"all", "short"}


def test_parameter_file_and_failed_sentences(tmp_path: Path, capfd) -> None:
    gold, test, rules = (tmp_path / name for name in ("gold", "test", "rules.prm"))
    gold.write_text(lines(*GOLD))
    test.write_text(lines(GOLD[0], GOLD[1].replace("dog", "cow")))
    call = ["trees", "score", "--gold", str(gold), "--test", str(test)]
    assert cli.main(call) == 0
    assert "sentence 2: the word 'dog' in the gold tree is 'cow' in the parse" in capfd.readouterr().err
    rules.write_text("# own rules\nDELETE_LABEL TOP\nEQ_WORD cow dog\nCUTOFF_LEN 4\n")
    assert cli.main([*call, "--param", str(rules)]) == 0
    printed = capfd.readouterr()
    assert printed.err == "" and "at most 4 words" in printed.out
    rules.write_text("DEBUG 0\nQUOTE_LABEL POS\n")
    assert cli.main([*call, "--param", str(rules)]) == 1
    assert f"{rules}, line 2: 'QUOTE_LABEL POS'" in capfd.readouterr().err


def test_a_picture_as_png(trees: Path, tmp_path: Path) -> None:
    """Ink where labels and lines are, also for a deep tree, and with dollar signs."""
    from matplotlib import image

    deep = tmp_path / "deep.txt"
    deep.write_text("(S " + "(NP " * 60 + "(NN $a$)" + ")" * 61 + "\n", encoding="utf-8")
    for source, number in ((trees, "1"), (trees, "3"), (deep, "1")):
        picture = tmp_path / "tree.png"
        assert cli.main(["trees", "show", str(source), "--number", number, "--png", str(picture)]) == 0
        pixels = image.imread(picture)
        assert pixels.shape[2] == 4 and 0.001 < float((pixels[..., :3] < 0.5).mean()) < 0.2


def test_show(trees: Path, tmp_path: Path, capfd, monkeypatch) -> None:
    give(monkeypatch, FILE)
    assert cli.main(["trees", "show", "--number", "3"]) == 0
    drawing = capfd.readouterr().out
    assert "─" in drawing and drawing.splitlines()[-1].split() == ["A", "dog", "saw", "it", "."]
    picture = tmp_path / "tree.svg"
    assert cli.main(["trees", "show", str(trees), "--svg", str(picture)]) == 0
    root = xml.etree.ElementTree.fromstring(picture.read_bytes())
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"cat", "NN", "NP-SBJ"} <= set(texts)


@pytest.mark.parametrize(
    "arguments, status, said",
    [
        (["linearise", "{missing}"], 1, "no such file"),
        (["linearise", "{folder}"], 1, "holds no .mrg file"),
        (["linearise", "{bad}"], 1, "line 1: the tree that begins here has no end"),
        (["rebuild", "--words", "{trees}", "{bad}"], 1, "a line each"),
        (["score", "--gold", "{trees}", "--test", "{bad}"], 1, "line 3"),
        (["show", "{trees}", "--number", "4"], 1, "has 3 trees, and --number is 4"),
        (["show", "{trees}", "--svg", "{folder}"], 1, "is a folder"),
        (["draw"], 2, "invalid choice"),
        (["linearise", "{trees}", "--form", "other"], 2, "invalid choice"),
    ],
)
def test_refusals(arguments: list[str], status: int, said: str, trees: Path, tmp_path: Path, capfd) -> None:
    folder, bad = tmp_path / "empty", tmp_path / "bad"
    folder.mkdir()
    bad.write_text("(S (NN a)\n")
    places = {"trees": trees, "folder": folder, "bad": bad, "missing": tmp_path / "nothing"}
    assert cli.main(["trees", *(argument.format(**places) for argument in arguments)]) == status
    error = capfd.readouterr().err
    assert said in error
    assert status == 2 or error.count("\n") == 1
