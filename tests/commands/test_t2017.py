"""The command t2017: help, exit status, one line on failure."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

import t2017_plugin
from t2017_plugin.commands import main as cli

COMMAND = [sys.executable, "-m", "t2017_plugin"]


def failed(capsys, arguments, status, message):
    """Run a call that must fail; its one line on stderr is returned."""
    assert cli.main([str(argument) for argument in arguments]) == status
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    if status == 1:
        assert captured.err.count("\n") == 1
        assert captured.err.startswith(f"t2017 {arguments[0]}: ")
    return captured.err


def test_help_lists_every_command_with_a_line(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    folder = Path(t2017_plugin.__file__).parent / "commands"
    names = [
        path.stem.replace("_", "-")
        for path in folder.glob("*.py")
        if path.stem not in ("__init__", "arguments", "main")
    ]
    assert sorted(names) == list(cli.COMMANDS)
    for name in names:
        assert re.search(rf"^    {name}\s", text, flags=re.MULTILINE)
        assert cli.COMMANDS[name].split()[0] in text


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_has_help(capsys, name):
    assert cli.main([name, "--help"]) == 0
    assert f"usage: t2017 {name}" in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"t2017 {t2017_plugin.__version__} (fairseq 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["average"],
        ["average", "--output", "x"],
        ["average", "--las", "5", "--output", "x", "y"],
        ["score"],
    ],
)
def test_wrong_calls_end_with_2(capsys, arguments):
    failed(capsys, arguments, 2, "usage: t2017")


def test_user_dir_is_what_fairseq_needs(capsys):
    assert cli.main(["user-dir"]) == 0
    assert Path(capsys.readouterr().out.strip()).samefile(Path(t2017_plugin.__file__).parent)


def test_only_the_called_command_is_imported():
    program = (
        "import sys; from t2017_plugin.commands import main as cli; cli.main(['user-dir']);"
        "print([name for name in sys.modules if name.startswith('t2017_plugin.commands.')])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "['t2017_plugin.commands.main', 't2017_plugin.commands.user_dir']"


@pytest.mark.parametrize("call", ["--help", "--version", "user-dir"])
def test_what_must_answer_at_once_loads_nothing_heavy(call):
    program = (
        "import sys; from t2017_plugin.commands import main as cli; cli.main(sys.argv[1:]);"
        "print(sorted({'torch', 'fairseq', 'numpy', 'nltk'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program, call], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error():
    """As in ``t2017 params --json | head -1``: nothing is said, and the status is that of a broken pipe."""
    call = [*COMMAND, "params", "--json"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 128 + signal.SIGPIPE
    assert "Broken" not in errors and "Traceback" not in errors


def test_interrupt_and_lost_files_give_one_line(capsys, monkeypatch):
    command = cli.load_command("user-dir")
    for error, status, message in (
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "/some/file"), 1, "/some/file: permission denied"),
        (MemoryError(), 1, "MemoryError"),
    ):
        monkeypatch.setattr(command, "run", lambda args, error=error: (_ for _ in ()).throw(error))
        failed(capsys, ["user-dir"], status, message)


def save_run(folder, updates, epochs=()):
    """A run's folder with update and epoch checkpoints whose only weight is the number of updates."""
    folder.mkdir()
    names = {f"checkpoint_1_{n}.pt": n for n in updates} | {f"checkpoint{n}.pt": n * 1000 for n in epochs}
    for name, n in names.items():
        state = {
            "cfg": {"model": {"_name": "x"}},
            "model": {"w": torch.tensor([float(n)])},
            "optimizer_history": [{"num_updates": n}],
            "extra_state": {},
        }
        torch.save(state, folder / name)
        torch.save(state, folder / "checkpoint_last.pt")
    return folder


def test_average_takes_the_last_by_update_number(capsys, tmp_path):
    run = save_run(tmp_path / "run", [80, 90, 100, 110, 1000])
    output = tmp_path / "average.pt"
    assert cli.main(["average", "--last", "3", "--output", str(output), str(run)]) == 0
    text = capsys.readouterr().out
    assert [line.split("  ")[1] for line in text.splitlines()[:3]] == ["update 100", "update 110", "update 1,000"]
    assert "mean of 3 update checkpoints" in text
    assert torch.load(output)["model"]["w"].item() == pytest.approx(1210 / 3)


def test_average_by_epoch_and_of_named_files(capsys, tmp_path):
    run = save_run(tmp_path / "run", [100], epochs=[1, 2, 3])
    output = tmp_path / "average.pt"
    assert cli.main(["average", "--last", "2", "--by", "epoch", "--output", str(output), str(run)]) == 0
    assert "mean of 2 epoch checkpoints" in capsys.readouterr().out
    assert torch.load(output)["model"]["w"].item() == 2500
    files = [str(run / "checkpoint_1_100.pt"), str(run / "checkpoint1.pt")]
    assert cli.main(["average", "--output", str(output), *files]) == 0
    assert torch.load(output)["model"]["w"].item() == 550


