"""The bands of published scores: each figure that makes one lies in it, and a score is placed beside it."""

import pytest

from recipes.wmt14_common.published import place, published, verdicts

pytestmark = pytest.mark.unit
FIGURES = published()["figures"]
BANDS = published()["bands"]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure['source']} {figure['figure']}")
def test_figures_lie_where_they_are_said_to(figure: dict) -> None:
    band = BANDS[figure["model"]].get(figure["kind"])
    if figure["kind"] == "tokens":  # in no band
        assert band is None and "why" not in figure
    elif figure.get("band", True):
        assert place(figure["figure"], band) == "inside" and "why" not in figure
    else:
        assert place(figure["figure"], band) != "inside" and figure["why"]


def test_the_paper_s_own_figures_are_among_them() -> None:
    own = {(figure["model"], figure["figure"]) for figure in FIGURES if figure["source"] == "the paper, Table 2"}
    assert own == {("base", 27.3), ("big", 28.4)}


def arm(model: str, paper: float, sacre: float, language: str = "de") -> dict:
    return {"arm": model, "target_lang": language, "paper_bleu": {"score": paper}, "sacrebleu": {"score": sacre}}


def test_a_score_is_inside_below_or_above() -> None:
    assert verdicts(arm("base", 27.36, 25.9)) == [
        "the paper's BLEU 27.36 is inside the published band 27.1 to 27.7",
        "sacreBLEU 25.90 is below the published band 26.4 to 27.2",
    ]
    assert verdicts(arm("big", 29.3, 27.54))[0].endswith("29.30 is above the published band 28.4 to 29.1")
    # As a figure with one digit is read: 27.14 is 27.1.
    assert place(27.06, (27.1, 27.7)) == "inside" and place(27.04, (27.1, 27.7)) == "below"
    assert verdicts(arm("base", 40.0, 40.0, language="fr")) == verdicts(arm("t2017_plugin", 27.3, 26.5)) == []
