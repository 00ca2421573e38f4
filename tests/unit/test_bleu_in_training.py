"""BLEU while a model trains (``--eval-bleu``), where an early model translates into nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
from fairseq.logging import metrics
from fairseq.tasks.translation import EVAL_BLEU_ORDER

from t2017_plugin.fairseq_side.tasks import T2017TranslationTask

pytestmark = pytest.mark.unit
REFERENCES = ["a b c d e f", "g h i j k l m"]


class Silent:
    """A criterion that logs nothing."""

    @staticmethod
    def reduce_metrics(outputs: list[dict[str, Any]]) -> None:
        """Log nothing."""


def logged(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """What a validation step logs of one batch."""
    bleu = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none")
    return {
        "ntokens": 5,
        "nsentences": len(hypotheses),
        "_bleu_sys_len": bleu.sys_len,
        "_bleu_ref_len": bleu.ref_len,
        **{f"_bleu_counts_{n}": bleu.counts[n] for n in range(EVAL_BLEU_ORDER)},
        **{f"_bleu_totals_{n}": bleu.totals[n] for n in range(EVAL_BLEU_ORDER)},
    }


def bleu_over(batches: list[tuple[list[str], list[str]]]) -> float:
    task = T2017TranslationTask.__new__(T2017TranslationTask)
    task.cfg = SimpleNamespace(eval_bleu=True)
    with metrics.aggregate(new_root=True) as found:
        for batch in batches:
            task.reduce_metrics([logged(*batch)], Silent())
    return float(found.get_smoothed_values()["bleu"])


def test_nothing_but_empty_lines_is_bleu_0() -> None:
    assert bleu_over([(["", ""], REFERENCES), ([""], REFERENCES[:1])]) == 0.0


@pytest.mark.parametrize("order", [1, -1])
def test_an_empty_batch_counts_in_the_bleu_of_all(order: int) -> None:
    """Whichever batch comes first: BLEU of all lines, to fairseq's two decimals."""
    batches = [(["", ""], REFERENCES), (["a b c d e g"], REFERENCES[:1])][::order]
    hypotheses, references = ([line for batch in batches for line in batch[side]] for side in (0, 1))
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none").score
    assert expected > 0
    assert bleu_over(batches) == pytest.approx(expected, abs=0.005)
