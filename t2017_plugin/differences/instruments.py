"""Small models of both kinds, and probes that watch them run."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor

from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.fast import dropout

SMALL = {"layers": 2, "d_model": 64, "d_ff": 128, "heads": 4, "d_k": 16, "d_v": 16}
VOCABULARY = 48


def make_task(vocabulary: int = VOCABULARY) -> Any:
    """As much of a task as either model is built from, with one dictionary."""
    dictionary = Dictionary()
    for i in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, cfg=SimpleNamespace())


def make_ours(seed: int = 1, vocabulary: int = VOCABULARY, **settings: Any) -> T2017Transformer:
    """Our model, small unless told otherwise, in evaluation mode."""
    torch.manual_seed(seed)
    config = T2017TransformerConfig(**{**SMALL, **settings})
    return T2017Transformer.build_model(config, make_task(vocabulary)).eval()


def make_stock(seed: int = 1, vocabulary: int = VOCABULARY, **settings: Any) -> Any:
    """fairseq's ``transformer`` of the same size with one shared table, in evaluation mode."""
    from fairseq.models.transformer import TransformerModel, base_architecture

    sizes = {**SMALL, **settings}
    args = Namespace(share_all_embeddings=True, dropout=sizes.get("dropout", 0.1))
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_layers", sizes["layers"])
        setattr(args, f"{side}_embed_dim", sizes["d_model"])
        setattr(args, f"{side}_ffn_embed_dim", sizes["d_ff"])
        setattr(args, f"{side}_attention_heads", sizes["heads"])
    base_architecture(args)
    torch.manual_seed(seed)
    return TransformerModel.build_model(args, make_task(vocabulary)).eval()


def make_pairs(lengths: list[int], vocabulary: int = VOCABULARY, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, their lengths and shifted targets of random tokens, padded on the right; lengths count EOS.

    Shape:
        -> (B, S), (B,), (B, 6)
    """
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(lengths), max(lengths)), 1)
    for row, length in zip(source, lengths, strict=True):
        row[: length - 1] = torch.randint(4, vocabulary, (length - 1,), generator=generator)
        row[length - 1] = 2
    shifted = torch.randint(4, vocabulary, (len(lengths), 6), generator=generator)
    shifted[:, 0] = 2
    return source, torch.tensor(lengths), shifted


def parameters(model: torch.nn.Module) -> int:
    """Trainable parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


@contextmanager
def counted_dropout() -> Iterator[Counter[float]]:
    """Counts every place where dropout acts while the block runs, by its rate; attention's own included."""
    sites: Counter[float] = Counter()
    attend = F.scaled_dot_product_attention

    def drop(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if training and p > 0:
            sites[p] += 1
        return x

    def attend_and_count(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        if dropout_p > 0:
            sites[dropout_p] += 1
        return attend(query, key, value, attn_mask, 0.0, is_causal, **options)

    with (
        mock.patch.object(F, "dropout", drop),
        mock.patch.object(dropout, "dropout", drop),
        mock.patch.object(F, "scaled_dot_product_attention", attend_and_count),
    ):
        yield sites
