"""The model's settings as flags of fairseq, and as the paper's symbols.

The dataclass is flat on purpose: fairseq's command line ignores the fields of a nested one without a
word. Its defaults are those of ``paper.config``, where every number stands once.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from t2017_plugin.errors import UsageError
from t2017_plugin.paper.config import (
    DECODER_STARTS,
    EMBEDDINGS,
    INITIAL_WEIGHTS,
    PARSING_SEARCH,
    POSITIONS,
    SINUSOIDS,
    TRANSLATION_SEARCH,
    Model,
    Search,
)

# What is called otherwise as a flag than in the paper.
SETTING_OF = {"N": "layers", "h": "heads", "P_drop": "dropout", "initial_weights": "init"}


@dataclass
class T2017TransformerConfig(FairseqDataclass):
    """Sizes (section 3), dropout (section 5.4) and the named differences from the paper."""

    layers: int = field(default=Model.N, metadata={"help": "N: layers in each of encoder and decoder (section 3.1)"})
    d_model: int = field(default=Model.d_model, metadata={"help": "d_model: width of embeddings and sub-layer outputs"})
    d_ff: int = field(
        default=Model.d_ff, metadata={"help": "d_ff: inner width of the feed-forward network (section 3.3)"}
    )
    heads: int = field(default=Model.h, metadata={"help": "h: number of attention heads (section 3.2.2)"})
    d_k: int = field(
        default=Model.d_k, metadata={"help": "d_k: width of a head's queries and keys, free of d_model and h"}
    )
    d_v: int = field(default=Model.d_v, metadata={"help": "d_v: width of a head's values, free of d_model and h"})
    dropout: float = field(
        default=Model.P_drop,
        metadata={"help": "P_drop: on sub-layer outputs and on the sums of embedding and position (section 5.4)"},
    )
    attention_dropout: float = field(
        default=Model.attention_dropout,
        metadata={"help": "dropout on attention weights; the paper has it for parsing only (section 6.3)"},
    )
    relu_dropout: float = field(
        default=Model.relu_dropout, metadata={"help": "dropout after the ReLU; 0 throughout the paper"}
    )
    positions: ChoiceEnum(list(POSITIONS)) = field(  # type: ignore[valid-type]
        default=Model.positions, metadata={"help": "positional encoding (section 3.5); learned is row (E) of Table 3"}
    )
    max_learned_positions: int = field(
        default=Model.max_learned_positions,
        metadata={"help": "tokens a sentence may have with --positions learned; sinusoids have no limit"},
    )
    sinusoid: ChoiceEnum(list(SINUSOIDS)) = field(  # type: ignore[valid-type]
        default=Model.sinusoid,
        metadata={"help": "layout, exponent and first position of the sinusoids: the paper's, T2T's or stock's"},
    )
    embeddings: ChoiceEnum(list(EMBEDDINGS)) = field(  # type: ignore[valid-type]
        default=Model.embeddings,
        metadata={"help": "shared: one table three times (section 3.4); decoder: the target's twice; separate: three"},
    )
    attention_bias: bool = field(
        default=Model.attention_bias,
        metadata={"help": "biases on the projections of attention; T2T until v1.3 and stock have them"},
    )
    decoder_start: ChoiceEnum(list(DECODER_STARTS)) = field(  # type: ignore[valid-type]
        default=Model.decoder_start,
        metadata={"help": "first input of the decoder: a zero vector as in the authors' code, or EOS as in stock"},
    )
    layer_norm_eps: float = field(
        default=Model.layer_norm_eps,
        metadata={"help": "epsilon of layer normalisation; 1e-6 is the authors', 1e-5 stock's"},
    )
    init: ChoiceEnum(list(INITIAL_WEIGHTS)) = field(  # type: ignore[valid-type]
        default=Model.initial_weights, metadata={"help": "initial weights: the authors' or stock fairseq's"}
    )
    target_space_embedding: bool = field(
        default=Model.target_space_embedding,
        metadata={"help": "one learned vector added to every source position, as in T2T 1.0"},
    )


def paper_model(config: Any) -> Model:
    """Turn fairseq's settings, a dataclass or a Namespace, into the paper's.

    Raises:
        UsageError: a size cannot be built or a rate is out of range; the flag is named.
    """
    values: dict[str, Any] = {}
    for each in fields(Model):
        value = getattr(config, SETTING_OF.get(each.name, each.name), each.default)
        values[each.name] = str(value) if isinstance(each.default, str) else value
    try:
        return Model(**values)
    except ValueError as error:
        symbol, _, rest = str(error).partition(" ")
        raise UsageError(f"--{SETTING_OF.get(symbol, symbol).replace('_', '-')} {rest}") from error


def flag_settings(changes: dict[str, Any]) -> dict[str, Any]:
    """Give settings in the paper's symbols, as in Table 3, the names that fairseq's flags have."""
    return {SETTING_OF.get(name, name): value for name, value in changes.items()}


def generation_defaults(search: Search) -> dict[str, Any]:
    """Give a search as fairseq's generation settings; -1 is the search's own minimum length, which is none."""
    return {"beam": search.beam, "lenpen": search.alpha, "min_len": -1}


TRANSLATION_GENERATION = generation_defaults(TRANSLATION_SEARCH)
PARSING_GENERATION = generation_defaults(PARSING_SEARCH)
