"""Whatever a model wrote becomes a whole tree with exactly the words it read, and the repairs are counted."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2017_plugin.parsing.linearisation import Repairs, rebuild, summarise
from t2017_plugin.parsing.symbols import align
from t2017_plugin.parsing.trees import escape, one_line, tree_of, words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "symbols, sentence, expected, repairs",
    [
        ("S NP DT NN /NP VP VBD /VP . /S", "the cat sat .", "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))", {}),
        ("UH", "Yes", "(UH Yes)", {}),
        # Brackets.
        ("S NP DT NN /NP VP VBD", "the cat sat", "(S (NP (DT the) (NN cat)) (VP (VBD sat)))", {"closings_added": 2}),
        ("S NP DT NN /VP /NP /S", "the cat", "(S (NP (DT the) (NN cat)))", {"closings_left_out": 1}),
        ("S NP DT NP NN /S", "the cat", "(S (NP (DT the) (NP (NN cat))))", {"closings_added": 2}),
        ("S NP /NP VP VB /VP /S", "go", "(S (VP (VB go)))", {"empty_constituents": 1}),
        ("NP NN /NP VP VB /VP", "cats sit", "(S (NP (NN cats)) (VP (VB sit)))", {"joined_under_one": 1}),
        ("NN VB", "cats sit", "(S (NN cats) (VB sit))", {"joined_under_one": 1}),
        (
            "/S /NP",
            "cats sit",
            "(S (XX cats) (XX sit))",
            {"closings_left_out": 2, "words_added": 2, "joined_under_one": 1},
        ),
        ("", "sit", "(XX sit)", {"words_added": 1}),
        ("S", "sit .", "(S (XX sit) (. .))", {"words_added": 2, "closings_added": 1}),
        # Tags.
        ("S NP DT NN NN /NP . /S", "the cat .", "(S (NP (DT the) (NN cat)) (. .))", {"tags_left_out": 1}),
        ("S NP DT /NP . /S", "the cat .", "(S (NP (DT the) (XX cat)) (. .))", {"words_added": 1}),
        ("S NP DT NN /NP NN /S", "the cat .", "(S (NP (DT the) (NN cat)) (. .))", {"punctuation_tags": 1}),
        ("S NP , NN /NP . /S", "the cat .", "(S (NP (XX the) (NN cat)) (. .))", {"punctuation_tags": 1}),
        ("S NP NN '' /NP /S", "cats '", "(S (NP (NN cats) ('' ')))", {}),
        ("S NP NNP NNP /NP /S", "f(x) )", "(S (NP (NNP f-LRB-x-RRB-) (NNP -RRB-)))", {}),
        ("S <unk> /S", "x", "(S (<unk> x))", {}),
    ],
)
def test_repairs(symbols: str, sentence: str, expected: str, repairs: dict[str, int]) -> None:
    tree, counted = rebuild(symbols.split(), sentence.split())
    assert tree is not None and one_line(tree) == expected
    assert {name: count for name, count in dataclasses.asdict(counted).items() if count} == repairs
    assert counted.well_formed is (not set(repairs) - {"punctuation_tags"})


def test_the_form_of_vinyals_has_its_own_brackets() -> None:
    tree, repairs = rebuild("(S (NP XX )NP XX )S ( )".split(), "cats sit ( )".split(), "vinyals")
    # A lone bracket is no symbol of this form, so it stands for a word.
    assert tree is not None
    assert one_line(tree) == "(S (S (NP (XX cats)) (XX sit)) (-LRB- -LRB-) (-RRB- -RRB-))"
    assert repairs == Repairs(joined_under_one=1)


def test_no_words_no_tree() -> None:
    tree, repairs = rebuild("S NP NN /NP /S".split(), [])
    assert tree is None and repairs.tags_left_out == 1


SYMBOLS = st.sampled_from("S NP VP /S /NP /VP / NN , . '' XX -LRB- ( ) (S )S <unk> /".split())
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda word: word.split() == [word])


@settings(max_examples=150, deadline=None)
@given(st.lists(SYMBOLS, max_size=30), st.lists(WORDS, min_size=1, max_size=12), st.sampled_from(["t2t", "vinyals"]))
def test_always_a_whole_tree_with_exactly_the_words(symbols: list[str], sentence: list[str], form: str) -> None:
    tree, _ = rebuild(symbols, sentence, form)
    assert tree is not None
    assert words(tree_of(one_line(tree))) == [escape(word) for word in sentence]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["NN", ",", "."]), max_size=9), st.lists(st.sampled_from(["a", ",", "."]), max_size=9))
def test_alignment_leaves_the_fewest_over(tags: list[str], sentence: list[str]) -> None:
    partner, added = align(tags, sentence)
    paired = [number for number in partner if number is not None]
    extra = [number for numbers in added.values() for number in numbers]
    assert sorted(paired + extra) == list(range(len(sentence))) and paired == sorted(paired)
    if len(tags) != len(sentence):
        assert all(
            tags[tag] == sentence[number] or {tags[tag], sentence[number]} == {"NN", "a"}
            for tag, number in enumerate(partner)
            if number is not None
        )
        # The longest common subsequence is what can be paired.
        assert len(paired) == common([{"NN": "a"}.get(tag, tag) for tag in tags], sentence)


def test_very_long_lines_are_paired_in_order() -> None:
    partner, added = align(["NN"] * 1200, ["a"] * 1201)
    assert partner == list(range(1200)) and added == {1199: [1200]}
    partner, added = align(["NN"] * 1201, ["a"] * 1200)
    assert partner == [*range(1200), None] and added == {}


def common(one: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence."""
    rows = [[0] * (len(other) + 1)]
    for a in one:
        row = [0]
        for j, b in enumerate(other):
            row.append(rows[-1][j] + 1 if a == b else max(row[-1], rows[-1][j + 1]))
        rows.append(row)
    return rows[-1][-1]


def test_the_summary_of_several_sentences() -> None:
    facts: dict[str, Any] = summarise(
        [Repairs(), Repairs(punctuation_tags=2), Repairs(words_added=1), Repairs(closings_added=3)]
    )
    assert facts["sentences"] == 4 and facts["well_formed"] == 2 and facts["well_formed_percent"] == 50.0
    assert facts["balanced"] == 3 and facts["closings_added"] == 3 and facts["punctuation_tags"] == 2
