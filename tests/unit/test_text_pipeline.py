"""Moses tokens and BPE: against the reference programs, and back again."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from subword_nmt.learn_bpe import learn_bpe

from t2017_plugin.errors import UsageError
from t2017_plugin.text.filters import filter_lines
from t2017_plugin.text.pipeline import (
    FILE_NAME,
    LONGEST_WORD,
    SubwordUnits,
    TextPipeline,
    TextSettings,
    load_text_settings,
    moses_detokenize,
    moses_tokenize,
    remove_bpe,
)

CORPUS = """the quick brown fox jumps over the lazy dog .
der schnelle braune Fuchs springt über den faulen Hund .
state-of-the-art machines translate sentences quickly .
"""


@pytest.fixture
def data_bin(tmp_path):
    """A folder with BPE codes and the settings beside them."""
    with open(tmp_path / "codes", "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO(CORPUS), codes, num_symbols=40)
    TextSettings("en", "de", bpe_codes="codes").save(tmp_path)
    return tmp_path


def test_tokens_have_default_escapes_and_whole_hyphens():
    line = 'It\'s a "well-known" <tag> & [x] | 50% of 3,000...'
    assert moses_tokenize(line, "en") == (
        "It &apos;s a &quot; well-known &quot; &lt; tag &gt; &amp; &#91; x &#93; &#124; 50 % of 3,000 ..."
    )
    assert moses_tokenize("well-known", "en", aggressive_dash_splits=True) == "well @-@ known"


@pytest.mark.parametrize(
    "line",
    ["It's a well-known fact.", 'He said: "Yes, we can!"', "It costs 3,000.50 (or more).", "a & b < c | d [e]"],
)
def test_detokenising_undoes_tokenising(line):
    assert moses_detokenize(moses_tokenize(line, "en"), "en") == line


def test_bpe_is_subword_nmts(data_bin):
    program = Path(sys.executable).parent / "subword-nmt"
    expected = subprocess.run(
        [program, "apply-bpe", "-c", data_bin / "codes"], input=CORPUS, capture_output=True, text=True, check=True
    ).stdout
    units = SubwordUnits(data_bin / "codes")
    assert "".join(units.apply(line) + "\n" for line in CORPUS.splitlines()) == expected
    assert "@@ " in expected


def test_bpe_comes_off_again(data_bin):
    units = SubwordUnits(data_bin / "codes")
    for line in [*CORPUS.splitlines(), "x" * (3 * LONGEST_WORD + 7), "Donau" * 90 + " und mehr", "@ @ @-@"]:
        assert remove_bpe(units.apply(line)) == line
    assert remove_bpe("cut@@ off@@") == "cutoff"


def test_very_long_words_take_linear_time(data_bin):
    """subword-nmt alone needs minutes for this word."""
    units = SubwordUnits(data_bin / "codes")
    word = "".join(chr(ord("a") + i * i % 26) for i in range(100_000))
    assert remove_bpe(units.apply(word)) == word


def test_pipeline_there_and_back(data_bin):
    pipeline = TextPipeline.load(data_bin)
    line = 'Der "schnelle" Fuchs springt über 3,5 Hunde.'
    units = pipeline.encode(line, "de")
    assert "@@ " in units and "&quot;" in units.replace("@@ ", "")
    assert pipeline.words(units) == moses_tokenize(line, "de")
    assert pipeline.decode(units) == line


@pytest.mark.parametrize("line", ["", "   ", "\u3000", "\x00", "\x0c\x85\u2028"])
def test_lines_without_words_have_no_units(data_bin, line):
    assert TextPipeline.load(data_bin).encode(line) == ""


def test_text_that_is_tokens_already(tmp_path):
    TextSettings("a", "b", tokenizer="none", bpe="none").save(tmp_path)
    pipeline = TextPipeline.load(tmp_path)
    assert pipeline.encode(" 1  2 3 ") == "1 2 3" == pipeline.decode("1 2 3")


def test_punctuation_is_normalised_only_when_asked(data_bin):
    line = "„Ja“ – nein"
    assert "„" in TextPipeline.load(data_bin).tokenize(line, "en")
    TextSettings("en", "de", normalise_punctuation=True, bpe_codes="codes").save(data_bin)
    assert TextPipeline.load(data_bin).tokenize(line, "en") == "&quot; Ja &quot; - nein"


def test_other_codes_than_the_datas_are_refused(data_bin):
    with open(data_bin / "codes", "a", encoding="utf-8") as codes:
        codes.write("z z\n")
    with pytest.raises(UsageError, match="not the file that the data was made with"):
        load_text_settings(data_bin)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer": "spacy"}, "tokenizer is 'spacy'; it can be moses or none"),
        ({"bpe_codes": "other"}, "other: no such file of BPE codes"),
        ({"bpe_codes": None}, "needs bpe_codes"),
        ({"colour": "red"}, "'colour' is no setting"),
    ],
)
def test_wrong_settings_are_named(data_bin, change, message):
    path = data_bin / FILE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UsageError, match=message):
        load_text_settings(data_bin)


def test_missing_or_broken_settings(tmp_path):
    with pytest.raises(UsageError, match="text_settings.json is missing.*describe --data-bin"):
        load_text_settings(tmp_path)
    for content in ("{", "[]", '{"target_lang": "de"}'):
        (tmp_path / FILE_NAME).write_text(content)
        with pytest.raises(UsageError, match="cannot be understood"):
            load_text_settings(tmp_path)
    with pytest.raises(UsageError, match="not a folder"):
        load_text_settings(tmp_path / "none")


def test_filters_keep_the_number_of_lines():
    odd = "a\u2028b\n\n \nc\x85d\x0ce\x1cf\n\x00\nCRLF\r\nno end"
    output = io.BytesIO()
    assert filter_lines(lambda line: moses_tokenize(line, "en"), io.BytesIO(odd.encode()), output) == 7
    assert output.getvalue().decode().split("\n") == ["a b", "", "", "c d e f", "", "CRLF", "no end", ""]


def test_filter_names_the_line_that_is_not_utf8():
    with pytest.raises(UsageError, match="stdin, line 2"):
        filter_lines(str, io.BytesIO(b"a\n\xff\n"), io.BytesIO())
