"""A stock fairseq transformer and ours with the same weights, and batches for both."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models.transformer import TransformerModel, base_architecture

from t2017_plugin.checkpoints.stock_weights import STOCK_SWITCHES, copy_to_stock
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.fairseq_side.tasks import T2017TranslationConfig, T2017TranslationTask

LAYERS, D_MODEL, D_FF, HEADS = 2, 32, 64, 4


def make_dictionary(types: int = 20) -> Dictionary:
    """fairseq's four special symbols and ``types`` words."""
    dictionary = Dictionary()
    for number in range(types):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def make_task(**settings: Any) -> T2017TranslationTask:
    """Make the translation task on one joined dictionary."""
    dictionary = make_dictionary()
    return T2017TranslationTask(T2017TranslationConfig(**settings), dictionary, dictionary)


def build_ours(task: Any, seed: int = 1, **settings: Any) -> T2017Transformer:
    """Our model, small, under the stock switches unless told otherwise."""
    sizes = {"layers": LAYERS, "d_model": D_MODEL, "d_ff": D_FF, "heads": HEADS, "d_k": 8, "d_v": 8, "dropout": 0.0}
    switches = {**STOCK_SWITCHES, "attention_bias": True, "init": "stock"}
    torch.manual_seed(seed)
    return T2017Transformer.build_model(T2017TransformerConfig(**{**sizes, **switches, **settings}), task)


def build_stock(task: Any, seed: int = 1, **settings: Any) -> TransformerModel:
    """Make the stock model of the same size, with one table used three times unless asked otherwise."""
    args = Namespace(
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_embed_dim=D_MODEL,
        encoder_ffn_embed_dim=D_FF,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        share_all_embeddings=True,
        dropout=0.0,
    )
    for name, value in settings.items():
        setattr(args, name, value)
    base_architecture(args)
    torch.manual_seed(seed)
    return TransformerModel.build_model(args, task)


def scatter_weights(model: Any, seed: int) -> None:
    """Random values for everything that an untrained model has at 0 or 1, so that a swapped bias or norm shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)


@dataclass
class Pair:
    """Ours and stock with the same weights."""

    task: T2017TranslationTask
    ours: T2017Transformer
    stock: TransformerModel


def build_pair(seed: int = 1, embeddings: str = "shared", **settings: Any) -> Pair:
    """Both models in evaluation mode (dropout is 0 anyway); weights go from ours to stock."""
    task = make_task()
    ours = build_ours(task, seed, embeddings=embeddings, **settings)
    scatter_weights(ours, seed)
    stock = build_stock(
        task,
        share_all_embeddings=embeddings == "shared",
        share_decoder_input_output_embed=embeddings != "separate",
    )
    stock.load_state_dict(copy_to_stock(ours), strict=True)
    return Pair(task, ours.eval(), stock.eval())


@cache
def train_pair(seed: int, updates: int = 80) -> Pair:
    """Both with the weights of a model that has half learnt to copy: its hypotheses differ in words and lengths."""
    pair = build_pair(seed)
    pad, eos = pair.task.target_dictionary.pad(), pair.task.target_dictionary.eos()
    optimizer = torch.optim.Adam(pair.ours.parameters(), lr=6e-3, betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(seed)
    sentences, longest = 24, 7
    for _ in range(updates):
        length = torch.randint(1, longest + 1, (sentences, 1), generator=generator)
        place = torch.arange(longest + 1)
        tokens = torch.randint(4, len(pair.task.target_dictionary), (sentences, longest + 1), generator=generator)
        tokens = tokens.masked_fill(place.ge(length), pad).masked_fill(place.eq(length), eos)
        previous = torch.cat([torch.full((sentences, 1), eos), tokens[:, :-1]], dim=1)
        logits = pair.ours(tokens, length.flatten() + 1, previous)[0]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens, ignore_index=pad).backward()
        optimizer.step()
    pair.stock.load_state_dict(copy_to_stock(pair.ours), strict=True)
    return pair


def make_batch(seed: int = 1, left_pad_source: bool = True, lengths: tuple[int, ...] = (5, 9, 2, 7)) -> dict[str, Any]:
    """Make a batch with fairseq's own collater: sources and targets of different lengths, each with EOS."""
    dictionary = make_dictionary()
    generator = torch.Generator().manual_seed(seed)

    def sentence(length: int) -> torch.Tensor:
        words = torch.randint(dictionary.nspecial, len(dictionary), (length,), generator=generator)
        return torch.cat([words, torch.tensor([dictionary.eos()])])

    sources = [sentence(length) for length in lengths]
    targets = [sentence(max(1, length - 2 + number % 4)) for number, length in enumerate(lengths)]
    data = LanguagePairDataset(
        sources, [len(s) for s in sources], dictionary, targets, [len(t) for t in targets], dictionary,
        left_pad_source=left_pad_source, left_pad_target=False,
    )  # fmt: skip
    return data.collater([data[i] for i in range(len(data))])


@pytest.fixture(scope="session")
def make_pair() -> Callable[..., Pair]:
    """``make_pair(seed, embeddings)``: see ``build_pair``."""
    return build_pair


@pytest.fixture(scope="session")
def trained_pair() -> Callable[..., Pair]:
    """``trained_pair(seed)``: see ``train_pair``; made once for each seed."""
    return train_pair


@pytest.fixture(scope="session")
def batch_of() -> Callable[..., dict[str, Any]]:
    """``batch_of(seed, left_pad_source, lengths)``: see ``make_batch``."""
    return make_batch


@pytest.fixture(scope="session")
def build() -> Namespace:
    """Single models: ``build.ours(task, seed, ...)``, ``build.stock(task, seed, ...)``, ``build.task(...)``."""
    return Namespace(ours=build_ours, stock=build_stock, task=make_task)
