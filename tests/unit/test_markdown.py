"""Tables in Markdown."""

import pytest

from t2017_plugin.markdown import table

pytestmark = pytest.mark.unit


def test_a_table_with_the_bars_of_its_cells_escaped():
    assert (
        table(["", "a", "b"], [["x|y", 1, "two\nlines"]]) == "| | a | b |\n|---|---:|---:|\n| x\\|y | 1 | two lines |"
    )
    assert table(["a", "b"], [], align="cl") == "| a | b |\n|:---:|---|"


@pytest.mark.parametrize(("rows", "align", "message"), [([[1]], None, "1 cells, .* 2"), ([], "l", "for 1 columns")])
def test_rows_of_another_width_are_refused(rows, align, message):
    with pytest.raises(ValueError, match=message):
        table(["a", "b"], rows, align)
