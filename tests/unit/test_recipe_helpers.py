"""Helpers of the recipes: steps that are done once, runs that can be gone on with, logs and reports read right."""

import json
import zipfile
from pathlib import Path

import pytest
import torch

from recipes.common import hypotheses, machine, prepare_text, report, resume_point, steps, training_log
from t2017_plugin.text.pipeline import TextPipeline, TextSettings

pytestmark = pytest.mark.unit


class Step:
    """A step with one input, one output, a setting and a settings file, in a run's folder."""

    def __init__(self, run: Path) -> None:
        self.run, self.stamp = run, run / "steps" / "one.json"
        self.input, self.output, self.settings = run / "input", run / "output", run / "settings.yaml"
        self.input.write_text("a")
        self.output.write_text("b")
        sections = ("# comment", "model: {d_model: 8}", "optimization: {max_update: 5}", "generation: {beam: 4}")
        self.settings.write_text("\n".join(sections))
        self.setting = "size=1"

    def call(self, action: str, command: str = "train") -> int:
        """Exit status of one action."""
        facts = ["--input", str(self.input), "--output", str(self.output), "--setting", self.setting]
        return steps.main([action, str(self.stamp), *facts, "--settings-file", str(self.settings), command])


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def test_a_step_is_done_once(step, capsys):
    assert step.call("check") == 3
    assert step.call("finish") == 0
    capsys.readouterr()
    assert step.call("check") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda step: step.input.write_text("other"), "inputs changed"),
        (lambda step: step.output.write_text("other"), "outputs are not as the step left them"),
        (lambda step: step.output.unlink(), "output is gone"),
        (lambda step: setattr(step, "setting", "size=2"), "settings changed"),
        (lambda step: step.settings.write_text("model: {d_model: 16}\n"), "settings file changed"),
    ],
)
def test_a_step_is_done_again_when_something_changed(step, capsys, change, reason):
    step.call("finish")
    change(step)
    assert step.call("check") == 3
    assert reason in capsys.readouterr().out


def test_comments_and_the_other_command_s_settings_do_not_matter(step):
    step.call("finish")
    step.settings.write_text("model:\n  d_model: 8  # wide\noptimization: {max_update: 5}\ngeneration: {beam: 9}\n")
    assert step.call("check") == 0
    step.call("finish", "generate")
    step.settings.write_text("model: {d_model: 99}\ngeneration: {beam: 9}\n")
    assert step.call("check", "generate") == 0
    step.settings.write_text("model: {d_model: 99}\ngeneration: {beam: 10}\n")
    assert step.call("check", "generate") == 3


def test_a_run_may_be_moved(step, tmp_path):
    step.call("finish")
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in list(tmp_path.iterdir()):
        if path != moved:
            path.rename(moved / path.name)
    facts = ["--input", str(moved / "input"), "--output", str(moved / "output"), "--setting", "size=1"]
    settings = ["--settings-file", str(moved / "settings.yaml"), "train"]
    assert steps.main(["check", str(moved / "steps" / "one.json"), *facts, *settings]) == 0


def test_a_missing_input_names_the_file(step):
    step.input.unlink()
    with pytest.raises(SystemExit, match="input is not there.*run the steps in order"):
        step.call("check")


def test_only_a_longer_run_may_be_gone_on_with(step, capsys):
    step.stamp = step.run / "began.json"

    def start():
        step.call("start")
        return capsys.readouterr().out.strip()

    assert start() == "new"
    assert start() == "same"
    step.settings.write_text("model: {d_model: 8}\noptimization: {max_update: 50}\n")
    assert start() == "same"
    step.settings.write_text("model: {d_model: 9}\noptimization: {max_update: 50}\n")
    assert start() == "other"


def save(path: Path, value: float) -> None:
    torch.save({"model": torch.full((1000,), value)}, path)


