"""Settings of the model, flat, with the paper's base model as default (Table 3, first row).

The dataclass is flat on purpose: fairseq's command line ignores the fields of a nested one without a word.
"""

from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass


@dataclass
class T2017TransformerConfig(FairseqDataclass):
    """Sizes (section 3), dropout (section 5.4) and the named differences from the paper."""

    layers: int = field(default=6, metadata={"help": "N: layers in each of encoder and decoder (section 3.1)"})
    d_model: int = field(default=512, metadata={"help": "d_model: width of embeddings and sub-layer outputs"})
    d_ff: int = field(default=2048, metadata={"help": "d_ff: inner width of the feed-forward network (section 3.3)"})
    heads: int = field(default=8, metadata={"help": "h: number of attention heads (section 3.2.2)"})
    d_k: int = field(default=64, metadata={"help": "d_k: width of a head's queries and keys, free of d_model and h"})
    d_v: int = field(default=64, metadata={"help": "d_v: width of a head's values, free of d_model and h"})
    dropout: float = field(
        default=0.1,
        metadata={"help": "P_drop: on sub-layer outputs and on the sums of embedding and position (section 5.4)"},
    )
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout on attention weights; the paper has it for parsing only (section 6.3)"}
    )
    relu_dropout: float = field(default=0.0, metadata={"help": "dropout after the ReLU; 0 throughout the paper"})
    positions: ChoiceEnum(["sinusoid", "learned"]) = field(  # type: ignore[valid-type]
        default="sinusoid", metadata={"help": "positional encoding (section 3.5); learned is row (E) of Table 3"}
    )
    max_learned_positions: int = field(
        default=1024, metadata={"help": "tokens a sentence may have with --positions learned; sinusoids have no limit"}
    )
    sinusoid: ChoiceEnum(["paper", "t2t", "stock"]) = field(  # type: ignore[valid-type]
        default="paper",
        metadata={"help": "layout, exponent and first position of the sinusoids: the paper's, T2T's or stock's"},
    )
    embeddings: ChoiceEnum(["shared", "decoder", "separate"]) = field(  # type: ignore[valid-type]
        default="shared",
        metadata={"help": "shared: one table three times (section 3.4); decoder: the target's twice; separate: three"},
    )
    attention_bias: bool = field(
        default=False, metadata={"help": "biases on the projections of attention; T2T until v1.3 and stock have them"}
    )
    decoder_start: ChoiceEnum(["zeros", "eos"]) = field(  # type: ignore[valid-type]
        default="zeros",
        metadata={"help": "first input of the decoder: a zero vector as in the authors' code, or EOS as in stock"},
    )
    layer_norm_eps: float = field(
        default=1e-6, metadata={"help": "epsilon of layer normalisation; 1e-6 is the authors', 1e-5 stock's"}
    )
    init: ChoiceEnum(["t2t", "stock"]) = field(  # type: ignore[valid-type]
        default="t2t", metadata={"help": "initial weights: the authors' or stock fairseq's"}
    )
    target_space_embedding: bool = field(
        default=False, metadata={"help": "one learned vector added to every source position, as in T2T 1.0"}
    )
