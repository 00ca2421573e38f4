"""Brackets counted as EVALB counts them: against the program itself where it can be had, else what it printed."""

import os
from pathlib import Path

import pytest

from t2017_plugin.parsing.evalb import COLLINS, Rules, compare, evaluate, read_rules
from t2017_plugin.parsing.trees import read_tree_lines, read_trees, tree_of, treebank_files
from tests.parity.evalb_program import INSIDE, compile_evalb, made_up_trees, perturbed_pairs, run_evalb

pytestmark = pytest.mark.parity
# What EVALB printed for the 500 made-up trees (recorded from the program that the tests below compile).
RECORDED: list[dict[str, float]] = [
    {
        "recall": 95.46,
        "precision": 94.36,
        "f1": 94.91,
        "complete_match": 41.43,
        "average_crossing": 0.11,
        "no_crossing": 89.98,
        "tagging": 98.43,
        "sentences": 500.0,
        "failed": 46.0,
        "skipped": 5.0,
    },
    {
        "recall": 93.51,
        "precision": 92.08,
        "f1": 92.79,
        "complete_match": 40.25,
        "average_crossing": 0.11,
        "no_crossing": 89.87,
        "tagging": 97.86,
        "sentences": 441.0,
        "failed": 41.0,
        "skipped": 5.0,
    },
]
# EVALB prints two digits.
PRINTED = 0.0051


@pytest.fixture(scope="module")
def evalb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the compiled program."""
    folder = tmp_path_factory.mktemp("evalb")
    reason = compile_evalb(folder)
    if reason:
        pytest.skip(reason)
    return folder


def written(pairs: list[tuple[str, str]], folder: Path) -> tuple[Path, Path]:
    """Write the two files that both programs read."""
    gold, test = folder / "gold", folder / "test"
    gold.write_text("".join(f"{one}\n" for one, _ in pairs), encoding="utf-8")
    test.write_text("".join(f"{other}\n" for _, other in pairs), encoding="utf-8")
    return gold, test


def same(gold: Path, test: Path, rules: Rules, expected: list[dict[str, float]]) -> None:
    """Our figures are those, over all sentences and over the short ones."""
    for scores, figures in zip(evaluate(read_tree_lines(gold), read_tree_lines(test), rules), expected, strict=True):
        found = scores.as_dict()
        for name, value in figures.items():
            assert found[name] == pytest.approx(value, abs=PRINTED), name


def test_500_spoiled_trees_as_recorded(tmp_path: Path) -> None:
    gold, test = written(perturbed_pairs(made_up_trees(500)), tmp_path)
    same(gold, test, COLLINS, RECORDED)


def test_500_spoiled_trees_as_evalb_counts_them(evalb: Path, tmp_path: Path) -> None:
    gold, test = written(perturbed_pairs(made_up_trees(500)), tmp_path)
    expected = run_evalb(evalb, evalb / INSIDE / "COLLINS.prm", gold, test)
    assert expected == RECORDED
    assert expected[0]["failed"] > 10 and expected[0]["skipped"] > 0
    same(gold, test, COLLINS, expected)


def test_its_own_sample(evalb: Path) -> None:
    folder = evalb / INSIDE / "sample"
    rules = read_rules(folder / "sample.prm")
    expected = run_evalb(evalb, folder / "sample.prm", folder / "sample.gld", folder / "sample.tst")
    assert (expected[0]["recall"], expected[0]["precision"], expected[0]["f1"]) == (87.76, 90.53, 89.12)
    assert (expected[0]["complete_match"], expected[0]["tagging"]) == (52.94, 98.15)
    same(folder / "sample.gld", folder / "sample.tst", rules, expected)
    assert read_rules(evalb / INSIDE / "COLLINS.prm") == COLLINS


@pytest.mark.skipif(not os.environ.get("T2017_TREEBANK"), reason="T2017_TREEBANK names no folder of wsj_NNNN.mrg files")
def test_500_spoiled_trees_of_a_treebank(evalb: Path, tmp_path: Path) -> None:
    trees = [tree for path in treebank_files(os.environ["T2017_TREEBANK"]) for tree in read_trees(path)]
    # EVALB has room for 200 words and brackets.
    short = [tree for tree in trees if len(tree.leaves()) < 80][:500]
    gold, test = written(perturbed_pairs(short), tmp_path)
    same(gold, test, COLLINS, run_evalb(evalb, evalb / INSIDE / "COLLINS.prm", gold, test))


def test_one_sentence_by_hand() -> None:
    gold = tree_of("(TOP (S (NP-SBJ (DT the) (NN cat)) (VP (VBD sat) (PRT (RP down))) (. .)))")
    test = tree_of("(S (NP (DT the) (NN cat) (VBD sat)) (ADVP (RB down)) (. .))")
    counts = compare(gold, test)
    # Gold: S, NP, VP, PRT; found: S, and ADVP for PRT; NP(0, 3) crosses VP(2, 4).
    assert (counts.gold, counts.test, counts.matched, counts.crossing) == (4, 3, 2, 1)
    assert (counts.words, counts.right_tags, counts.length) == (4, 3, 5)


@pytest.mark.parametrize(
    "test, said",
    [
        ("(S (NN a) (NN b) (NN c))", "2 words in the gold tree, 3 in the parse"),
        ("(S (NN a) (, b))", "2 words in the gold tree, 1 in the parse"),
        ("(S (NN a) (NN c))", "the word 'b' in the gold tree is 'c' in the parse"),
    ],
)
def test_a_sentence_that_cannot_be_compared_is_told_and_left_out(test: str, said: str) -> None:
    gold = tree_of("(S (NN a) (NN b))")
    everything, _ = evaluate([gold, gold], [tree_of(test), gold])
    assert everything.errors[1].startswith(said) and everything.valid == 1 and everything.f1 == 100.0


def test_an_empty_parse_is_skipped() -> None:
    gold = tree_of("(S (NN a))")
    everything, _ = evaluate([gold, gold], [None, [gold]])
    assert (everything.skipped, everything.valid, everything.gold) == (1, 1, 1)


def test_files_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 1 gold trees and 0 parses"):
        evaluate([None], [])
