"""Comparing runs: logs, seeds grouped, settings that differ, significance as the sacrebleu command has it, the page."""

import json
import math
import re
import statistics
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments import comparison_page as page
from t2017_plugin.experiments.comparison import compare_arms, differing_settings, group, spread
from t2017_plugin.experiments.comparison_page import all_tables
from t2017_plugin.experiments.logs import Point, read_losses
from t2017_plugin.experiments.runs import Run, read_run, references_of
from tests.recorded_runs import DATA, REFERENCES, interval, log, make_run, spoiled, validation

pytestmark = pytest.mark.unit


def log_of(tmp_path, lines):
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_losses(path)


def test_losses_over_updates_and_time(tmp_path):
    curves = log_of(tmp_path, log(nll=2.0, wps=9000.0))
    # 50 updates of 900 tokens at 9,000 tokens per second take 5 seconds.
    assert curves.training == [Point(50, 5, 5.0), Point(100, 10, 4.0), Point(150, 15, 3.0), Point(200, 20, 2.0)]
    assert curves.validation == [Point(100, 10, 4.5), Point(200, 20, 2.5)]
    assert curves.tokens_per_second == 9000 and curves.tokens_per_update == 900
    assert (curves.updates, curves.seconds, curves.parameters) == (200, 20, 1_449_984)
    assert curves.last_training_loss == 2.0  # the intervals after update 180
    assert curves.device_bytes is None


def test_updates_made_again_after_an_interruption_count_once(tmp_path):
    again = [interval(100, 3.9, 4500.0), validation(100, 4.4), interval(150, 2.9, 4500.0)]
    curves = log_of(tmp_path, log() + again)
    assert [(point.updates, point.bits) for point in curves.training] == [(50, 5.0), (100, 3.9), (150, 2.9)]
    assert [(point.updates, point.bits) for point in curves.validation] == [(100, 4.4)]
    assert curves.seconds == 5 + 10 + 10


def test_json_logs_tell_the_same(tmp_path):
    lines = []
    for line in log():
        head, _, body = line.partition(" | INFO | ")
        kind = body.split(" | ")[0]
        if kind in ("train_inner", "valid"):
            prefix = "valid_" if kind == "valid" else ""
            fields = {f"{prefix}{name}": value for name, value in re.findall(r"(\w+)[= ]([\d.]+)", body)}
            line = f"{head} | INFO | {kind} | {json.dumps(fields)}"
        lines.append(line)
    assert any('"valid_nll_loss": "4.5"' in line for line in lines)
    found, expected = log_of(tmp_path, lines), log_of(tmp_path, log())
    assert (found.training, found.validation) == (expected.training, expected.validation)
    assert found.summary() == expected.summary() and found.column("lr") == expected.column("lr")


def test_memory_of_a_gpu_is_its_own_less_what_was_free(tmp_path):
    card = "2026 | INFO | fairseq.utils | rank 0: capabilities = 9.0 ; total memory = 40.000 GB ; name = GPU"
    free = [interval(50, 3.0, 9000.0, "gb_free=30.5, "), interval(100, 3.0, 9000.0, "gb_free=29.5, ")]
    assert log_of(tmp_path, [card, *free]).device_bytes == round(10.5 * 2**30)


def test_a_run_of_one_interval_and_a_diverged_one_have_curves_too(tmp_path):
    stopped = "2026 | INFO | fairseq_cli.train | Stopping training due to num_updates: 60 >= max_update: 60"
    short = log_of(tmp_path, [interval(50, 3.0, 9000.0), validation(25, 4.0), stopped])
    assert (short.updates, short.last_training_loss) == (60, 3.0)
    assert short.validation == [Point(25, 2.5, 4.0)]  # half way to the first interval's end
    lines = [*log(), interval(250, math.nan, 9000.0), interval(300, math.nan, 9000.0)]
    diverged = group([read_run(make_run(tmp_path, "t2017", log=lines))])
    assert page.arm_line(diverged[0], validation=False, over_time=False).x == [50, 100, 150, 200]
    assert "<svg" in page.as_svg(page.draw(diverged))


def test_a_log_without_updates_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no updates in it"):
        log_of(tmp_path, log()[:1])


@pytest.fixture
def arms(tmp_path):
    """Three seeds of the paper's arm, two of stock's."""
    folders = [make_run(tmp_path, f"arms/t2017/seed{seed}", seed, spoiled(3 + seed)) for seed in (1, 2, 3)]
    folders += [
        make_run(tmp_path, f"arms/stock/seed{seed}", seed, spoiled(4, 2), stock=True, log=log(2.25, 4500.0))
        for seed in (1, 2)
    ]
    return group([read_run(folder) for folder in folders])


