"""The recipes' one program for steps and its helpers: done once, resumed, locked; logs and reports read right."""

import fcntl
import json
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from recipes import step, training
from recipes.common import hypotheses, machine, prepare_text, report
from recipes.stamps import Step
from t2017_plugin.experiments.logs import read_log
from t2017_plugin.text.pipeline import TextPipeline, TextSettings

pytestmark = pytest.mark.unit


def copies(run: Path, *options: str, text: str = "b") -> int:
    """Run a step that reads one file and writes another; ``text`` is part of its command."""
    code = f"import pathlib, sys; pathlib.Path(sys.argv[1]).write_text({text!r})"
    own = ["one", "--run", str(run), "--needs", "input", "--makes", "output", *options]
    return step.main([*own, "--", sys.executable, "-c", code, str(run / "output")])


@pytest.fixture
def run(tmp_path):
    (tmp_path / "input").write_text("a")
    return tmp_path


def test_a_step_is_done_once(run, capfd):
    assert copies(run) == 0
    assert "one: to be done" in capfd.readouterr().out
    (run / "output").touch()
    assert copies(run) == 0
    assert capfd.readouterr().out == "one: done before, nothing has changed\n"


@pytest.mark.parametrize(
    ("change", "options", "text", "reason"),
    [
        (lambda run: (run / "input").write_text("other"), [], "b", "inputs changed"),
        (lambda run: (run / "output").write_text("other"), [], "b", "outputs are not as the step left them"),
        (lambda run: (run / "output").unlink(), [], "b", "output is gone"),
        (lambda run: None, ["--set", "model.layers=3"], "b", "settings changed"),
        (lambda run: None, [], "c", "command changed"),
    ],
)
def test_a_step_is_done_again_when_something_changed(run, capfd, change, options, text, reason):
    copies(run)
    change(run)
    capfd.readouterr()
    assert copies(run, *options, text=text) == 0
    assert reason in capfd.readouterr().out
    assert (run / "output").read_text() == text


def test_a_run_may_be_moved(run, tmp_path, capfd):
    copies(run)
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in list(tmp_path.iterdir()):
        if path != moved:
            path.rename(moved / path.name)
    copies(moved)
    assert "done before" in capfd.readouterr().out.splitlines()[-1]


def test_what_is_missing_or_fails_is_one_line(run, capfd):
    (run / "input").unlink()
    with pytest.raises(SystemExit, match=r"input is not there.*run the steps in order"):
        copies(run)
    command = [sys.executable, "-c", "import sys; print('why'); sys.exit(7)"]
    with pytest.raises(SystemExit, match=r"ended with status 7; its whole output is in .*/logs/two\.log"):
        step.main(["two", "--run", str(run), "--log", "logs/two.log", "--", *command])
    assert "why" in capfd.readouterr().err
    with pytest.raises(SystemExit, match=r"three: .*never was not made"):
        step.main(["three", "--run", str(run), "--makes", "never", "--", sys.executable, "-c", ""])
    assert not (run / "steps").exists()


def test_files_and_folders_are_whole_or_not_there(run):
    writes = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(); (p / 'x').write_text('1'); print('text')"
    fails = ["--then", sys.executable, "-c", "raise SystemExit(1)"]
    own = ["four", "--run", str(run), "--makes", "made/", "out", "--stdout", "out"]
    command = ["--", sys.executable, "-c", writes, str(run / "made.partial")]
    with pytest.raises(SystemExit):
        step.main([*own, *command, *fails])
    assert not (run / "made").exists() and not (run / "steps").exists()
    assert step.main([*own, *command]) == 0
    assert (run / "made" / "x").read_text() == "1" and (run / "out").read_text() == "text\n"
    assert not (run / "made.partial").exists() and not (run / "out.partial").exists()


def test_one_step_at_a_time_works_in_a_run(run, monkeypatch):
    monkeypatch.setattr(step, "SECONDS_TO_WAIT", 0)
    with (run / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemExit, match="is at work in"):
            copies(run)
    assert copies(run) == 0


def test_memory_of_a_command(run):
    def measure(name: str, code: str) -> int:
        own = [name, "--run", str(run), "--memory", "memory.json"]
        command = [sys.executable, "-m", "recipes.step", *own, "--", sys.executable, "-c", code]
        assert step.subprocess.run(command, check=False, cwd=step.ROOT).returncode == 0
        return json.loads((run / "memory.json").read_text())["peak_resident_bytes"]

    peak = measure("large", "x = bytes([1]) * 100_000_000")
    assert 100e6 < peak < 160e6  # the bytes and an interpreter
    assert measure("small", "pass") == peak  # a later call with less


SETTINGS = "# comment\nmodel: {d_model: 8}\noptimization: {max_update: 5}\ngeneration: {beam: 4}\n"


def facts_of(settings: Path, command: str, *words: str) -> dict:
    """What a step with a settings file depends on."""
    own = ["one", "--run", str(settings.parent), "--settings", str(settings), command]
    return step.facts_of(step.arguments(own), [list(words)], settings.parent)


