"""Positional encoding (section 3.5) against the formula, by hand."""

import math

import pytest
import torch

from t2017_plugin.errors import UsageError
from t2017_plugin.paper.model import LearnedPositions, SinusoidPositions, positions_of, sinusoid
from tests.builders import make_batch, make_model

pytestmark = pytest.mark.unit
# A float32 rounding of a value below 1.
ROUNDING = 1e-7


@pytest.mark.parametrize("d_model", [2, 16, 512])
@pytest.mark.parametrize("position", [0, 1, 7, 300, 5000])
def test_paper_formula(d_model: int, position: int) -> None:
    row = sinusoid(position + 1, d_model)[position]
    for i in {0, d_model // 4, d_model // 2 - 1}:
        angle = position / 10000 ** (2 * i / d_model)
        assert float(row[2 * i]) == pytest.approx(math.sin(angle), abs=ROUNDING)
        assert float(row[2 * i + 1]) == pytest.approx(math.cos(angle), abs=ROUNDING)


def test_first_position_is_zero() -> None:
    assert sinusoid(1, 8).tolist() == [[0.0, 1.0] * 4]


def test_wavelengths_of_the_paper() -> None:
    """A geometric progression from 2 pi towards 10000 * 2 pi: after one wavelength each pair comes back."""
    d_model = 8
    for i in range(d_model // 2):
        wavelength = 2 * math.pi * 10000 ** (2 * i / d_model)
        for channel, value in ((2 * i, 0.0), (2 * i + 1, 1.0)):
            # The nearest whole position is off by at most half a position.
            slope = 2 * math.pi / wavelength
            row = sinusoid(round(wavelength) + 1, d_model)[round(wavelength)]
            assert float(row[channel]) == pytest.approx(value, abs=0.5 * slope + ROUNDING)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_offset_is_a_linear_map(k: int) -> None:
    """PE(pos + k) is a linear function of PE(pos), the reason given in section 3.5: one rotation a pair of channels."""
    d_model, length = 16, 60
    table = sinusoid(length + k, d_model).double()
    rotation = torch.zeros(d_model, d_model, dtype=torch.double)
    for i in range(d_model // 2):
        angle = k / 10000 ** (2 * i / d_model)
        rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
    torch.testing.assert_close(table[:length] @ rotation.T, table[k : length + k], atol=3e-7, rtol=0)


def test_t2t_layout() -> None:
    """Halves, exponent i / (d / 2 - 1), from 0."""
    row = sinusoid(8, 6, "t2t")[7]
    expected = [math.sin(7 * 10000 ** (-i / 2)) for i in range(3)] + [math.cos(7 * 10000 ** (-i / 2)) for i in range(3)]
    assert row.tolist() == pytest.approx(expected, abs=ROUNDING)


def test_stock_starts_at_padding_plus_one() -> None:
    positions = torch.arange(5)
    stock = SinusoidPositions(8, "stock", padding_index=1)(positions, 5)
    torch.testing.assert_close(stock, sinusoid(7, 8, "t2t")[2:], atol=0, rtol=0)


def test_odd_width() -> None:
    assert sinusoid(4, 5).shape == (4, 5)
    assert float(sinusoid(4, 5)[3, 4]) == pytest.approx(math.sin(3 / 10000 ** (4 / 5)), abs=ROUNDING)
    assert sinusoid(4, 5, "t2t")[:, 4].tolist() == [0.0] * 4


def test_table_grows_for_any_length() -> None:
    positions = SinusoidPositions(4, "paper", padding_index=1)
    long = positions(torch.arange(3000), 3000)
    torch.testing.assert_close(long, sinusoid(3000, 4), atol=0, rtol=0)
    assert "table" not in positions.state_dict()


def test_positions_count_real_tokens_on_either_side_of_padding() -> None:
    tokens = torch.tensor([[5, 6, 2, 1, 1], [1, 1, 5, 6, 2]])
    assert positions_of(tokens, 1)[0, :3].tolist() == [0, 1, 2]
    assert positions_of(tokens, 1)[1, 2:].tolist() == [0, 1, 2]


def test_learned_positions_end_with_one_clear_line() -> None:
    learned = LearnedPositions(8, 10)
    assert learned(torch.arange(10), 10).shape == (10, 8)
    with pytest.raises(ValueError, match="11 tokens.*end at 10"):
        learned(torch.arange(11), 11)
    model, batch = make_model(positions="learned", max_learned_positions=10), make_batch([11], [4])
    with pytest.raises(UsageError, match="11 tokens.*end at 10.*--max-learned-positions"):
        model(batch["src_tokens"], None, batch["prev_output_tokens"])


@pytest.mark.parametrize("layout", ["paper", "t2t", "stock"])
def test_model_beyond_the_first_table(layout: str) -> None:
    """A sentence longer than any before it runs, and a short one afterwards is computed as before."""
    model = make_model(sinusoid=layout)
    short, long = make_batch([5], [4]), make_batch([900], [4])
    before, _ = model(short["src_tokens"], None, short["prev_output_tokens"])
    assert model(long["src_tokens"], None, long["prev_output_tokens"])[0].isfinite().all()
    after, _ = model(short["src_tokens"], None, short["prev_output_tokens"])
    torch.testing.assert_close(after, before, atol=0, rtol=0)
