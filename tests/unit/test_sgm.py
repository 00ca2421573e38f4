"""WMT's SGM test sets: read as sacreBLEU reads them, refused where a number would be wrong; quotes and apostrophes."""

from pathlib import Path

import pytest
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from t2017_plugin.commands.main import main
from t2017_plugin.errors import UsageError
from t2017_plugin.scoring.bleu import authors_score, paper_score, paper_tokens, sacrebleu_score
from t2017_plugin.scoring.texts import read_sgm, read_text
from t2017_plugin.text.pipeline import moses_detokenize, moses_tokenize
from tests.unit.test_scoring import bleu_by_hand

pytestmark = pytest.mark.unit

LINES = ["AT&T  und S&amp;P", " Leerraum\t am Rand ", "", "Ein „Zitat“ – so", "< 5 und > 3", "c\u2028d"]


def sgm_file(path: Path, lines: list[str]) -> Path:
    segments = [f'<seg id="{number}">{line}</seg>' for number, line in enumerate(lines, start=1)]
    head = [
        '<refset setid="newstest2014" srclang="any" trglang="de">',
        '<doc sysid="ref" docid="a" genre="news">',
        "<p>",
    ]
    path.write_text("\n".join([*head, *segments, "</p>", "</doc>", "</refset>"]) + "\n", encoding="utf-8")
    return path


def test_segments_are_what_sacrebleu_takes_out(tmp_path):
    path, theirs = sgm_file(tmp_path / "ref.de.sgm", LINES), tmp_path / "theirs"
    FakeSGMLDataset("made up", langpairs={})._convert_format(str(path), str(theirs))
    assert read_text(path) == theirs.read_text(encoding="utf-8").split("\n")[:-1]
    assert read_text(path)[0] == "AT&T und S&amp;P" and len(read_text(path)) == len(LINES)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["text"], "has no <seg>"),
        (['<seg id="1">a', '<seg id="2">b</seg>'], "x.sgm, line 1: a <seg> without its </seg>"),
        (['<seg id="1">a</seg>', '<seg id="2">b'], "x.sgm, line 2: a <seg> without"),
        (['<doc sysid="A">', '<seg id="1">a</seg>', '<doc sysid="B">', '<seg id="1">b</seg>'], "translations by A, B"),
    ],
)
def test_what_is_no_whole_single_reference_is_refused(lines, message):
    with pytest.raises(UsageError, match=message):
        read_sgm(lines, "x.sgm")


def score(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What ``t2017 score`` prints; where it fails, its one line on stderr."""
    status = main(["score", "--target-lang", "de", *map(str, arguments)])
    printed = capsys.readouterr()
    assert (status, printed.out, printed.err.count("\n")) == (1, "", 1) if status else printed.err == ""
    return printed.err or printed.out


def test_the_command_scores_against_sgm_and_counts_lines(tmp_path, capsys):
    reference = sgm_file(tmp_path / "newstest2014-deen-ref.de.sgm", ["Ein Haus am See ist das."] * 3)
    hypothesis = tmp_path / "out.de"
    hypothesis.write_text("Ein Haus am See ist das.\n" * 3)
    call = ("--hyp", hypothesis, "--ref", reference)
    assert "sacreBLEU     100.00" in score(capsys, *call, "--expect-lines", 3)
    assert "has 3 lines and 4 are expected" in score(capsys, *call, "--expect-lines", 4)
    hypothesis.write_text("Ein Haus\n" * 2)
    assert f"has 2 lines and {reference} has 3" in score(capsys, *call)
    hypothesis.write_text("Ein H@@ aus\n" * 3)
    assert "'@@' marks BPE units" in score(capsys, *call)


def test_the_filtered_newstest2014_is_refused_by_its_name(tmp_path, capsys):
    reference = sgm_file(tmp_path / "ref.sgm", ["Satz."] * 2737)
    refused = score(capsys, "--hyp", reference, "--ref", reference, "--expect-lines", 3003)
    assert "2,737 lines and 3,003 are expected" in refused and "filtered for the campaign" in refused


FRENCH = [
    ("Il a dit \"oui\" à l'homme d'État.", "Il a dit « oui » à l’homme d’État."),
    ("C'est-à-dire qu'il n'y a rien à faire.", "C’est-à-dire qu’il n’y a plus rien à faire."),
    ("Aujourd'hui, 50 % des gens le savent.", "Aujourd’hui, 50 % des gens le savent."),
]


def test_quotes_count_by_protocol():
    """Raw against raw, or the punctuation of both sides made plain: two numbers, each by the formula."""
    hypotheses, references = (list(side) for side in zip(*FRENCH, strict=True))
    by_protocol = {}
    for normalise in (False, True):
        tokens = [[paper_tokens(line, "fr", normalise) for line in side] for side in (hypotheses, references)]
        by_protocol[normalise] = paper_score(hypotheses, references, "fr", normalise)
        # Both are the same sums over the same counts.
        assert by_protocol[normalise].score == pytest.approx(bleu_by_hand(*tokens), abs=1e-9)
        assert ("punctuation:normalised" in by_protocol[normalise].signature) == normalise
    assert by_protocol[True].score > by_protocol[False].score + 30
    assert paper_tokens(FRENCH[0][1], "fr", True) == paper_tokens(FRENCH[0][0], "fr")
    # sacreBLEU never changes the reference.
    assert sacrebleu_score(hypotheses, references).score == sacrebleu_score(hypotheses, references, "fr").score


GERMAN = [
    ('Er sagte: "Ja, das ist ein Test-Satz."', "Er sagte: „Ja, das ist ein Test-Satz.“"),
    ("Das „Haus“ am See – schön.", "Das „Haus“ am See - schön."),
    ("“Nein”, rief sie…", "»Nein«, rief sie laut..."),
]


def test_the_reference_of_the_authors(tmp_path, capsys):
    """By get_ende_bleu.sh: the reference with plain quotation marks, the translation's punctuation made plain."""
    hypotheses, references = (list(side) for side in zip(*GERMAN, strict=True))
    # Written out: what replace-unicode-punctuation.perl changes of these lines; „ and – stay as they are.
    changed = [hypotheses[0], 'Das „Haus" am See – schön.', '"Nein", rief sie...']
    plain = [line.replace("„", '"').replace("“", '"').replace("»", '"').replace("«", '"') for line in references]
    tokens = [[paper_tokens(line, "de") for line in side] for side in (changed, plain)]
    score = authors_score(hypotheses, references, "de")
    assert score.score == pytest.approx(bleu_by_hand(*tokens), abs=1e-9)
    assert score.signature.endswith("|reference:authors")
    assert score.score > paper_score(hypotheses, references, "de").score + 10
    files = [tmp_path / "out.de", tmp_path / "ref.de"]
    for file, lines in zip(files, (hypotheses, references), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines))
    call = ("--hyp", files[0], "--ref", files[1])
    assert f"authors' ref. {score}" in score_lines(capsys, *call, "--authors-reference")
    assert "authors' ref." not in score_lines(capsys, *call)


def score_lines(capsys, *options):
    assert main(["score", "--target-lang", "de", *map(str, options)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("line", ["L’eau d’été n’est pas là.", "L'eau d'été n'est pas là.", "aujourd’hui", "dell’arte"])
def test_apostrophes_are_joined_again(line):
    language = "it" if line == "dell’arte" else "fr"
    assert moses_detokenize(moses_tokenize(line, language), language) == line


def test_german_text_keeps_its_apostrophes_as_they_were():
    assert moses_detokenize("so ’ n Haus", "de") == "so ’ n Haus"