def test_seeds_of_a_setting_are_one_arm(arms):
    assert [(arm.name, list(arm.seeds)) for arm in arms] == [("t2017", [1, 2, 3]), ("stock", [1, 2])]
    scores = [run.scores["sacrebleu"]["score"] for run in arms[0].runs]
    told = spread(scores)
    assert told.mean == pytest.approx(sum(scores) / 3)
    assert told.deviation == pytest.approx(math.sqrt(sum((score - told.mean) ** 2 for score in scores) / 2))
    assert told.text() == f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f}"
    assert spread([1.0]).text() == "1.00" and spread([1.0, None]) is None


def test_runs_of_one_setting_and_seed_stay_apart_with_names_that_tell_them(tmp_path):
    runs = [read_run(make_run(tmp_path, f"{place}/t2017")) for place in ("old", "new")]
    assert [arm.name for arm in group(runs)] == ["old/t2017", "new/t2017"]


def test_a_changed_setting_is_another_arm(tmp_path):
    changed = make_run(tmp_path, "b/t2017", 2, overrides=["model.sinusoid=stock", "generation.beam=5", "last=5"])
    found = group([read_run(make_run(tmp_path, "a/t2017")), read_run(changed)])
    assert differing_settings(found) == [("generation.beam", ["4", "5"]), ("model.sinusoid", ["paper", "stock"])]


def test_settings_that_differ_from_stock_stand_under_our_names(arms):
    told = dict(differing_settings(arms))
    assert told["model.attention_bias"] == ["false", "true (built in)"]
    assert told["model.layer_norm_eps"] == ["1e-06", "1e-05 (built in)"]
    assert told["criterion.smoothing_over"] == ["all", "others (built in)"]
    assert told["task.search"] == ["paper", "stock (built in)"]
    assert told["lr_scheduler._name"] == ["t2017_noam", "inverse_sqrt"]
    assert told["optimization.lr"] == ["-", "[0.003125]"]
    # Equal on both sides, or places and seeds.
    equal = """model.d_model model.d_k model.embeddings model.dropout model.positions criterion.label_smoothing
        generation.beam dataset.max_tokens task.data common.user_dir common.seed"""
    for name in equal.split():
        assert name not in told


def test_what_cannot_be_compared_is_refused(tmp_path):
    one = read_run(make_run(tmp_path / "x", "t2017"))
    with pytest.raises(UsageError, match="named twice"):
        group([one, one])
    other = read_run(make_run(tmp_path / "y", "t2017", data={**DATA, "data-bin/train.en-de.en.bin": "c" * 64}))
    with pytest.raises(UsageError, match="different data .train.en-de.en.bin"):
        group([one, other])
    other = read_run(make_run(tmp_path / "z", "t2017", references=[*REFERENCES[:-1], "Anders ."]))
    with pytest.raises(UsageError, match="different test sets"):
        group([one, other])


def test_significance_is_the_sacrebleu_commands(arms, tmp_path):
    found = compare_arms(arms, REFERENCES, samples=100)
    assert [(row.arm, row.seed, row.baseline_seed) for row in found.comparisons] == [
        ("t2017", 1, 1), ("stock", 1, 1), ("t2017", 2, 2), ("stock", 2, 2), ("t2017", 3, 3),
    ]  # fmt: skip
    one, other = (arm.seeds[1].folder / "decode" / "generate.de" for arm in arms)
    command = [sys.executable, "-m", "sacrebleu", tmp_path / "corpus" / "test.de", "-i", one, other]
    # Text, since its JSON fails with numpy 2.
    options = ["-m", "bleu", "chrf", "--paired-bs", "--paired-bs-n", "100", "-w", "6", "-f", "text"]
    printed = subprocess.run([*map(str, command), *options], capture_output=True, text=True, check=True).stdout
    told = [(float(score), float(ci)) for score, ci in re.findall(r"([\d.]+) \([\d.]+ ± ([\d.]+)\)", printed)]
    p_values = [float(p) for p in re.findall(r"p = ([\d.]+)", printed)]
    for place, metric in enumerate(("sacreBLEU", "chrF2")):
        base, stock = (row.scores[metric] for row in found.comparisons[:2])
        assert (base.score, base.interval) == pytest.approx(told[place], abs=1e-5) and base.p is None
        assert (stock.score, stock.interval) == pytest.approx(told[2 + place], abs=1e-5)
        assert stock.difference == pytest.approx(told[2 + place][0] - told[place][0], abs=1e-5)
        assert stock.p == pytest.approx(p_values[place], abs=1e-4) and 0.05 < stock.p < 1
    for row, arm in zip(found.comparisons, (*arms, *arms), strict=False):
        recorded = arm.seeds[row.seed].scores["paper_bleu"]["score"]
        assert row.scores["paper's BLEU"].score == pytest.approx(recorded)


def test_arms_without_a_common_seed_are_paired_in_order(tmp_path):
    runs = [make_run(tmp_path, "a/t2017", 1), make_run(tmp_path, "b/stock", 7, spoiled(2), stock=True)]
    found = compare_arms(group([read_run(run) for run in runs]), REFERENCES, samples=10)
    assert [(row.arm, row.seed, row.baseline_seed) for row in found.comparisons] == [("t2017", 1, 1), ("stock", 7, 1)]


