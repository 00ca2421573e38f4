"""Table 1's layers are what they say, and the measured longest paths are the paper's orders."""

import math
from pathlib import Path

import pytest
import torch

from benchmarks.complexity import KINDS, Convolution, Recurrent, attention, longest_path, main, restricted_attention

pytestmark = pytest.mark.unit


def test_a_window_over_everything_is_attention() -> None:
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    torch.testing.assert_close(restricted_attention(x, 14), attention(x))


def test_a_window_sees_its_neighbours_only() -> None:
    """By hand: position 3 of a window of 3 sees positions 2 to 4."""
    x = torch.randn(1, 6, 4, dtype=torch.float64)
    scores = x[0, 2:5] @ x[0, 3] / 2
    torch.testing.assert_close(restricted_attention(x, 3)[0, 3], torch.softmax(scores, 0) @ x[0, 2:5])


def test_shapes_and_steps() -> None:
    x = torch.randn(2, 9, 8)
    recurrent = Recurrent(8)
    assert recurrent(x).shape == Convolution(8, 3)(x).shape == x.shape
    assert recurrent.steps == 9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [20, 40])
def test_longest_paths(kind: str, n: int) -> None:
    expected = {"self-attention": 1, "recurrent": n, "convolutional": math.ceil(math.log(n, 3))}
    assert longest_path(kind, n) == expected.get(kind, math.ceil((n - 1) / 16))


def test_the_program_draws_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    sizes = ("--lengths", "8", "16", "--widths", "4", "8", "--calls", "2", "--threads", str(threads))
    assert main([*sizes, "--plot", str(tmp_path / "a.png"), "--output", str(tmp_path / "a.json")]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "a.json").stat().st_size
    assert capsys.readouterr().out.count("| O(") == 4
