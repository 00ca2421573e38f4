"""Lines from stdin: a file in large portions, a pipe as fast as lines come."""

import os
import threading

import pytest

from t2017_plugin import files
from t2017_plugin.files import LineInput

TEXT = "one\n\n \u2028two\x85\x0cthree\nCRLF\r\nlast without end"
LINES = ["one", "", " \u2028two\x85\x0cthree", "CRLF\r", "last without end"]


def test_a_file_comes_in_portions_with_its_total(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FILE_PORTION", 2)
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    with open(path, "rb") as stream:
        source = LineInput(stream)
        assert list(source.portions()) == [LINES[:2], LINES[2:4], LINES[4:]]
        assert source.is_file and source.total == 5


@pytest.mark.parametrize("content", [b"", b"a", b"a\n", b"a\n\n"])
def test_line_ends_of_a_file_and_a_pipe_count_alike(tmp_path, content):
    path = tmp_path / "text"
    path.write_bytes(content)
    with open(path, "rb") as stream:
        from_file = [line for portion in LineInput(stream).portions() for line in portion]
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    with open(read, "rb") as stream:
        from_pipe = [line for portion in LineInput(stream).portions() for line in portion]
    assert (
        from_file
        == from_pipe
        == content.decode().split("\n")[: content.count(b"\n") + (not content.endswith(b"\n") and content != b"")]
    )


def test_a_pipe_gives_each_line_before_the_next_is_there():
    read, write = os.pipe()
    with open(read, "rb") as stream:
        source = LineInput(stream)
        assert not source.is_file
        portions = source.portions()
        for line in ("first", "second", "dritte Zeile: ü"):
            os.write(write, f"{line}\n".encode())
            assert next(portions) == [line]
        # A character, and a line, that arrive in two parts.
        os.write(write, "half \u00fc".encode()[:-1])
        timer = threading.Timer(
            0.2, lambda: (os.write(write, "\u00fc".encode()[-1:] + b" line\nrest"), os.close(write))
        )
        timer.start()
        assert next(portions) == ["half \u00fc line"]
        assert next(portions) == ["rest"]
        assert list(portions) == []
        timer.join()


def test_a_pipe_with_much_in_it_comes_in_portions(monkeypatch):
    monkeypatch.setattr(files, "PIPE_PORTION", 100)
    read, write = os.pipe()
    lines = [str(number) for number in range(5000)]
    feeder = threading.Thread(target=lambda: (os.write(write, "\n".join(lines).encode()), os.close(write)))
    feeder.start()
    with open(read, "rb") as stream:
        portions = list(LineInput(stream).portions())
    feeder.join()
    assert [line for portion in portions for line in portion] == lines
    assert max(len(portion) for portion in portions) == 100


def test_what_is_not_utf8_is_replaced_and_counted(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\nbad \xff\xfe byte\ngood\n\xc3\n")
    with open(path, "rb") as stream:
        source = LineInput(stream)
        assert list(source.portions()) == [["good", "bad \ufffd\ufffd byte", "good", "\ufffd"]]
    assert source.undecodable == [2, 4]
