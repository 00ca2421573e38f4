"""Both BLEUs against formulas and reference programs, and what is refused because its number would be wrong."""

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from t2017_plugin.commands import main as cli
from t2017_plugin.errors import UsageError
from t2017_plugin.scoring.bleu import (
    check_alignment,
    multi_bleu,
    paper_score,
    paper_tokens,
    sacrebleu_score,
    split_compounds,
)
from t2017_plugin.scoring.texts import looks_tokenised, read_generate_log, read_text

# What the authors' Perl substitution makes of each line; _ stands for ##AT##-##AT## with a space on either side.
COMPOUNDS = {
    "rich-text format": "rich_text format",
    "state-of-the-art x-y-z a-b-c-d": "state_of_the_art x_y-z a_b-c_d",
    "a - b": "a - b",
    "-5 and 3- x": "-5 and 3- x",
    "10-20 % (x)-(y)": "10_20 % (x)_(y)",
    "no hyphen": "no hyphen",
    "--": "--",
    "a--b": "a_-b",
    "Nord-Ost-See-Kanal , EU-Gipfel .": "Nord_Ost_See_Kanal , EU_Gipfel .",
}

# Twenty translations with compounds, quotes, brackets, numbers and escapes, and references that differ in places.
PAIRS = """\
Der EU-Gipfel endete gestern ohne Ergebnis.|Der EU-Gipfel ist gestern ohne Ergebnis zu Ende gegangen.
Die Nord-Ost-See-Bahn fährt heute nicht.|Die Nord-Ost-See-Bahn verkehrt heute nicht.
Er sagte: "Das ist nicht wahr."|Er sagte: "Das stimmt nicht."
Wir brauchen 3,5 Millionen Euro (mehr als 2012).|Wir brauchen 3,5 Millionen Euro (mehr als im Jahr 2012).
Das E-Mail-Programm wurde geschlossen.|Das E-Mail-Programm wurde beendet.
Die Regierung hat den Vorschlag abgelehnt.|Die Regierung lehnte den Vorschlag ab.
Peter's Auto & Marias Fahrrad stehen im Hof.|Peters Auto & Marias Fahrrad stehen im Hof.
Es regnet seit drei Tagen.|Es regnet seit drei Tagen.
Der 30-jährige Mann wurde verletzt.|Ein 30-jähriger Mann wurde verletzt.
Die Preise sind um 10-20 % gestiegen.|Die Preise stiegen um 10-20 %.
Ich habe das Buch gelesen und es gefiel mir sehr.|Ich habe das Buch gelesen, und es hat mir sehr gefallen.
Bitte schließen Sie die Tür [links].|Bitte schließen Sie die Tür [links].
Warum ist das so wichtig?|Weshalb ist das so wichtig?
Das Spiel endete 2-1 für die Gäste.|Das Spiel endete 2:1 für die Gäste.
Die Start-up-Firma sucht Software-Entwickler.|Die Start-up-Firma sucht Software-Entwickler in Berlin.
Am 1. Mai 2014 beginnt die Ausstellung.|Die Ausstellung beginnt am 1. Mai 2014.
Niemand weiß, was passiert ist...|Niemand weiß, was geschehen ist ...
Sie wohnt in Baden-Baden.|Sie lebt in Baden-Baden.
Der Zug hat eine halbe Stunde Verspätung.|Der Zug hat eine halbe Stunde Verspätung.
Danke für die schnelle Antwort!|Vielen Dank für die schnelle Antwort!"""
HYPOTHESES, REFERENCES = zip(*(line.split("|") for line in PAIRS.splitlines()), strict=True)


