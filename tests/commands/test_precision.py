"""Half precision: fairseq's own loss scaling driven on a CPU, the layouts of a saved state, refusals."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from t2017_plugin.fairseq_side import architectures
from t2017_plugin.fairseq_side import training as registered
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig, T2017LabelSmoothing
from t2017_plugin.paper.config import Model
from t2017_plugin.paper.model import ResidualNorm
from tests.builders import make_batch, make_model, make_task
from tests.commands.fairseq_runs import Corpus, Outcome, run, run_here, training

pytestmark = pytest.mark.commands

SHORT = ("--disable-validation", "--no-epoch-checkpoints")


@pytest.fixture
def fp16_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets fairseq's FP16Optimizer and loss scaler run without a GPU, which they ask for in two places only."""

    def settle(args: Any) -> None:
        args.fp16_no_flatten_grads, args.tpu = True, False

    monkeypatch.setattr(architectures, "check_command_line", settle)
    monkeypatch.setattr(registered, "refuse_fp16_without_gpu", lambda: None)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor, *unused: tensor)


def overflowing(monkeypatch: pytest.MonkeyPatch, after: int, batches: int) -> None:
    """The loss of ``batches`` batches after the first ``after`` is infinite, and so are its gradients."""
    forward, seen = T2017LabelSmoothing.forward, []

    def broken(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        loss, size, log = forward(self, model, sample, reduce)
        seen.append(loss)
        return loss * (float("inf") if after < len(seen) <= after + batches else 1.0), size, log

    monkeypatch.setattr(T2017LabelSmoothing, "forward", broken)


def trained(corpus: Corpus, folder: Path, *more: object) -> Outcome:
    return run_here("train", *training(corpus.data_bin, folder, *SHORT, *more))


@pytest.mark.usefixtures("fp16_on_a_cpu")
def test_an_overflow_halves_the_scale_and_training_goes_on(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflowing(monkeypatch, after=2, batches=3)
    outcome = trained(corpus, tmp_path, "--max-update", 6, "--fp16")
    assert outcome.status == 0, outcome.error
    assert outcome.log.count("gradient overflow detected") == 3
    entries = outcome.logged("train_inner")
    assert [entry["num_updates"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    # fairseq starts at 128.
    assert [entry["loss_scale"] for entry in entries] == [128, 128, 16, 16, 16, 16]
    assert entries[-1]["nll_loss"] < entries[0]["nll_loss"]


@pytest.mark.usefixtures("fp16_on_a_cpu")
def test_the_lowest_scale_ends_the_run_in_one_line(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last finite loss and gradient norm, and what to try."""
    overflowing(monkeypatch, after=2, batches=1000)
    outcome = trained(corpus, tmp_path, "--max-update", 6, "--fp16", "--min-loss-scale", 0.5)
    assert outcome.status == 1
    line = outcome.error.splitlines()[-1]
    for word in ("at update 3", "Minimum loss scale reached", "--noam-scale", "--clip-norm 1", "--bf16"):
        assert word in line
    last = outcome.logged("train_inner")[-1]
    loss, norm = (float(number) for number in re.findall(r" (?:loss|gnorm) ([\d.]+)", line))
    assert loss == pytest.approx(last["loss"], rel=1e-3) and norm == pytest.approx(last["gnorm"], rel=1e-3)


def adam(parameters: list[torch.Tensor]) -> T2017Adam:
    return T2017Adam(T2017AdamConfig(lr=[0.1]), [torch.nn.Parameter(each.clone()) for each in parameters])


def update(optimizer: T2017Adam, gradients: list[torch.Tensor]) -> None:
    for parameter, gradient in zip(optimizer.params, gradients, strict=True):
        parameter.grad = gradient.clone()
    optimizer.step()


def test_flat_and_separate_states_are_one() -> None:
    """fairseq flattens the float32 weights under --fp16 on a GPU: three updates in either layout, then a change."""
    generator = torch.Generator().manual_seed(0)

    def numbers() -> list[torch.Tensor]:
        return [torch.randn(3, 2, generator=generator), torch.randn(5, generator=generator)]

    def flat(parts: list[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.cat([part.flatten() for part in parts])]

    weights, gradients = numbers(), [numbers() for _ in range(4)]
    separate, joined = adam(weights), adam(flat(weights))
    for each in gradients[:3]:
        update(separate, each)
        update(joined, flat(each))
    changed = adam([each.detach() for each in joined.params])
    changed.load_state_dict(copy.deepcopy(separate.state_dict()))
    back = adam([each.detach() for each in separate.params])
    back.load_state_dict(copy.deepcopy(joined.state_dict()))
    for optimizer in (separate, back):
        update(optimizer, gradients[3])
    for optimizer in (joined, changed):
        update(optimizer, flat(gradients[3]))
    results = [torch.cat([each.detach().flatten() for each in one.params]) for one in (separate, joined, changed, back)]
    for result in results[1:]:
        # The same numbers; the fused kernel may take another number of them at a time.
        torch.testing.assert_close(result, results[0], rtol=1e-6, atol=1e-7)


def test_norm_and_loss_are_computed_in_float32() -> None:
    """Of rounded inputs: the result is that of float32, rounded once."""
    generator = torch.Generator().manual_seed(0)
    norm = ResidualNorm(Model(d_model=64, P_drop=0.0)).bfloat16()
    x, y = (torch.randn(8, 64, generator=generator).mul(30).bfloat16() for _ in range(2))
    expected = norm.float()((x + y).float(), torch.zeros(8, 64))
    torch.testing.assert_close(norm.bfloat16()(x, y).float(), expected, rtol=2**-8, atol=2**-9)
    model = make_model().bfloat16().train()
    criterion = T2017LabelSmoothing(make_task(40), 0.1, "all", False)
    batch = make_batch([5, 3], [4, 6])
    target = batch.pop("target")
    loss, _, log = criterion(model, {"net_input": {**batch, "src_lengths": None}, "target": target, "ntokens": 10})
    assert loss.dtype == log["nll_loss"].dtype == torch.float32


def test_fp16_without_a_gpu_is_refused_in_a_settings_file(corpus: Corpus, tmp_path: Path) -> None:
    """Under Hydra, where no command line is read: one sentence, and nothing trained."""
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    criterion = T2017LabelSmoothing(make_task(40), 0.1, "all", False)
    with pytest.raises(SystemExit, match="common.fp16=true"):
        criterion.half()
    from tests.commands.test_fairseq_hydra import PLUGIN, SETTINGS

    text = SETTINGS.format(user_dir=PLUGIN, data=corpus.data_bin, save_dir=tmp_path / "out")
    (tmp_path / "tiny.yaml").write_text(text.replace("cpu: true", "cpu: true, fp16: true"))
    outcome = run("fairseq-hydra-train", "--config-dir", ".", "--config-name", "tiny", cwd=tmp_path)
    assert outcome.status == 1
    assert "Traceback (most recent" not in outcome.error and "common.bf16=true" in outcome.error
    assert not list(tmp_path.glob("out/*.pt"))
