"""Vocabulary files of Tensor2Tensor in every form, and dictionary files of imported models among fairseq's."""

import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import T2TDictionary, load_dictionary
from t2017_plugin.fairseq_side.tasks import T2017ParsingTask, T2017TranslationTask
from t2017_plugin.t2t.import_model import numbered_dictionary, read_vocabulary

pytestmark = pytest.mark.unit


def write(folder: Path, *lines: str) -> Path:
    path = folder / "vocab"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))
    return path


FORMS = [
    ("<pad>", "<EOS>", "the", "ha@@", "'"),
    ("the", "ha@@", "'"),
    ("'<pad>'", "'<EOS>'", "'the'", "'ha@@'", "'''"),
    ("'<pad>_'", "'<EOS>_'", "'the'", "ha@@", '"\'"'),
    ("<pad>\r", "<EOS>\r", "the\r", "ha@@\r", "'\r"),
]


@pytest.mark.parametrize("lines", FORMS)
def test_every_form_gives_t2ts_ids(tmp_path: Path, lines: tuple[str, ...]) -> None:
    dictionary, without = read_vocabulary(write(tmp_path, *lines), 5)
    assert dictionary.symbols == ["<pad>", "<EOS>", "the", "ha@@", "'"] and without == 0
    assert (dictionary.pad(), dictionary.eos(), dictionary.index("the")) == (0, 1, 2)


def test_rows_beyond_the_file(tmp_path: Path) -> None:
    """The authors' table for English-German has 40,960, more than there are symbols."""
    dictionary, without = read_vocabulary(write(tmp_path, "a", "b"), 7)
    assert len(dictionary) == 7 and without == 3
    assert dictionary.symbols[4:] == ["<unused_4>", "<unused_5>", "<unused_6>"]


def test_symbols_that_no_text_can_hold(tmp_path: Path) -> None:
    """T2T's own subwords have spaces; an empty line and the first of two equal ones keep their id without a symbol."""
    dictionary, without = read_vocabulary(write(tmp_path, "x", ", _", "", "x", "\u00a0", "\u2028y", "<pad>"), 9)
    shown = ["<unused_2>", ",\u2423_", "<unused_4>", "x", "\u2423", "\u2423y", "<unused_8>"]
    assert dictionary.symbols[2:] == shown and without == 3
    path = str(tmp_path / "dict.en.txt")
    dictionary.save(path)
    assert load_dictionary(path).symbols == dictionary.symbols


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("a", "b", "c"), "3 symbols beside <pad> and <EOS>, and the model's table 4 rows: it is another model's"),
        (("<pad>", "a"), r"the first lines are \['<pad>', 'a'\]; they should be <pad> and <EOS>, or neither"),
        (("<EOS>", "<pad>"), "the first lines are"),
    ],
)
def test_refused(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_vocabulary(write(tmp_path, *lines), 4)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "vocab"
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(UsageError, match="line 2, byte 1 of the line: not UTF-8"):
        read_vocabulary(path, 9)


def test_symbols_that_are_their_ids() -> None:
    dictionary = numbered_dictionary(12)
    assert len(dictionary) == 12
    assert [dictionary.index(str(number)) for number in range(2, 12)] == list(range(2, 12))


def test_a_word_of_later_versions_for_unknown_ones() -> None:
    dictionary = T2TDictionary(["a", "UNK"])
    assert dictionary.encode_line("a b", add_if_not_exist=False).tolist() == [2, 3, 1]


@pytest.mark.parametrize("task", [T2017TranslationTask, T2017ParsingTask])
def test_tasks_tell_the_files_apart(tmp_path: Path, task: type[T2017TranslationTask]) -> None:
    imported, stock = str(tmp_path / "imported.txt"), str(tmp_path / "stock.txt")
    T2TDictionary(["a"]).save(imported)
    plain = Dictionary()
    plain.add_symbol("a")
    plain.save(stock)
    assert type(task.load_dictionary(imported)) is T2TDictionary and len(task.load_dictionary(imported)) == 3
    assert type(task.load_dictionary(stock)) is Dictionary and task.load_dictionary(stock) == plain


def test_a_worker_fails_with_what_a_pool_passes_on(tmp_path: Path) -> None:
    """fairseq-preprocess --workers 2 must end: a pool waits for ever for a worker that ended with a SystemExit."""
    program = """
from multiprocessing import Pool
from t2017_plugin.fairseq_side.dictionary import T2TDictionary
with Pool(1) as pool:
    try:
        pool.apply_async(T2TDictionary(["a"]).index, ("b",)).get(timeout=60)
    except ValueError as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("ValueError 'b' is not in the vocabulary"), done.stderr
