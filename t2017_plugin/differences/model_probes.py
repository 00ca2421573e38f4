"""What running code shows of the differences of the model (section 3, and dropout of section 5.4)."""

import torch
import torch.nn.functional as F
from fairseq.modules import MultiheadAttention
from torch import nn

from t2017_plugin.differences.small_models import (
    Measured,
    counted_dropout,
    figure,
    make_ours,
    make_pairs,
    make_stock,
    parameters,
)
from t2017_plugin.paper.model import SinusoidPositions, sinusoid


def norm_order() -> Measured:
    """Zero sub-layers leave the norms alone: two in an encoder layer show post-norm."""
    model = make_ours()
    for name, parameter in model.named_parameters():
        if ".w_o." in name or ".w_2." in name:
            nn.init.zeros_(parameter)
    source, lengths, _ = make_pairs([7])
    x = model.encoder.embed(source)
    for _ in range(2 * len(model.encoder.layers)):
        x = F.layer_norm(x, x.shape[-1:], eps=1e-6)
    error = float((model.encoder(source)["encoder_out"][0] - x).detach().abs().max())
    return (
        "with zero sub-layers an encoder of 2 layers is LayerNorm applied 4 times"
        + (" (to float32 rounding)" if error < 1e-5 else f": NO, off by {figure(error)}"),
        {"max_difference": error},
    )


def norm_epsilon() -> Measured:
    """Normalise a row with a small variance, which shows epsilon."""
    x = torch.tensor([[1e-3, -1e-3, 2e-3, -2e-3]])
    apart = float((F.layer_norm(x, (4,), eps=1e-6) - F.layer_norm(x, (4,), eps=1e-5)).abs().max())
    return (
        f"on an input of 0.001 to 0.002 the two values are {figure(apart)} apart; on inputs near 1, less than 1e-5",
        {"max_difference_small_input": apart},
    )


def dropout_sites() -> Measured:
    """Run both models in training mode and counts where dropout acts."""
    source, lengths, shifted = make_pairs([7, 5])
    counts = {}
    for name, model in (
        ("here", make_ours()),
        ("stock", make_stock()),
        ("attention", make_ours(attention_dropout=0.2)),
    ):
        with counted_dropout(model) as sites:
            model.train()(source, lengths, shifted)
        counts[name] = {str(rate): sites[rate] for rate in sorted(sites)}
    return (
        f"2+2 layers have 2 + 2*2 + 2*3 = 12 sites; probed here: {_sites(counts['here'])}, "
        f"stock: {_sites(counts['stock'])}, "
        f"here with attention dropout 0.2: {_sites(counts['attention'])}",
        counts,
    )


def _sites(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} at {rate}" for rate, count in counts.items())