def test_average_notes_a_newer_checkpoint(capsys, tmp_path):
    """The last update of an epoch is saved under the epoch's name only."""
    run = save_run(tmp_path / "run", [100, 200], epochs=[1])
    assert cli.main(["average", "--last", "2", "--output", str(tmp_path / "average.pt"), str(run)]) == 0
    assert "checkpoint_last.pt is of update 1,000, after the last one taken (200)" in capsys.readouterr().err


def test_average_refuses_in_one_line_and_leaves_nothing(capsys, tmp_path):
    run = save_run(tmp_path / "run", [100, 200], epochs=[1])
    output = tmp_path / "average.pt"
    for arguments, message in (
        (["--last", "5", run], "holds 2 update checkpoints"),
        ([run / "none.pt"], "no such checkpoint"),
    ):
        failed(capsys, ["average", "--output", output, *arguments], 1, message)
    for arguments, message in (
        ([run], "say how many of its checkpoints to average with --last"),
        (["--last", "1", run, run], "--last takes one folder"),
        (["--last", "0", run], "'0' is not a whole number from 1 on"),
    ):
        assert cli.main(["average", "--output", str(output), *map(str, arguments)]) == 2
        assert message in capsys.readouterr().err
    failed(capsys, ["average", "--last", "1", "--output", tmp_path / "no" / "average.pt", run], 1, "make it first")
    assert cli.main(["average", "--output", str(output), "--by", "epoch", str(run / "checkpoint1.pt")]) == 2
    assert "--by goes with --last" in capsys.readouterr().err
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run"]


def change_settings(path, **settings):
    """Save a checkpoint again with other stored settings."""
    state = torch.load(path)
    state["cfg"] |= settings
    torch.save(state, path)


def test_average_refuses_two_runs_unless_told(capsys, tmp_path):
    """Told apart by the seed and the folder they were saved in."""
    run, output = save_run(tmp_path / "run", [100, 200, 300]), tmp_path / "average.pt"
    for n, seed in ((100, 1), (200, 1), (300, 2)):
        change_settings(run / f"checkpoint_1_{n}.pt", common={"seed": seed}, checkpoint={"save_dir": "here"})
    assert cli.main(["average", "--output", str(output), *(str(run / f"checkpoint_1_{n}.pt") for n in (100, 200))]) == 0
    capsys.readouterr()
    failed(capsys, ["average", "--last", "3", "--output", output, run], 1, "two trainings (seed is 1 and 2)")
    change_settings(run / "checkpoint_1_300.pt", common={"seed": 1}, checkpoint={"save_dir": "there"})
    failed(capsys, ["average", "--last", "3", "--output", output, run], 1, "(save_dir is here and there)")
    assert cli.main(["average", "--last", "3", "--several-runs", "--output", str(output), str(run)]) == 0
    assert torch.load(output)["model"]["w"].item() == 200


def test_average_warns_of_updates_close_together(capsys, tmp_path):
    run, output = save_run(tmp_path / "run", [100, 200, 300, 400, 401]), tmp_path / "average.pt"
    assert cli.main(["average", "--last", "4", "--output", str(output), str(run)]) == 0
    assert capsys.readouterr().err.count("warning: updates 400 and 401 are 1 apart, others 100") == 1
    (run / "checkpoint_1_401.pt").unlink()
    assert cli.main(["average", "--last", "4", "--output", str(output), str(run)]) == 0
    assert "warning" not in capsys.readouterr().err


def turn_a_bit(path, part):
    """Change the lowest bit of a part of a checkpoint, and not its checksum."""
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        header = next(each for each in archive.infolist() if each.filename.endswith(part)).header_offset
    # Behind the local header's 30 bytes stand the name and what fills up to the data's place.
    begin = header + 30 + sum(struct.unpack("<HH", raw[header + 26 : header + 30]))
    path.write_bytes(raw[:begin] + bytes([raw[begin] ^ 1]) + raw[begin + 1 :])


