"""Lines end at a line feed and nowhere else; outputs are whole or not there."""

import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines, whole_or_nothing, without_line_ends

# Everything that str.splitlines takes for a line end beside \n, \r and \r\n.
NOT_LINE_ENDS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def test_only_a_line_feed_ends_a_line(tmp_path):
    lines = [f"a{character}b" for character in NOT_LINE_ENDS] + ["", "  ", "last"]
    path = tmp_path / "text"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    assert read_lines(path) == lines
    assert len("\n".join(lines).splitlines()) > len(lines)  # what would have gone wrong


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
    ],
)
def test_line_ends_and_byte_order_mark(tmp_path, content, expected):
    path = tmp_path / "text"
    path.write_bytes(content)
    assert read_lines(path) == expected


def test_what_is_not_utf8_is_named_by_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(UsageError, match=r"text, line 2, byte 5.*UTF-8"):
        read_lines(path)


def test_missing_file_and_folder_give_one_line(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(UsageError, match=str(path)):
            read_lines(path)


def test_text_stays_one_line():
    text = "a" + "\n\r" + NOT_LINE_ENDS + "b\u00a0c"
    assert without_line_ends(text) == "a b\u00a0c"


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_or_nothing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    with whole_or_nothing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="make it first"), whole_or_nothing(tmp_path / "none" / "out"):
        pass