def test_comments_order_and_the_other_command_s_settings_do_not_matter(tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text(SETTINGS)
    train, generate = (facts_of(settings, command, "x", "--a", "1", "--b") for command in ("train", "generate"))
    settings.write_text("model:\n  d_model: 8  # wide\noptimization: {max_update: 5}\ngeneration: {beam: 9}\n")
    assert facts_of(settings, "train", "x", "--b", "--a", "1") == train
    assert facts_of(settings, "generate", "x", "--a", "1", "--b") != generate
    assert facts_of(settings, "train", "x", "--b", "--a", "2") != train
    settings.write_text(SETTINGS.replace("8", "99"))
    assert facts_of(settings, "generate", "x", "--a", "1", "--b") == generate


def test_only_a_longer_run_may_be_resumed(tmp_path):
    settings = tmp_path / "settings.yaml"

    def begins(text: str, updates: str = "5") -> bool | None:
        settings.write_text(text)
        facts = facts_of(settings, "train", "fairseq-train", "--max-update", updates, "--seed", "1")
        return Step("train", tmp_path, tmp_path, facts=facts).begins_as_before()

    assert begins(SETTINGS) is None
    assert begins(SETTINGS) is True
    assert begins(SETTINGS.replace("5", "50"), "50") is True
    assert begins(SETTINGS.replace("8", "9")) is False


def save(path: Path, value: float) -> None:
    torch.save({"model": torch.full((1000,), value)}, path)


def test_the_newest_whole_checkpoint_is_resumed_from(tmp_path):
    for updates in (9, 10, 100):
        save(tmp_path / f"checkpoint_1_{updates}.pt", updates)
    save(tmp_path / "checkpoint_last.pt", 100)
    assert training.newest_whole_checkpoint(tmp_path) == "checkpoint_last.pt"
    for name in ("checkpoint_last.pt", "checkpoint_1_100.pt"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
    (tmp_path / "checkpoint_1_110.pt.tmp").write_bytes(b"half")
    assert training.newest_whole_checkpoint(tmp_path) == "checkpoint_1_10.pt"  # 10 is newer than 9: numbers, not names
    assert torch.load(tmp_path / "checkpoint_last.pt")["model"][0] == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint_1_10.pt",
        "checkpoint_1_9.pt",
        "checkpoint_last.pt",
    ]


def test_a_changed_byte_is_noticed_and_an_empty_folder_is_a_beginning(tmp_path):
    assert training.newest_whole_checkpoint(tmp_path) is None
    save(tmp_path / "checkpoint_last.pt", 1.0)
    content = bytearray((tmp_path / "checkpoint_last.pt").read_bytes())
    with zipfile.ZipFile(tmp_path / "checkpoint_last.pt") as archive:
        largest = max(archive.infolist(), key=lambda part: part.file_size)
    content[largest.header_offset + 2000] ^= 1
    (tmp_path / "checkpoint_last.pt").write_bytes(bytes(content))
    assert training.newest_whole_checkpoint(tmp_path) is None
    assert not list(tmp_path.iterdir())


def interval(updates: int, wpb: float, wall: float, loss: float = 2.0) -> str:
    line = f"nll_loss={loss}, ppl=4, wps=1.5, ups=4.3, wpb={wpb}, num_updates={updates}, lr=2e-05, train_wall={wall}"
    return f"2026-01-01 00:00:00 | INFO | train_inner | epoch 001:     50 / 69 loss=3.77, {line}"


def test_the_log_of_an_interrupted_training_counts_each_update_once(tmp_path):
    path = tmp_path / "train.log"
    log = [
        "... | num. shared model params: 1,234 (num. trained: 1,234)",
        interval(100, 50.0, 10),
        interval(200, 60.0, 20),
        interval(300, 999.0, 99),  # lost: training went back to update 200
        interval(300, 70.0, 30),
        interval(350, 80.0, 5, loss=1.25),
    ]
    path.write_text("\n".join(log))
    facts = read_log(path).summary()
    assert (facts["updates"], facts["parameters"], facts["nll_bits_a_token"]) == (350, 1234, 1.25)
    assert facts["target_tokens_an_update"] == pytest.approx((50 * 100 + 60 * 100 + 70 * 100 + 80 * 50) / 350)
    assert facts["training_seconds"] == 65
    assert facts["target_tokens_a_second"] == pytest.approx(22000 / 65)
    end = "... | fairseq_cli.train | Stopping training due to num_updates: 370 >= max_update: 370"
    path.write_text("\n".join([*log, end]))
    assert read_log(path).summary()["updates"] == 370


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
        assert "| target tokens per update | 110.0 | 110.0 |" in text
        assert "| target tokens per second | 220 | 220 |" in text
    assert f"t2017 translate --checkpoint {tmp_path}/t2017/average.pt" in written
    scores = json.loads((tmp_path / "stock" / "scores.json").read_text())
    assert scores["seconds"] == {"train": 61} and scores["corpus"] == "made up"
    with pytest.raises(SystemExit, match="no arm that was scored"):
        report.main([str(tmp_path / "corpus")])


def test_the_report_ends_with_translations_curves_and_what_next(tmp_path, capsys, monkeypatch):
    scored_arm(tmp_path, "t2017", 21.5)
    monkeypatch.setattr(report, "SAMPLES", (1, 3, 9))
    texts = {"corpus/test.en": "a|b\nb\nc\n", "corpus/test.de": "A\nB\nC\n", "t2017/decode/generate.de": "x\ny\n\n"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin" / "text_settings.json").write_text('{"source_lang": "en", "target_lang": "de"}')
    (tmp_path / "curves.png").touch()
    report.main([str(tmp_path)])
    printed, written = capsys.readouterr().out, (tmp_path / "report.md").read_text()
    for text in (printed, written):
        assert "| source | a\\|b |\n| reference | A |\n| t2017_plugin | x |" in text
        assert "| source | c |\n| reference | C |\n| t2017_plugin | (nothing) |" in text
        assert "](curves.png)" in text and "line 9" not in text
        assert "t2017 score --target-lang de --hyp text.de" in text


def test_the_machine_is_described_outside_git_too(tmp_path):
    described = machine.describe(tmp_path)
    assert described["revision"] is None
    # The index's CUDA build is "2.13.0" to pip and "2.13.0+cu130" to itself.
    assert described["packages"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert described["cores"] >= 1 and described["processor"]
