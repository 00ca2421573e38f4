"""Every number of the paper that a program needs, in the paper's symbols (Table 3, sections 5, 6.1).

The defaults are the base model, trained and searched as the paper says. What the paper leaves open
is a named choice below, and the default is what the authors' program did.
"""

from __future__ import annotations

from dataclasses import dataclass

POSITIONS = ("sinusoid", "learned")
SINUSOIDS = ("paper", "t2t", "stock")
EMBEDDINGS = ("shared", "decoder", "separate")
DECODER_STARTS = ("zeros", "eos")
INITIAL_WEIGHTS = ("t2t", "stock")
SMOOTHING_OVER = ("all", "others")
EPSILON_FORMS = ("paper", "t2t")
LENGTH_PENALTIES = ("gnmt", "power")


@dataclass(frozen=True)
class Model:
    """Sizes and dropout of section 3 and Table 3, then the choices the paper leaves open.

    Raises:
        ValueError: a size is below 1, a rate is not in [0, 1), or a choice is not one of those there are.
    """

    N: int = 6  # layers in each of encoder and decoder
    d_model: int = 512  # width of embeddings and of what every sub-layer returns
    d_ff: int = 2048  # inner width of the feed-forward networks
    h: int = 8  # attention heads
    d_k: int = 64  # width of a query and of a key in one head
    d_v: int = 64  # width of a value in one head
    P_drop: float = 0.1  # on what sub-layers return and on embedding + position (5.4)

    # Section 6.3 has dropout on "attention and residual" for parsing; elsewhere there is none.
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    # Row (E) of Table 3 learns the positions; a learned table has an end.
    positions: str = "sinusoid"
    max_learned_positions: int = 1024
    # Where the authors' program (t2t) and stock fairseq differ from the paper; see docs/differences.md.
    sinusoid: str = "paper"
    embeddings: str = "shared"
    attention_bias: bool = False
    # Not in the paper. "Shifted right": a zero vector comes first. Epsilon stands inside the root.
    decoder_start: str = "zeros"
    layer_norm_eps: float = 1e-6
    initial_weights: str = "t2t"
    # Tensor2Tensor 1.0 adds one learned vector to every source position.
    target_space_embedding: bool = False

    def __post_init__(self) -> None:
        for name in ("N", "d_model", "d_ff", "h", "d_k", "d_v", "max_learned_positions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("P_drop", "attention_dropout", "relu_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be in [0, 1)")
        choices = {
            "positions": POSITIONS,
            "sinusoid": SINUSOIDS,
            "embeddings": EMBEDDINGS,
            "decoder_start": DECODER_STARTS,
            "initial_weights": INITIAL_WEIGHTS,
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}: choose one of {', '.join(known)}")


@dataclass(frozen=True)
class Training:
    """Section 5: what an update takes in, and how it changes the weights."""

    tokens: int = 25_000  # source tokens of an update, and as many target tokens, over all GPUs (5.1)
    gpus: int = 8  # (5.2)
    train_steps: int = 100_000  # updates; 300,000 for the big model (5.2)
    warmup_steps: int = 4_000  # updates (5.3)
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    eps_ls: float = 0.1  # label smoothing (5.4)
    # "all" spreads it over all K classes, as the work that the paper cites; "others" leaves the label out.
    smoothing_over: str = "all"
    # Where Adam adds epsilon: after the bias correction (Kingma and Ba), or before it (TensorFlow).
    epsilon_form: str = "paper"


@dataclass(frozen=True)
class Search:
    """Section 6.1 for translation; section 6.3 has beam 21, alpha 0.3 and 300 more tokens for parsing."""

    beam: int = 4
    alpha: float = 0.6
    extra: int = 50  # most tokens of a translation: those of the source + this, both with EOS
    length_penalty: str = "gnmt"


TRANSLATION_SEARCH = Search()
PARSING_SEARCH = Search(beam=21, alpha=0.3, extra=300)

# Section 6.1: how many of the last checkpoints are averaged, for the base and for the big model.
AVERAGED, AVERAGED_BIG = 5, 20