def test_the_page_is_well_formed_and_needs_nothing_else(arms):
    arms[1].name = 'stock & <script src="http://x">'
    text = page.html(arms, all_tables(arms, compare_arms(arms, REFERENCES, samples=10)))
    tree = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    tags = [element.tag.split("}")[-1] for element in tree.iter()]
    assert not {"script", "link", "img", "iframe", "object", "image", "a"} & set(tags)
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert name.split("}")[-1] not in {"src", "srcset", "data", "onload"}
            assert not name.endswith("href") or value.startswith("#")
            assert not re.search(r"@import|url\((?!#)", value)
    styles = " ".join(element.text or "" for element in tree.iter() if element.tag.endswith("style"))
    assert not re.search(r"@import|url\(", styles)
    drawn = " ".join(element.text or "" for element in tree.iter() if element.tag.endswith("text"))
    assert "Validation loss over time" in drawn and "stock & <script" in drawn
    assert "t2017" in text and "stock &amp; &lt;script" in text
    rows = [[cell.text for cell in row] for row in tree.iter("tr")]
    assert ["arm", "seeds", "sacreBLEU", "paper's BLEU", "chrF2"] in rows
    speed = next(row for row in rows if len(row) == 10 and row[0] == "t2017")
    assert speed[1:6] == ["200", "900.0 ± 0.0", "2.000 ± 0.000", "2.500 ± 0.000", "9,000"] and speed[7] == "512"


def updates_of(line):
    """The updates that a line of a log is about, 0 for none."""
    found = re.search(r"num_updates[= ](\d+)", line)
    return int(found[1]) if found else 0


def test_curves_are_means_over_seeds_with_their_range(arms):
    low, unlogged = arms[0].runs[0].log, [line for line in log(2.5, 4500.0) if "| valid |" not in line]
    log_file = arms[0].runs[1].folder / "logs" / "train.log"
    validated = [line for line in log() if "| valid |" in line]
    log_file.write_text("\n".join(sorted([*unlogged, *validated], key=updates_of)) + "\n", encoding="utf-8")
    arms[0].runs[1] = Run(arms[0].runs[1].folder)
    figure = page.draw(arms)
    over_updates, over_time = figure.axes[2:]
    updates = [point.updates for point in low.training]
    # Seeds 1 and 3 are as logged, seed 2 is half a bit above and takes twice the time.
    mean = [point.bits + 0.5 / 3 for point in low.training]
    assert over_updates.lines[0].get_xdata().tolist() == updates
    assert over_updates.lines[0].get_ydata().tolist() == pytest.approx(mean)
    minutes = [point.seconds * 4 / 3 / 60 for point in low.training]
    assert over_time.lines[0].get_xdata().tolist() == pytest.approx(minutes)
    assert [len(panel.collections) for panel in figure.axes] == [0, 0, 1, 1]  # the one band, over both
    assert over_updates.get_ylim()[0] < 2.0 < 5.5 < over_updates.get_ylim()[1]
    assert [line.get_label() for line in over_updates.lines] == ["t2017", "stock"]
    assert page.as_svg(figure) == page.as_svg(page.draw(arms))


def test_a_loss_that_was_not_logged_is_told(tmp_path):
    lines = [line for line in log() if "| valid |" not in line]
    figure = page.draw(group([read_run(make_run(tmp_path, "t2017", log=lines))]))
    assert figure.axes[0].get_title() == "Validation loss over updates: not logged"
    assert len(figure.axes[2].lines[0].get_xydata()) == 4


def test_markdown_has_the_same_tables(arms):
    tables = all_tables(arms, compare_arms(arms, REFERENCES, samples=10))
    text = page.markdown(arms, tables)
    for table in tables:
        assert f"## {table.title}\n" in text
    widths, section = {}, ""
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault(section, set()).add(len(re.findall(r"(?<!\\)\|", line)))
        elif line.startswith("## "):
            section = line
    assert all(len(found) == 1 for found in widths.values()) and len(widths) == len(tables) + 2
    assert "| 100 | 4.500 | 4.750 |" in text  # validation losses
    assert "| 200 | 2.000 | 2.250 |" in text  # training losses


def test_references_are_found_named_or_refused(tmp_path):
    run = make_run(tmp_path / "run", "t2017")
    assert references_of([read_run(run)]) == REFERENCES
    kept = (tmp_path / "run" / "corpus" / "test.de").rename(tmp_path / "kept.de")
    with pytest.raises(UsageError, match="--reference FILE"):
        references_of([read_run(run)])
    assert references_of([read_run(run)], kept) == REFERENCES
    kept.write_text("etwas anderes\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is not the reference"):
        references_of([read_run(run)], kept)
