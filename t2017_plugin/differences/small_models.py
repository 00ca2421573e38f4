"""Small models of both kinds, and a counter that watches them run."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.fast.layers import Dropout

# What a probe returns: what was measured, in one sentence, and the figures behind it.
Measured = tuple[str, dict[str, Any]]

SMALL = {"layers": 2, "d_model": 64, "d_ff": 128, "heads": 4, "d_k": 16, "d_v": 16}
VOCABULARY = 48


def make_task(vocabulary: int = VOCABULARY) -> Any:
    """Make as much of a task as either model is built from, with one dictionary."""
    dictionary = Dictionary()
    for i in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, cfg=SimpleNamespace())


def make_ours(seed: int = 1, vocabulary: int = VOCABULARY, **settings: Any) -> T2017Transformer:
    """Make our model, small unless told otherwise, in evaluation mode."""
    torch.manual_seed(seed)
    config = T2017TransformerConfig(**{**SMALL, **settings})
    return T2017Transformer.build_model(config, make_task(vocabulary)).eval()


def make_stock(seed: int = 1, vocabulary: int = VOCABULARY, **settings: Any) -> Any:
    """Make fairseq's ``transformer`` of the same size with one shared table, in evaluation mode."""
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
    """Make sources, their lengths and shifted targets of random tokens, padded on the right; lengths count EOS.

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
    """Count trainable parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


class _Dropped(TorchFunctionMode):
    """Sees every call of torch's dropout, attention's own included, and counts it by its rate."""

    def __init__(self, sites: Counter[float]) -> None:
        super().__init__()
        self.sites = sites

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func is F.dropout and options.get("training", True):
            self.sites[options.get("p", args[1] if len(args) > 1 else 0.5)] += 1
        if func is F.scaled_dot_product_attention:
            self.sites[options.get("dropout_p", 0.0)] += 1
        return func(*args, **options)


@contextmanager
def counted_dropout(model: nn.Module) -> Iterator[Counter[float]]:
    """Count every place where dropout acts in a model while the block runs, by its rate."""
    sites: Counter[float] = Counter()

    def count(site: nn.Module, inputs: Any, output: Any) -> None:
        # Ours is a function of its own, which torch's mode does not see; with another type it calls torch's.
        if isinstance(site, Dropout) and site.training and inputs[0].dtype == torch.float32:
            sites[site.p] += 1

    hooks = [site.register_forward_hook(count) for site in model.modules() if isinstance(site, Dropout)]
    try:
        with _Dropped(sites):
            yield sites
    finally:
        for hook in hooks:
            hook.remove()
        del sites[0.0]


def figure(value: float) -> str:
    """Write four significant digits, short."""
    return f"{value:.4g}"
