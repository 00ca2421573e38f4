"""Small dictionaries, models and batches for the tests."""

from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig

TINY: dict[str, Any] = {"layers": 2, "d_model": 32, "d_ff": 48, "heads": 4, "d_k": 8, "d_v": 8, "dropout": 0.0}
PAD, EOS = 1, 2


def make_dictionary(size: int) -> Dictionary:
    """Make a dictionary of ``size`` types, fairseq's four specials among them."""
    dictionary = Dictionary()
    for i in range(size - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    return dictionary


def make_task(source_size: int, target_size: int | None = None) -> Any:
    """As much of a task as a model is built from; one dictionary if only one size is given."""
    source = make_dictionary(source_size)
    target = source if target_size is None else make_dictionary(target_size)
    return SimpleNamespace(source_dictionary=source, target_dictionary=target, cfg=SimpleNamespace())


def make_model(vocabulary: int = 40, seed: int = 0, **settings: Any) -> T2017Transformer:
    """Make a small model in evaluation mode, through the registered class."""
    torch.manual_seed(seed)
    config = T2017TransformerConfig(**{**TINY, **settings})
    return T2017Transformer.build_model(config, make_task(vocabulary)).eval()


def make_batch(lengths: list[int], target_lengths: list[int], vocabulary: int = 40, seed: int = 0) -> dict[str, Tensor]:
    """Right-padded sources, shifted targets and targets, all ending in EOS.

    Shape:
        src_tokens: (B, max of lengths); prev_output_tokens, target: (B, max of target_lengths)
    """
    generator = torch.Generator().manual_seed(seed)

    def rows(sizes: list[int]) -> Tensor:
        tokens = torch.full((len(sizes), max(sizes)), PAD)
        for row, size in zip(tokens, sizes, strict=True):
            row[:size] = torch.randint(4, vocabulary, (size,), generator=generator)
            row[size - 1] = EOS
        return tokens

    source, target = rows(lengths), rows(target_lengths)
    shifted = torch.cat([torch.full((len(target), 1), EOS), target[:, :-1]], dim=1)
    shifted = shifted.masked_fill(target.eq(PAD), PAD)
    return {"src_tokens": source, "prev_output_tokens": shifted, "target": target}