def bleu_by_hand(hypotheses, references):
    """multi-bleu.perl's formula, for one reference and orders 1 to 4."""
    correct, total = [0] * 4, [0] * 4
    lengths = [0, 0]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        h, r = hypothesis.split(), reference.split()
        lengths[0] += len(h)
        lengths[1] += len(r)
        for n in range(1, 5):
            grams_h, grams_r = (Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1)) for x in (h, r))
            correct[n - 1] += sum(min(count, grams_r[gram]) for gram, count in grams_h.items())
            total[n - 1] += sum(grams_h.values())
    if not all(correct):
        return 0.0
    brevity = min(1.0, math.exp(1 - lengths[1] / lengths[0]))
    return 100 * brevity * math.exp(sum(math.log(c / t) for c, t in zip(correct, total, strict=True)) / 4)


@pytest.mark.parametrize(("tokens", "expected"), COMPOUNDS.items())
def test_compounds_split_as_the_authors_script_does(tokens, expected):
    assert split_compounds(tokens) == expected.replace("_", " ##AT##-##AT## ")


def test_tokens_are_escaped_and_split_for_german_only():
    line = 'Die "E-Mail" ist da.'
    assert paper_tokens(line, "de") == "Die &quot; E ##AT##-##AT## Mail &quot; ist da ."
    assert paper_tokens(line, "fr") == "Die &quot; E-Mail &quot; ist da ."


def test_multi_bleu_is_the_formula():
    split = [[paper_tokens(line, "de") for line in lines] for lines in (HYPOTHESES, REFERENCES)]
    assert multi_bleu(*split).score == pytest.approx(bleu_by_hand(*split), abs=1e-9)
    # Shorter than the reference, longer, equal, and one without a matching 4-gram, where no smoothing means 0.
    for hypotheses, references in [
        (["a b c d e"], ["a b c d e f g"]),
        (["a b c d e f g h"], ["a b c d e f"]),
        (["a b c d"], ["a b c d"]),
        (["a b c x d e f"], ["a b c y d e f"]),
        (["", "a b c d"], ["a", "a b c d"]),
    ]:
        expected = bleu_by_hand(hypotheses, references)
        assert multi_bleu(hypotheses, references).score == pytest.approx(expected, abs=1e-9)
    assert multi_bleu(["A b c d e"], ["a b c d e"]).score < 100  # cased


