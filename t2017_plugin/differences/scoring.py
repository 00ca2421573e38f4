"""Differences of averaging and scoring (section 6.1)."""

from collections.abc import Iterator

from t2017_plugin.differences.difference import Difference
from t2017_plugin.scoring.bleu import multi_bleu, paper_score, sacrebleu_score

# Two sentences with what moves the scores apart: a compound with a hyphen, quotes, a number with a comma.
REFERENCES = (
    'Die US-Regierung sagte am Montag, der Preis stieg um 3,5 Prozent auf einen neuen "Höchststand".',
    "Ein 30-jähriger Mann wurde in Süd-London von der Polizei gesucht.",
)
HYPOTHESES = (
    'Die US-Behörden sagten am Montag, der Preis stieg um 3,5 Prozent auf einen "Höchststand".',
    "Ein 30-jähriger Mann wurde in Ost-London von der Polizei gesucht.",
)


def differences() -> Iterator[Difference]:
    """All rows of averaging and scoring."""
    yield averaging()
    yield bleu()


def averaging() -> Difference:
    """Nothing to measure in a second: the arithmetic is tested against float64."""
    return Difference(
        "averaging",
        "6.1",
        "last 5 checkpoints (base), last 20 (big), written every 10 minutes",
        "`utils/avg_checkpoints.py`: plain mean of an explicit list",
        "`scripts/average_checkpoints.py`: last n by epoch or update",
        "plain mean of the last n by update; tied weights once",
        "`t2017 average --last`",
        "unit/test_averaging.py",
        "means of float32 weights are taken in float64 and rounded once",
    )


def bleu() -> Difference:
    """Scores the same two sentences in three ways."""
    paper = paper_score(HYPOTHESES, REFERENCES, "de").score
    sacre = sacrebleu_score(HYPOTHESES, REFERENCES, "de").score
    words = multi_bleu(HYPOTHESES, REFERENCES).score
    return Difference(
        "BLEU",
        "6.1",
        "not stated",
        "Moses tokens, German compounds split, cased multi-bleu (`get_ende_bleu.sh`)",
        "BLEU-4 on BPE-free tokens, no split; sacreBLEU with `--scoring sacrebleu`",
        "sacreBLEU on detokenised text and the paper's, each under its name",
        "`t2017 score`",
        "unit/test_scoring.py, commands/test_t2017.py",
        f"the same two sentences: the paper's {paper:.2f}, sacreBLEU {sacre:.2f}, split at spaces only {words:.2f}",
        {"paper": paper, "sacrebleu": sacre, "spaces": words},
    )
