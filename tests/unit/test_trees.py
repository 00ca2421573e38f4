"""Trees: read, cleaned, linearised in both forms, and rebuilt."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree

from t2017_plugin.errors import UsageError
from t2017_plugin.parsing.linearisation import linearise, rebuild
from t2017_plugin.parsing.symbols import FORMS, form_of
from t2017_plugin.parsing.trees import (
    clean,
    escape,
    is_preterminal,
    nodes,
    one_line,
    read_tree_lines,
    read_trees,
    right_branching,
    tree_of,
    treebank_files,
    words,
)

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "texts.json"
TREEBANK = os.environ.get("T2017_TREEBANK", "")
CAT = "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"
# A file as the treebank has them: unlabelled top, indented, blank lines, a trace, function tags.
FILE = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBD left)
      (NP (-NONE- *-1) ))
    (. .) ))


( (FRAG (-LRB- -LRB-) (NP=2 (CD 8) ) (-RRB- -RRB-) )) (TOP (X (UH Yes)))
"""


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text())["parsing_linearisation"], ids=lambda case: case["tree"])
def test_the_authors_own_linearisation(case: dict[str, str]) -> None:
    tree = tree_of(case["tree"])
    assert " ".join(linearise(tree)) == case["targets"]
    assert " ".join(words(tree)) == case["inputs"]


def test_the_form_of_vinyals() -> None:
    expected = "(S (NP XX XX )NP (VP XX )VP XX )S"
    assert " ".join(linearise(tree_of(CAT), "vinyals")) == expected


def test_a_treebank_file_is_read_and_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "wsj_0001.mrg"
    path.write_text(FILE, encoding="utf-8")
    cleaned = [one_line(tree) for tree in map(clean, read_trees(path)) if tree is not None]
    assert cleaned == [
        "(S (NP (NNP Mr.) (NNP Vinken)) (VP (VBD left)) (. .))",
        "(FRAG (-LRB- -LRB-) (NP (CD 8)) (-RRB- -RRB-))",
        "(X (UH Yes))",
    ]
    assert treebank_files(tmp_path) == [path]


@pytest.mark.parametrize(
    "given, expected",
    [
        ("(ROOT (S (NP (NP (NN a)))))", "(S (NP (NP (NN a))))"),  # unary chains stay
        ("( (S (NP (NN a))) (S (NP (NN b))))", "(X (S (NP (NN a))) (S (NP (NN b))))"),
        ("(S (NP (-NONE- *)) (VP (VB go)))", "(S (VP (VB go)))"),
        ("(S (SBAR (-NONE- 0) (S (-NONE- *T*))) (NP (NN a)))", "(S (NP (NN a)))"),
        ("(S (NP (NN a)) (NP (-NONE- *)) (NP (NN a)))", "(S (NP (NN a)) (NP (NN a)))"),
        ("(S|X (ADVP|PRT-CLR (RP up)))", "(S|X (ADVP|PRT (RP up)))"),
        ("(TOP (UH Yes))", "(UH Yes)"),
        ("( (S (-NONE- *)))", None),
    ],
)
def test_cleaning(given: str, expected: str | None) -> None:
    tree = clean(tree_of(given))
    assert (one_line(tree) if tree is not None else None) == expected


@pytest.mark.parametrize(
    "text, said",
    [
        ("(S (NP (NN a))\n", "line 1: the tree that begins here has no end"),
        ("(S (NN a))\n)\n", "line 2: a ) without its ("),
        ("(S (NN a))\nthe\n", "line 2: 'the' stands outside of a tree"),
        ("\n(S the (NN a))\n", "line 2: the word 'the' has no tag of its own"),
        ("(S (NN a b))\n", "line 1: the word 'a' has no tag of its own"),
    ],
)
def test_what_is_no_tree_is_named_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "trees"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_trees(path)
    assert str(raised.value).startswith(f"{path}, {said}")


def test_lines_stay_aligned(tmp_path: Path) -> None:
    path = tmp_path / "trees"
    path.write_text(f"{CAT}\n\n(NN a) (NN b)\n", encoding="utf-8")
    assert [[one_line(tree) for tree in line] for line in read_tree_lines(path)] == [[CAT], [], ["(NN a)", "(NN b)"]]
    path.write_text(f"{CAT}\n(S\n(NN a))\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 2: the tree that begins here has no end"):
        read_tree_lines(path)


def test_deep_trees_are_no_trouble() -> None:
    """Deeper than Python lets functions call themselves."""
    deep = "(S " * 5000 + "(NN a)" + ")" * 5000
    tree = tree_of(deep)
    assert one_line(tree) == deep
    for form in FORMS:
        rebuilt, repairs = rebuild(linearise(tree, form), ["a"], form)
        assert repairs.well_formed and rebuilt is not None and len(list(nodes(rebuilt))) == 5001
    assert clean(tree) is not None


def test_right_branching() -> None:
    assert one_line(right_branching(tree_of(CAT))) == "(S (DT The) (NP (NN cat) (NP (VBD sat) (. .))))"
    assert one_line(right_branching(tree_of("(X (UH Yes))"))) == "(S (UH Yes))"


LABELS = st.sampled_from(["S", "NP", "VP", "SBAR", "ADVP|PRT", "NEW"])
TAGS = st.sampled_from(["NN", ".", ",", "-LRB-", "PRP$", "''", "#"])
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda word: word.split() == [word])
TREES = st.recursive(
    st.builds(lambda tag, word: Tree(tag, [escape(word)]), TAGS, WORDS),
    lambda children: st.builds(Tree, LABELS, st.lists(children, min_size=1, max_size=4)),
    max_leaves=20,
).filter(lambda tree: not is_preterminal(tree))


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_any_tree_comes_back(tree: Tree) -> None:
    assert tree_of(one_line(tree)) == tree
    rebuilt, repairs = rebuild(linearise(tree), words(tree), punctuation=False)
    assert rebuilt == tree and repairs.well_formed
    rebuilt, repairs = rebuild(linearise(tree, "vinyals"), words(tree), "vinyals", punctuation=False)
    assert repairs.well_formed and rebuilt is not None
    assert linearise(rebuilt, "vinyals") == linearise(tree, "vinyals") and words(rebuilt) == words(tree)


@pytest.mark.skipif(not TREEBANK, reason="T2017_TREEBANK names no folder of wsj_NNNN.mrg files")
def test_every_tree_of_a_treebank_comes_back() -> None:
    seen = 0
    for path in treebank_files(TREEBANK):
        for tree in read_trees(path):
            cleaned = clean(tree)
            assert cleaned is not None
            for form in FORMS:
                rebuilt, repairs = rebuild(linearise(cleaned, form), words(cleaned), form, punctuation=False)
                assert repairs.well_formed and rebuilt is not None, one_line(cleaned)
                assert rebuilt == cleaned if form == "t2t" else linearise(rebuilt, form) == linearise(cleaned, form)
            seen += 1
    assert seen > 0


def test_dictionaries_of_trees_and_of_words_are_told_apart() -> None:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    assert form_of([*special, "S", "/S", "NP", "/NP", "DT", "NN", "."]) == "t2t"
    assert form_of([*special, "(S", ")S", "(NP", ")NP", "XX"]) == "vinyals"
    words = [*special, "und", "/", "/und", ")", "(", "(s", ")s", *(f"w{number}" for number in range(200))]
    assert form_of(words) is None and form_of(special) is None
