"""Run folders and training logs as the recipes' reports read them."""

import json
import subprocess
import sys

import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.logs import read_log
from t2017_plugin.experiments.runs import Run
from tests.recorded_runs import interval, make_run

pytestmark = pytest.mark.unit


def test_the_facts_of_an_interrupted_training_count_each_update_once(tmp_path):
    lines = [
        "... | num. shared model params: 1,234 (num. trained: 1,234)",
        interval(100, 5.0, 900.0),
        interval(200, 4.0, 900.0),
        interval(300, 9.0, 1.0),  # lost: training was resumed from update 200
        interval(300, 3.0, 900.0),
        '2026 | INFO | train_inner | {"epoch": 3, "num_updates": "350", "nll_loss": "2.5", "wpb": "90", "wps": "45", '
        '"train_wall": "7"}',
        '2026 | INFO | train_inner | {"epoch": 3, "num_upd',
        "... | fairseq_cli.train | Stopping training due to num_updates: 370 >= max_update: 370",
    ]
    (tmp_path / "train.log").write_text("\n".join(lines))
    log = read_log(tmp_path / "train.log")
    tokens = 300 * 900 + 50 * 90
    assert log.summary() == {
        "updates": 370,
        "parameters": 1234,
        "target_tokens_an_update": pytest.approx(tokens / 350),
        "target_tokens_a_second": pytest.approx(tokens / 28),
        "training_seconds": 28,  # four intervals of 7 seconds
        "nll_bits_a_token": 2.5,
    }
    # By the logged speeds: 100 updates of 900 tokens at 900 a second, three times, and 50 of 90 at 45.
    assert log.seconds == pytest.approx(3 * 100 + 100) and log.tokens_per_second == pytest.approx(tokens / 400)


def test_what_is_not_there_is_empty(tmp_path):
    run = Run(tmp_path)
    assert (run.scores, run.machine, run.memory, run.differing_lines, run.average) == ({}, {}, None, None, None)
    assert (run.stamp("train"), run.seconds(["train"]), run.steps, run.checkpoints) == (None, {}, [], [])
    with pytest.raises(UsageError, match="no such training log"):
        _ = run.log
    with pytest.raises(UsageError, match="steps/train.json is not there"):
        _ = run.settings


def test_what_is_there_is_read(tmp_path):
    folder = make_run(tmp_path, "arms/t2017/seed2", seed=2)
    (folder / "steps" / "average.json").write_text('{"seconds": 7}')
    (folder / "decode" / "agreement.json").write_text(json.dumps({"differing_lines": [3, 5]}))
    (folder / "avg.pt").touch()
    run = Run(folder)
    assert (run.name, run.seed, run.language, run.memory) == ("t2017", 2, "de", 512 * 2**20)
    assert run.seconds(["train", "average", "generate"]) == {"average": 7}
    assert run.steps == ["average", "generate", "score", "train"]
    assert run.differing_lines == 2
    assert run.average == folder / "avg.pt"
    (folder / "average.pt").touch()
    assert run.average == folder / "average.pt"
    assert run.reference == tmp_path / "corpus" / "test.de"
    assert run.log.updates == 200 and run.settings["model.d_model"] == 128 and "common.seed" not in run.settings


def test_reading_a_run_needs_no_torch():
    """The recipes' reports start at once."""
    code = "import sys; from t2017_plugin.experiments import runs; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