def test_average_refuses_a_wrong_checksum(capsys, tmp_path):
    """Loading does not see it. The control is the optimiser's part, which is not looked at."""
    run, output = save_run(tmp_path / "run", [100, 200]), tmp_path / "average.pt"
    path = run / "checkpoint_1_200.pt"
    torch.save(torch.load(path) | {"last_optimizer_state": {"m": torch.ones(5)}}, path)
    turn_a_bit(path, "data/1")
    assert cli.main(["average", "--last", "2", "--output", str(output), str(run)]) == 0
    output.unlink()
    capsys.readouterr()
    turn_a_bit(path, "data/0")
    assert torch.load(path)["model"]["w"].item() != 200
    failed(capsys, ["average", "--last", "2", "--output", output, run], 1, "checkpoint_1_200.pt is damaged")
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["params", "--arch", "nope"], "invalid choice: 'nope' (choose from"),
        (["cost", "--arch", "nope"], "invalid choice: 'nope' (choose from"),
        (["plot", "run", "--output", "x.jpg"], "the name of a picture ends in .png, .svg, .pdf"),
    ],
    ids=str,
)
def test_a_wrong_call_has_status_2(capsys, arguments, message):
    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_terminating_average_leaves_nothing(tmp_path):
    """SIGTERM while the output is being written."""
    run = save_run(tmp_path / "run", [100])
    program = (
        "import os, signal, sys, torch\n"
        "from t2017_plugin.commands import main as cli\n"
        "def save(state, path):\n"
        "    open(path, 'w').write('half'); os.kill(os.getpid(), signal.SIGTERM)\n"
        "torch.save = save\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    arguments = ["average", "--last", "1", "--output", str(tmp_path / "average.pt"), str(run)]
    status = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True).returncode
    assert status == 128 + signal.SIGTERM
    assert sorted(os.listdir(tmp_path)) == ["run"]


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_score_prints_both_numbers_with_names(capsys, tmp_path):
    hypothesis = write(tmp_path / "hyp.de", "Der EU-Gipfel war gut.", "Es regnet seit drei Tagen.")
    reference = write(tmp_path / "ref.de", "Der EU-Gipfel ist gut.", "Es regnet seit drei Tagen.")
    call = ["score", "--target-lang", "de", "--hyp", str(hypothesis), "--ref", str(reference)]
    assert cli.main(call) == 0
    text = capsys.readouterr().out
    assert cli.main([*call, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert f"sacreBLEU     {scores['sacrebleu']['score']:.2f} " in text
    assert f"paper's BLEU  {scores['paper_bleu']['score']:.2f} " in text
    assert scores["sacrebleu"]["signature"] in text and "|tok:13a|" in text
    assert "compounds:split" in text
    assert scores["sentences"] == 2
    # EU-Gipfel counts as three tokens in the paper's BLEU and as one in sacreBLEU.
    assert scores["paper_bleu"]["hypothesis_length"] - scores["sacrebleu"]["hypothesis_length"] == 2


def test_score_of_fairseq_generates_output(capsys, tmp_path):
    log = write(
        tmp_path / "log",
        "D-1\t-0.2\tEs regnet &quot; seit &quot; drei Tagen .",
        "D-0\t-0.1\tDer EU-Gipfel ist gut .",
    )
    reference = write(tmp_path / "ref.de", "Der EU-Gipfel ist gut.", 'Es regnet "seit" drei Tagen.')
    call = ["score", "--target-lang", "de", "--ref", str(reference), "--json", "--from-generate", str(log)]
    assert cli.main(call) == 0
    captured = capsys.readouterr()
    assert "looks tokenised" in captured.err and "--detokenize" in captured.err
    assert json.loads(captured.out)["paper_bleu"]["score"] < 100  # escaped twice
    assert cli.main([*call, "--detokenize"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["paper_bleu"]["score"] == pytest.approx(100)


def test_score_refuses_in_one_line(capsys, tmp_path):
    reference = write(tmp_path / "ref.de", "eins", "zwei")
    for lines, message in (
        (["eins"], "hyp.de has 1 lines"),
        (["ei@@ ns", "zwei"], "hyp.de, line 1: '@@' marks BPE units"),
        (["D-0\t-1.0\teins", "D-1\t-1.0\tzwei"], "--from-generate"),
    ):
        hypothesis = write(tmp_path / "hyp.de", *lines)
        failed(capsys, ["score", "--target-lang", "de", "--hyp", hypothesis, "--ref", reference], 1, message)


def test_params(capsys):
    assert cli.main(["params"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["total", "65,073,152", "65,073,152"]
    assert cli.main(["params", "--arch", "t2017_big", "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["formula"]["total"] == counted["built"]["total"] == 218_226_688
    assert cli.main(["params", "--table3", "--vocab", "37000"]) == 0
    table = capsys.readouterr().out
    assert "63,045,632" in table and "214,171,648" in table and " 213M" in table
    assert cli.main(["params", "--table3"]) == 0
    both = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("t2017")}
    assert len(both) == 18
    assert all(count in both["t2017_base"] for count in ("65,073,152", "63,045,632", " 65M"))
    assert cli.main(["params", "--arch", "t2017_huge"]) == 2
