"""t2017 translate: raw text in, raw text out, the same number of lines in the same order, whatever they hold."""

import io
import math
import shutil
import sys
from types import SimpleNamespace

import pytest
import torch

from t2017_plugin import Translator
from t2017_plugin.commands import main as cli
from t2017_plugin.errors import UsageError
from t2017_plugin.text.pipeline import TextSettings
from tests.commands.fairseq_runs import generation, run_here, sentences

SOURCES = [pair[0] for pair in sentences("test")]
ODD = [
    *("", "   ", "\t", "\u2028", "\x85", "\x0c", "\x00", "one\u2028two", "one\x00two.", "\u200b", "\ufeff", "\u0301"),
    *("one two.\r", "@@", "one@@ two", "<unk>", "</s>", "<pad> <s>", "&amp;", '&apos; "', "|", "{0} %s \\n", "......"),
    *("日本語の文。", "👩\u200d👩\u200d👧", "x" * 1500, "!" * 200, "one " * 700),
]


@pytest.fixture(scope="module")
def data_bin(corpus):
    """The binarised digits with their text settings."""
    shutil.copy(corpus.codes, corpus.data_bin / "codes")
    TextSettings("en", "de", bpe_codes="codes").save(corpus.data_bin)
    return corpus.data_bin


@pytest.fixture(scope="module")
def translator(trained, data_bin):
    return Translator.load(trained, data_bin)