def test_both_numbers_equal_the_reference_programs(tmp_path):
    """The paper's BLEU is what fairseq-score gives on split tokens, sacreBLEU what its command gives on raw text."""
    files = {"hyp": HYPOTHESES, "ref": REFERENCES}
    for name, lines in files.items():
        (tmp_path / f"{name}.raw").write_text("\n".join(lines) + "\n", encoding="utf-8")
        tokens = [paper_tokens(line, "de") for line in lines]
        (tmp_path / f"{name}.tok").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    bin_folder = Path(sys.executable).parent
    fairseq = subprocess.run(
        [bin_folder / "fairseq-score", "--sys", tmp_path / "hyp.tok", "--ref", tmp_path / "ref.tok"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    by_fairseq = float(fairseq.split("BLEU4 = ")[1].split(",")[0])
    sacrebleu = subprocess.run(
        [bin_folder / "sacrebleu", tmp_path / "ref.raw", "-i", tmp_path / "hyp.raw", "-w", "4"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    by_sacrebleu = json.loads(sacrebleu)
    paper, sacre = paper_score(HYPOTHESES, REFERENCES, "de"), sacrebleu_score(HYPOTHESES, REFERENCES)
    assert paper.score == pytest.approx(by_fairseq, abs=0.01)
    assert sacre.score == pytest.approx(by_sacrebleu["score"], abs=0.01)
    assert sacre.signature == by_sacrebleu["signature"]
    # They are two numbers: the pair was chosen so that compounds matter.
    assert abs(paper.score - sacre.score) > 1


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("gut\nein Wohn@@ zimmer\n", "line 2: '@@' marks BPE units"),
        ("ein Wohn@@\n", "line 1: '@@' marks BPE units"),
        ("\u2581ein \u2581Wohn zimmer\n", "line 1: U\\+2581 marks SentencePiece"),
        ("S-0\tHello\nT-0\tHallo\nH-0\t-0.1\tHallo\nD-0\t-0.1\tHallo\nP-0\t-0.1\n", "--from-generate"),
        ('<refset setid="newstest2014" srclang="any">\n', "SGML"),
        ('<?xml version="1.0"?>\n', "SGML"),
    ],
)
def test_what_would_give_a_wrong_number_is_refused(tmp_path, content, message):
    path = write(tmp_path, "text.de", content)
    with pytest.raises(UsageError, match=message) as failure:
        read_text(path)
    assert str(path) in str(failure.value)


def test_xml_is_refused_by_name_and_sgm_without_segments_too(tmp_path):
    with pytest.raises(UsageError, match="plain text"):
        read_text(write(tmp_path, "newstest2021.en-de.xml", "x\n"))
    with pytest.raises(UsageError, match="not an SGM test set"):
        read_text(write(tmp_path, "newstest2014-deen-ref.de.sgm", "x\n"))


@pytest.mark.parametrize(
    "text", ["mail@@home.de ist da", "@@ -1,3 +1,3 @@", "a @@ b", "H-12 Milch", "\u2581\u2582\u2583"]
)
def test_harmless_text_is_not_refused(tmp_path, text):
    assert read_text(write(tmp_path, "text.de", text + "\n")) == [text]


def test_line_counts_are_both_named():
    with pytest.raises(UsageError, match="out.de has 3 lines and ref.de has 2"):
        check_alignment(["a"] * 3, ["a"] * 2, ("out.de", "ref.de"))


def test_tokenised_text_is_noticed():
    assert looks_tokenised([paper_tokens(line, "fr") for line in HYPOTHESES])
    assert not looks_tokenised(HYPOTHESES)


def generate_log(order, extra=""):
    lines = ["2026-01-01 00:00:00 | INFO | fairseq_cli.generate | loading"]
    for i in order:
        for rank in range(2):
            lines += [
                f"H-{i}\t-{rank}.1\ttokens {i}",
                f"D-{i}\t-{rank}.1\ttext\u2028{i} rank {rank}",
                f"P-{i}\t-0.1 -0.2",
            ]
    return "\n".join(lines) + "\n" + extra


def test_generate_log_is_sorted_and_the_best_taken(tmp_path):
    path = write(
        tmp_path, "log", generate_log([2, 0, 11, 1, *range(3, 11)], "Generate test with beam=4: BLEU4 = 1.0\n")
    )
    assert read_generate_log(path, 12) == [f"text\u2028{i} rank 0" for i in range(12)]


def test_generate_log_must_be_complete(tmp_path):
    path = write(tmp_path, "log", generate_log([2, 0, 3]))
    with pytest.raises(UsageError, match=r"1 of 4 sentences \(the first is number 1.*--required-batch-size-multiple 1"):
        read_generate_log(path, 4)
    with pytest.raises(UsageError, match="for 3 sentences, the reference has 1"):
        read_generate_log(write(tmp_path, "log", generate_log([0, 1, 2])), 1)
    with pytest.raises(UsageError, match="no D lines"):
        read_generate_log(write(tmp_path, "log", "nothing\n"), 1)
    with pytest.raises(UsageError, match="line 1: a D line has three fields"):
        read_generate_log(write(tmp_path, "log", "D-0\t-0.5\n"), 1)
    with pytest.raises(UsageError, match="'@@' marks"):
        read_generate_log(write(tmp_path, "log", "D-0\t-0.5\tWohn@@ zimmer\n"), 1)


def test_a_language_that_moses_does_not_know_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in the name would change the paper's figure without a word: German compounds are split only for de."""
    for name in ("hyp", "ref"):
        (tmp_path / name).write_text("Ein E-Mail-Konto.\nNoch ein Satz.\n", encoding="utf-8")
    texts = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref")]
    for language, told in (("de", False), ("xx", True)):
        assert cli.main(["score", "--target-lang", language, *texts]) == 0
        assert ("Moses has no rules for 'xx'" in capsys.readouterr().err) == told
