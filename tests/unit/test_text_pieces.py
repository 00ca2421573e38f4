"""Very long lines are cut at sentence ends if there are any, else between words, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from t2017_plugin.text.translator import cut_into_pieces


@given(st.lists(st.sampled_from(["a", "b@@", "."]), max_size=60), st.integers(1, 20))
def test_pieces_join_to_the_whole_and_are_short_enough(units, longest):
    pieces = cut_into_pieces(units, longest)
    assert [unit for piece in pieces for unit in piece] == units
    assert all(0 < len(piece) <= longest for piece in pieces)
    assert len(pieces) <= 2 * len(units) / longest + 1


def test_short_lines_are_whole_and_empty_ones_are_none():
    assert cut_into_pieces(["a", "b"], 2) == [["a", "b"]]
    assert cut_into_pieces([], 2) == []


def test_sentence_end_before_word_end_before_anything():
    assert cut_into_pieces("a b c . d e f g".split(), 6) == ["a b c .".split(), "d e f g".split()]
    assert cut_into_pieces("a b c d e@@ f@@ g".split(), 6) == ["a b c d".split(), "e@@ f@@ g".split()]
    assert cut_into_pieces("a@@ b@@ c@@ d@@ e".split(), 4) == ["a@@ b@@ c@@ d@@".split(), ["e"]]
    # A sentence end in the first half would waste the piece.
    assert cut_into_pieces(". b c d e f".split(), 5) == [". b c d e".split(), ["f"]]