def test_the_newest_whole_checkpoint_is_gone_on_from(tmp_path):
    for updates in (9, 10, 100):
        save(tmp_path / f"checkpoint_1_{updates}.pt", updates)
    save(tmp_path / "checkpoint_last.pt", 100)
    assert resume_point.repair(tmp_path) == "checkpoint_last.pt"
    for name in ("checkpoint_last.pt", "checkpoint_1_100.pt"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
    (tmp_path / "checkpoint_1_110.pt.tmp").write_bytes(b"half")
    assert resume_point.repair(tmp_path) == "checkpoint_1_10.pt"  # 10 is newer than 9: numbers, not names
    assert torch.load(tmp_path / "checkpoint_last.pt")["model"][0] == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint_1_10.pt",
        "checkpoint_1_9.pt",
        "checkpoint_last.pt",
    ]


def test_a_changed_byte_is_noticed_and_an_empty_folder_is_a_beginning(tmp_path):
    assert resume_point.repair(tmp_path) is None
    save(tmp_path / "checkpoint_last.pt", 1.0)
    content = bytearray((tmp_path / "checkpoint_last.pt").read_bytes())
    with zipfile.ZipFile(tmp_path / "checkpoint_last.pt") as archive:
        largest = max(archive.infolist(), key=lambda part: part.file_size)
    content[largest.header_offset + 2000] ^= 1
    (tmp_path / "checkpoint_last.pt").write_bytes(bytes(content))
    assert resume_point.repair(tmp_path) is None
    assert not list(tmp_path.iterdir())


def interval(updates: int, wpb: float, wall: float, loss: float = 2.0) -> str:
    line = f"nll_loss={loss}, ppl=4, wps=1.5, ups=4.3, wpb={wpb}, num_updates={updates}, lr=2e-05, train_wall={wall}"
    return f"2026-01-01 00:00:00 | INFO | train_inner | epoch 001:     50 / 69 loss=3.77, {line}"


def test_the_log_of_an_interrupted_training_counts_each_update_once():
    log = [
        "... | num. shared model params: 1,234 (num. trained: 1,234)",
        interval(100, 50.0, 10),
        interval(200, 60.0, 20),
        interval(300, 999.0, 99),  # lost: training went on from update 200
        interval(300, 70.0, 30),
        interval(350, 80.0, 5, loss=1.25),
    ]
    facts = training_log.summary(log)
    assert (facts["updates"], facts["parameters"], facts["nll_bits_a_token"]) == (350, 1234, 1.25)
    assert facts["target_tokens_an_update"] == pytest.approx((50 * 100 + 60 * 100 + 70 * 100 + 80 * 50) / 350)
    assert facts["training_seconds"] == 65
    assert facts["target_tokens_a_second"] == pytest.approx(22000 / 65)
    end = "... | fairseq_cli.train | Stopping training due to num_updates: 370 >= max_update: 370"
    assert training_log.summary([*log, end])["updates"] == 370
    with pytest.raises(SystemExit, match="no update"):
        training_log.summary(["nothing"])


def test_hypotheses_come_in_order_and_are_counted(tmp_path, capsys):
    source, generated = tmp_path / "test.en", tmp_path / "generate.log"
    source.write_text("a\nb\nc\n")
    generated.write_text("D-2\t-0.1\tdrei\nH-2\t-0.1\tno\nD-0\t-0.2\teins\nD-1\t-0.3\t\n")
    named = ["--generated", str(generated), "--source", str(source), "--output", str(tmp_path / "o")]
    hypotheses.main(["extract", *named])
    assert (tmp_path / "o").read_text() == "eins\n\ndrei\n"
    generated.write_text("D-2\t-0.1\tdrei\nD-0\t-0.2\teins\n")
    with pytest.raises(SystemExit, match="no hypothesis for 1 of 3"):
        hypotheses.extract(generated, source, tmp_path / "never")
    assert not (tmp_path / "never").exists()
    (tmp_path / "p").write_text("eins\nzwei\ndrei\n")
    hypotheses.main(["compare", str(tmp_path / "o"), str(tmp_path / "p"), "--output", str(tmp_path / "agreement.json")])
    assert json.loads((tmp_path / "agreement.json").read_text())["differing_lines"] == [2]
    assert "1 of 3 lines differ" in capsys.readouterr().out