def biases() -> Measured:
    """Parameters of base with and without biases on the projections of attention."""
    base = {"layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8, "d_k": 64, "d_v": 64}
    with torch.device("meta"):
        without = parameters(make_ours(vocabulary=40960, **base))
        with_biases = parameters(make_ours(vocabulary=40960, attention_bias=True, **base))
    return (
        f"base at V = 40,960: {without:,} parameters without, {with_biases - without:,} more with",
        {"base_without": without, "base_with": with_biases},
    )


def head_sizes() -> Measured:
    """Asks both kinds of attention for d_k other than d_model / h."""
    try:
        MultiheadAttention(512, 7)
        refused = "accepted"
    except AssertionError as error:
        refused = str(error)
    with torch.device("meta"):
        row_b = parameters(make_ours(vocabulary=40960, layers=6, d_model=512, d_ff=2048, heads=8, d_k=16, d_v=64))
    return (
        f"row B with d_k = 16 has {row_b:,} parameters (printed: 58M); stock says '{refused}'",
        {"row_b_dk16": row_b, "stock": refused},
    )


def embeddings() -> Measured:
    """Parameters of base with one, two and three tables."""
    base = {"layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8, "d_k": 64, "d_v": 64}
    counts = {}
    for kind in ("shared", "decoder", "separate"):
        with torch.device("meta"):
            counts[kind] = parameters(make_ours(vocabulary=37000, embeddings=kind, **base))
    return (
        "base at V = 37,000: " + ", ".join(f"{kind} {count:,}" for kind, count in counts.items()),
        counts,
    )


def padding() -> Measured:
    """Change the padding symbol's row and the side of padding."""
    model, (source, lengths, shifted) = make_ours(), make_pairs([5, 9])
    vector = float(model.encoder.embedding(torch.tensor([[1]])).detach().abs().max())
    left = torch.stack([row.roll(int(row.eq(1).sum())) for row in source])
    with torch.no_grad():
        moved = float((model(left, lengths, shifted)[0] - model(source, lengths, shifted)[0]).abs().max())
    return (
        f"largest value of its embedding {figure(vector)}; a source padded on the left instead of the right changes "
        f"logits by {_small(moved)}",
        {"largest_value": vector, "left_instead_of_right": moved},
    )


def _small(value: float) -> str:
    return "less than 1e-5" if value < 1e-5 else figure(value)


def layout() -> Measured:
    """Brings both layouts to the same channel order and compares them position by position."""
    d_model = 512
    paper, t2t = sinusoid(1001, d_model), sinusoid(1001, d_model, "t2t")
    halves = torch.cat([paper[:, 0::2], paper[:, 1::2]], dim=1)
    apart = {position: float((halves[position] - t2t[position]).abs().max()) for position in (1, 10, 50, 1000)}
    return (
        "d_model 512, channels brought to one order, largest difference at position "
        + ", ".join(f"{position}: {apart[position]:.3f}" for position in apart),
        {str(position): value for position, value in apart.items()},
    )


def first_position() -> Measured:
    """Look at what each layout puts at the first token."""
    first = {}
    for name in ("paper", "t2t", "stock"):
        first[name] = SinusoidPositions(8, name, padding_index=1)(torch.arange(1), 1)[0].tolist()
    return (
        f"sine of the fastest channel at the first token: {first['paper'][0]:.4f} here, {first['t2t'][0]:.4f} T2T, "
        f"{first['stock'][0]:.4f} stock (sin 2)",
        first,
    )


def longest_sentence() -> Measured:
    """Asks both for the longest sentence."""
    ours, stock = make_ours(), make_stock()
    return (
        f"largest source fairseq may hand to the model: {ours.max_positions()[0]:,} here (a stand-in for no limit), "
        f"{stock.max_positions()[0]:,} stock",
        {"here": ours.max_positions()[0], "stock": stock.max_positions()[0]},
    )


def decoder_start() -> Measured:
    """Give the same weights both first inputs."""
    zeros, eos = make_ours(), make_ours(decoder_start="eos")
    source, lengths, shifted = make_pairs([7])
    with torch.no_grad():
        one, other = (torch.log_softmax(model(source, lengths, shifted)[0], -1) for model in (zeros, eos))
    apart = float((one - other).abs().max())
    return (
        f"same weights, log-probabilities up to {apart:.2f} nats apart: another function, not a detail",
        {"max_difference": apart},
    )


def target_space() -> Measured:
    """Count parameters with and without the vector."""
    more = parameters(make_ours(target_space_embedding=True)) - parameters(make_ours())
    return (
        f"off by default; on, it adds d_model = {more} parameters",
        {"parameters": more},
    )


def initial_weights() -> Measured:
    """Take standard deviations of freshly built models at d_model 512."""
    sizes = {"layers": 1, "d_model": 512, "d_ff": 2048, "heads": 8, "d_k": 64, "d_v": 64}
    ours, alike, stock = make_ours(**sizes), make_ours(init="stock", **sizes), make_stock(**sizes)
    rows = {}
    for name, model in (("here", ours), ("here, --init stock", alike)):
        layer = model.decoder.layers[0]
        rows[name] = (
            layer.self_attention.w_qkv.weight[:512],
            layer.encoder_attention.w_kv.weight[:512],
            layer.feed_forward.w_1.weight,
            layer.feed_forward.w_2.weight,
        )
    layer = stock.decoder.layers[0]
    rows["stock"] = (
        layer.self_attn.q_proj.weight,
        layer.encoder_attn.k_proj.weight,
        layer.fc1.weight,
        layer.fc2.weight,
    )
    deviations = {name: [float(matrix.detach().std()) for matrix in matrices] for name, matrices in rows.items()}
    return (
        "standard deviations of W^Q (self), W^K (cross), W_1, W_2: "
        + "; ".join(f"{name} " + ", ".join(f"{value:.4f}" for value in row) for name, row in deviations.items()),
        deviations,
    )
