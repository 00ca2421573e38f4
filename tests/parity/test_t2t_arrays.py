"""Every array of every file recorded from the authors' code, matched by the registered classes."""

import json
from typing import Any

import pytest

from t2017_plugin.scoring.bleu import split_compounds
from tests.parity import t2t_ours, t2t_pieces, t2t_search
from tests.parity.t2t_golden import FILES, FOLDER, KINDS, PIECES, assert_matches, cases, kind_of, load

pytestmark = pytest.mark.parity

RECORDED = (
    "base_bias", "base_nobias", "base_nobias_paperpos", "beam_trained", "beam_weak", "dk_dv_both_ne", "dk_ne_dv",
    "dropout_probe_all", "dropout_probe_paper", "hdk_ne_dmodel", "nols", "pieces", "untied",
)  # fmt: skip
TEXTS = json.loads((FOLDER / "texts.json").read_text())


def ours_for(file: str, key: str) -> Any:
    """Our array of this name."""
    if file == PIECES:
        return t2t_pieces.reproduce()[key]
    return (t2t_search if key.startswith(("beam", "greedy")) else t2t_ours).reproduce(file)[key]


@pytest.mark.parametrize(("file", "kind"), cases(), ids=lambda value: value.replace(" ", "_"))
def test_arrays(file: str, kind: str) -> None:
    """All arrays of one kind in one file, each of which must exist in ours, in T2T's shape and within the tolerance."""
    keys = [key for key in load(file) if kind_of(key).name == kind]
    assert keys
    for key in keys:
        assert_matches(file, key, ours_for(file, key))


def test_no_file_and_no_array_is_passed_over() -> None:
    """The cases above are all kinds of all files; all files are here; and no array is without a kind."""
    assert FILES == RECORDED
    covered = [(file, key) for file, kind in cases() for key in load(file) if kind_of(key).name == kind]
    recorded = [(file, key) for file in FILES for key in load(file)]
    assert sorted(covered) == sorted(recorded)
    assert len(recorded) > 1500
    assert {kind_of(key).name for _, key in recorded} == {kind.name for kind in KINDS}


@pytest.mark.parametrize("case", TEXTS["compound_split"], ids=lambda case: case["in"])
def test_compounds_are_split_as_by_the_authors_script(case: dict[str, str]) -> None:
    assert split_compounds(case["in"]) == case["out"]