def test_training_text_is_what_translating_will_see(tmp_path):
    text = {"en": "Don't turn on lamp 3\nTurn it off.\n", "de": "Lampe 3 nicht einschalten\nAusschalten.\n"}
    for split in ("train", "valid", "test"):
        for language, content in text.items():
            (tmp_path / f"{split}.{language}").write_text(content, encoding="utf-8")
    prepare_text.prepare(tmp_path, tmp_path / "text", ("en", "de"), merges=30)
    settings = TextSettings("en", "de", bpe_codes="codes")
    settings.save(tmp_path / "text")
    pipeline = TextPipeline.load(tmp_path / "text")
    for language, content in text.items():
        units = (tmp_path / "text" / f"test.bpe.{language}").read_text(encoding="utf-8").splitlines()
        assert units == [pipeline.encode(line, language) for line in content.splitlines()]
    assert "@@" in (tmp_path / "text" / "test.bpe.de").read_text(encoding="utf-8")


def test_text_without_anything_to_merge_has_codes_all_the_same(tmp_path):
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (tmp_path / f"{split}.{language}").write_text("1 2 3\n")
    prepare_text.prepare(tmp_path, tmp_path / "text", ("en", "de"), merges=30)
    assert (tmp_path / "text" / "train.bpe.en").read_text() == "1 2 3\n"


def test_sides_that_are_not_aligned_are_refused(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("one\ntwo\n")
        (tmp_path / f"{split}.de").write_text("eins\n" if split == "valid" else "eins\nzwei\n")
    with pytest.raises(SystemExit, match="valid has 2 lines of en, 1 of de"):
        prepare_text.prepare(tmp_path, tmp_path / "text", ("en", "de"), merges=3)


def scored_arm(run: Path, arm: str, bleu: float) -> None:
    files = {
        "bleu.json": {
            "sentences": 3,
            "sacrebleu": {"score": bleu, "signature": "signature-s"},
            "paper_bleu": {"score": bleu + 1, "signature": "signature-p"},
        },
        "machine.json": {
            **{"processor": "P", "cores": 2, "threads": 2, "gpus": [], "system": "S", "python": "3"},
            **{"packages": {"torch": "2"}, "revision": None},
        },
        "steps/train.json": {"seconds": 61},
    }
    for name, content in files.items():
        (run / arm / name).parent.mkdir(parents=True, exist_ok=True)
        (run / arm / name).write_text(json.dumps(content))
    (run / arm / "logs").mkdir()
    (run / arm / "logs" / "train.log").write_text(
        f"num. shared model params: 12 (x)\n{interval(10, 100.0, 4)}\n{interval(20, 120.0, 6)}\n"
    )


def test_the_report_puts_both_arms_side_by_side(tmp_path, capsys):
    scored_arm(tmp_path, "t2017", 21.5)
    scored_arm(tmp_path, "stock", 20.25)
    (tmp_path / "corpus").mkdir()
    note = {"corpus": "made up", "note": "GENERATED CORPUS", "splits": {"test": {"pairs": 3}}}
    (tmp_path / "corpus" / "corpus.json").write_text(json.dumps(note))
    report.main([str(tmp_path)])
    printed, written = capsys.readouterr().out, (tmp_path / "report.md").read_text()
    for text in (printed, written):
        assert "GENERATED CORPUS" in text
        assert "| | t2017_plugin | stock fairseq |" in text
        assert "| sacreBLEU | 21.50 | 20.25 |" in text
        assert "| paper's BLEU (tokens, compounds split) | 22.50 | 21.25 |" in text
        assert "| target tokens an update | 110.0 | 110.0 |" in text
        assert "| target tokens a second | 220 | 220 |" in text
    scores = json.loads((tmp_path / "stock" / "scores.json").read_text())
    assert scores["seconds"] == {"train": 61} and scores["corpus"] == "made up"
    with pytest.raises(SystemExit, match="no arm that was scored"):
        report.main([str(tmp_path / "corpus")])


def test_the_machine_is_described_outside_git_too(tmp_path):
    described = machine.describe(tmp_path)
    assert described["revision"] is None
    # The index's CUDA build is "2.13.0" to pip and "2.13.0+cu130" to itself.
    assert described["packages"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert described["cores"] >= 1 and described["processor"]