@pytest.fixture
def call(trained, data_bin, monkeypatch, capsysbinary):
    """Runs ``t2017 translate`` on bytes and returns the status and what it wrote."""

    def translate(source, *options, checkpoint=trained, data=data_bin):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(source)))
        arguments = ["translate", "--checkpoint", checkpoint, "--data-bin", data, *options]
        status = cli.main([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        return status, captured.out.decode("utf-8"), captured.err.decode("utf-8")

    return translate


def as_bytes(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def generated(corpus, trained, data_bin):
    """What fairseq-generate makes of the binarised test set, joined and detokenised by fairseq's own means."""
    # fairseq's own Moses tokenizer wants the languages on the command line.
    text = ("-s", "en", "-t", "de", "--tokenizer", "moses", "--bpe", "subword_nmt", "--bpe-codes", data_bin / "codes")
    outcome = run_here("generate", *generation(data_bin, trained, *text))
    assert outcome.status == 0, outcome.error
    return outcome


def test_same_lines_as_fairseq_generate_in_the_order_of_the_input(call, generated):
    """fairseq-generate prints by length, with four kinds of lines in between; here it is a line for a line."""
    status, output, _ = call(as_bytes(SOURCES))
    assert status == 0
    lines = output.split("\n")
    assert lines.pop() == ""
    hypotheses = generated.texts("D")
    assert lines == [hypotheses[number] for number in range(len(SOURCES))]
    assert not any("@@" in line or " ." in line for line in lines)


def test_scores_are_fairseq_generates_in_nats(call, generated):
    status, output, _ = call(as_bytes(SOURCES), "--scores")
    assert status == 0
    in_bits = generated.scores()
    for number, line in enumerate(output.splitlines()):
        # Printed with four digits after the point; another batch moves float32 sums by less.
        assert float(line.split("\t")[0]) == pytest.approx(in_bits[number] * math.log(2), abs=2e-4)


def test_every_line_gives_a_line_whatever_it_holds(call):
    lines = [line for pair in zip(ODD, SOURCES * 2, strict=False) for line in pair]
    status, output, _ = call(as_bytes(lines).removesuffix(b"\n"))
    assert status == 0
    translated = output.split("\n")
    assert translated.pop() == ""
    assert len(translated) == len(lines)
    for line, translation in zip(lines, translated, strict=True):
        assert "@@" not in translation
        assert not set(translation) & set("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\x00")
        if not line.replace("\x00", "").strip():
            assert translation == ""


def test_nothing_depends_on_the_batch(trained, data_bin, translator):
    lines = SOURCES[:9] + ODD[:14]
    together = translator.hypotheses(lines, nbest=2)
    alone = [translator.hypotheses([line], nbest=2)[0] for line in lines]
    other_order = translator.hypotheses(lines[::-1], nbest=2)[::-1]
    small = Translator.load(trained, data_bin, max_tokens=1).hypotheses(lines, nbest=2)
    for results in (alone, other_order, small):
        for one, other in zip(together, results, strict=True):
            assert [h.text for h in one] == [h.text for h in other]
            # float32 sums differ with the shape of the batch.
            assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)


def test_no_lines_and_empty_lines(call, translator):
    assert call(b"") == (0, "", "")
    assert call(b"\n")[:2] == (0, "\n")
    assert translator.translate([]) == []
    assert translator.translate(["", " "]) == ["", ""]


def test_nbest_is_numbered_and_ordered(call):
    status, output, _ = call(as_bytes([SOURCES[0], "", SOURCES[1]]), "--nbest", "3", "--scores")
    assert status == 0
    rows = [line.split("\t") for line in output.splitlines()]
    numbers = [int(row[0]) for row in rows]
    assert sorted(set(numbers)) == [1, 2, 3] and numbers == sorted(numbers)
    assert rows[numbers.index(2)] == ["2", "0.0000", ""] and numbers.count(2) == 1
    for line in (1, 3):
        scores = [float(row[1]) for row in rows if int(row[0]) == line]
        assert 1 < len(scores) <= 3 and scores == sorted(scores, reverse=True)
    best = call(as_bytes([SOURCES[0], "", SOURCES[1]]))[1].splitlines()
    assert [rows[numbers.index(line)][2] for line in (1, 2, 3)] == best


def test_tokenized_output_is_not_joined(call):
    tokens, text = call(as_bytes(SOURCES), "--tokenized")[1], call(as_bytes(SOURCES))[1]
    assert tokens != text and "@@" not in tokens
    assert tokens.replace(" .", ".") == text


def test_very_long_lines_are_cut_and_told(call):
    status, output, errors = call(as_bytes([SOURCES[0], "one two three. " * 300]))
    assert status == 0
    assert "lines with more than 511 tokens (BPE units) were translated in pieces: 1" in errors
    assert output.count("\n") == 2


def test_very_long_lines_can_be_cut_off(call, translator):
    sentence = "one two three . "  # Moses leaves a period before a small letter at its word
    status, output, errors = call(as_bytes([sentence * 300]), "--long-lines", "cut")
    assert status == 0
    assert "lines with more than 511 tokens (BPE units) were cut off there: 1" in errors
    # The last sentence end within 511 units is where it is cut.
    units = len(translator.pipeline.encode(sentence).split())
    assert call(as_bytes([sentence * (511 // units)]))[1] == output


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_on_a_cpu(call, translator, precision):
    """Every line is there; most are those of float32: the model is sure of its words, and few choices are close."""
    status, output, errors = call(as_bytes(SOURCES), "--precision", precision, "--cpu")
    assert status == 0 and "warning" not in errors
    lines, expected = output.splitlines(), translator.translate(SOURCES)
    assert len(lines) == len(SOURCES)
    assert sum(a == b for a, b in zip(lines, expected, strict=True)) >= 0.8 * len(SOURCES)
    scores = call(as_bytes(SOURCES[:4]), "--precision", precision, "--scores")[1].splitlines()
    assert all(math.isfinite(float(line.split("\t")[0])) for line in scores)


def test_a_checkpoint_of_a_run_in_fp16(call, trained, tmp_path):
    """Such a run saves float16 weights; they are decoded in float32."""
    state = torch.load(trained)
    state["model"] = {name: value.half() for name, value in state["model"].items()}
    rounded = tmp_path / "rounded.pt"
    torch.save(state, rounded)
    state["model"] = {name: value.float() for name, value in state["model"].items()}
    same = tmp_path / "same.pt"
    torch.save(state, same)
    assert call(as_bytes(SOURCES), checkpoint=rounded)[:2] == call(as_bytes(SOURCES), checkpoint=same)[:2]


def test_several_checkpoints_are_an_ensemble(trained, data_bin, translator):
    """The mean of equal probabilities changes nothing; that of two models is not the first's."""
    twice = Translator.load([trained, trained], data_bin)
    for one, other in zip(twice.hypotheses(SOURCES[:8]), translator.hypotheses(SOURCES[:8]), strict=True):
        assert one[0].text == other[0].text
        assert one[0].score == pytest.approx(other[0].score, abs=1e-4)
    earlier = min(trained.parent.glob("checkpoint_*_*.pt"), key=lambda path: int(path.stem.split("_")[-1]))
    both = Translator.load([trained, earlier], data_bin).hypotheses(SOURCES[:8])
    alone = translator.hypotheses(SOURCES[:8])
    assert all(a[0].score != pytest.approx(b[0].score, abs=1e-4) for a, b in zip(both, alone, strict=True))


@pytest.mark.parametrize("option", [("--nbest", "9"), ("--alpha", "nan"), ("--alpha", "-1"), ("--beam", "0")], ids=str)
def test_wrong_calls(call, option):
    status, output, errors = call(b"one\n", *option)
    assert (status, output) == (2, "") and "usage: t2017 translate" in errors


def test_text_that_the_model_does_not_know_is_noticed(call):
    status, _, errors = call(as_bytes(["zero one Žluťoučký kůň."]))
    assert status == 0
    assert "source tokens (BPE units) are not in the dictionary" in errors
    assert "warning" not in call(as_bytes(SOURCES))[2]


def test_bytes_that_are_not_utf8_are_told(call):
    status, output, errors = call(b"one two.\none \xff two.\n")
    assert status == 0 and output.count("\n") == 2
    assert "lines that are not UTF-8: 1, the first is line 2" in errors


def test_special_symbols_in_text_are_text(translator):
    """Where text is not tokenised, a word that reads like a special symbol must not become one."""
    dictionary = translator.dictionary
    for symbol in ("<s>", "<pad>", "</s>", "<unk>"):
        assert translator._index(symbol) == dictionary.unk()
    assert translator._index(dictionary[10]) == 10


def test_refusals_are_one_line(call, corpus, data_bin, trained, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(data_bin, other)
    for language in ("en", "de"):
        with open(other / f"dict.{language}.txt", "a", encoding="utf-8") as file:
            file.write("more 1\n")
    bare = tmp_path / "bare"
    shutil.copytree(data_bin, bare)
    (bare / "text_settings.json").unlink()
    no_dictionary = tmp_path / "none"
    shutil.copytree(data_bin, no_dictionary)
    (no_dictionary / "dict.de.txt").unlink()
    (tmp_path / "cut.pt").write_bytes(trained.read_bytes()[:5000])
    for options, message in (
        ({"data": other}, "does not fit the dictionaries"),
        ({"data": bare}, "text_settings.json is missing"),
        ({"data": no_dictionary}, "dict.de.txt is missing"),
        ({"data": tmp_path / "nothing"}, "is not a folder"),
        ({"checkpoint": tmp_path / "cut.pt"}, "cut off"),
        ({"checkpoint": tmp_path / "none.pt"}, "no such checkpoint"),
    ):
        status, output, errors = call(b"one\n", **options)
        assert (status, output) == (1, "")
        assert message in errors and errors.count("\n") == 1, errors
    status, output, errors = call(b"one\n", "--nbest", "5", "--beam", "4")
    assert (status, output) == (2, "") and "--nbest 5 is more than --beam 4" in errors
    assert call(b"one\n", "--beam", "0")[0] == 2


def test_a_string_is_not_a_list_of_lines(translator):
    with pytest.raises(UsageError, match="not one string"):
        translator.translate("one two.")
