"""Our search on the recorded models, in the shape of T2T's n-best lists."""

import re
from argparse import Namespace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from t2017_plugin.fairseq_side.generator import Ensemble, PaperGenerator
from tests.parity.t2t_golden import load
from tests.parity.t2t_model import Ours

LIST = re.compile(r"beam(\d+)_alpha([\d.]+)_extra(\d+)(?:_single/(\d+))?/ids")


@cache
def model_of(file: str) -> Ours:
    """Load the recorded model, in evaluation mode."""
    ours = Ours(file)
    ours.model.eval()
    return ours


def generator(ours: Ours, beam: int, alpha: float, extra: int, nbest: int, allow_padding: bool) -> PaperGenerator:
    """Make the plugin's generator; in ``base_nobias``, where nothing finishes, with T2T's limit for the whole batch."""
    args = Namespace(beam=beam, lenpen=alpha, nbest=nbest, min_len=-1)
    if ours.file == "base_nobias":
        args.max_len_a, args.max_len_b = 0, ours.source().size(1) + extra - 1
    return PaperGenerator(
        [ours.model], ours.task.target_dictionary, args, extra_length=extra, allow_all_tokens=allow_padding
    )


@cache
def hypotheses(file: str, key: str, nbest: int | None = None, allow_padding: bool = True) -> list[list[dict[str, Any]]]:
    """Our n-best lists for the sentences behind one of T2T's; as long as the beam, as T2T's are, unless told otherwise.

    T2T may generate padding. In ``base_nobias`` it does; elsewhere padding still takes a place among the 2 * beam
    candidates, and with beam 21 and 44 types EOS may then have none.
    """
    found = LIST.fullmatch(key)
    assert found, key
    ours = model_of(file)
    tokens = ours.source()
    if found[4] is not None:
        row = tokens[int(found[4])]
        tokens = row[row.ne(0)].unsqueeze(0)
    beam = int(found[1])
    search = generator(ours, beam, float(found[2]), int(found[3]), nbest or beam, allow_padding)
    return search.generate([ours.model], {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(0).sum(1)}})


def as_recorded(file: str, key: str) -> dict[str, np.ndarray]:
    """Our lists in T2T's layout: an initial 0, tokens, zeros; and the best hypothesis without EOS."""
    lists = hypotheses(file, key)
    sentences, beam, width = load(file)[key].shape
    ids, scores = np.zeros((sentences, beam, width), int), np.full((sentences, beam), -np.inf)
    best = []
    for i, found in enumerate(lists):
        for j, hypothesis in enumerate(found):
            tokens = hypothesis["tokens"].tolist()
            ids[i, j, 1 : 1 + len(tokens)] = tokens
            scores[i, j] = float(hypothesis["score"])
        tokens = found[0]["tokens"].tolist()
        best.append(tokens[:-1] if tokens[-1] == 1 else tokens)
    prefix = key.removesuffix("ids")
    best_ids = np.zeros((sentences, max(map(len, best), default=0)), int)
    for row, tokens in zip(best_ids, best, strict=True):
        row[: len(tokens)] = tokens
    return {
        key: ids,
        f"{prefix}scores": scores,
        f"{prefix}best_ids": best_ids,
        f"{prefix}best_len": np.array([len(tokens) for tokens in best]),
    }


@torch.no_grad()
def greedy(file: str) -> np.ndarray:
    """Take the most probable token at every step, with the decoder's cache, on and on after EOS as T2T does."""
    ours, steps = model_of(file), load(file)["greedy/ids"].shape[1]
    search = Ensemble([ours.model])
    search.start({"src_tokens": ours.source(), "src_lengths": ours.source().ne(0).sum(1)}, 1)
    tokens: Tensor = torch.full((len(ours.source()), 1), ours.task.target_dictionary.eos())
    for _ in range(steps):
        log_p = search.log_p(tokens[:, -1:])
        tokens = torch.cat([tokens, log_p[:, 0].argmax(-1, keepdim=True)], dim=1)
    return tokens[:, 1:].numpy()


@cache
def reproduce(file: str) -> dict[str, np.ndarray]:
    """All n-best lists and greedy outputs of a file."""
    result: dict[str, np.ndarray] = {}
    for key in load(file):
        if LIST.fullmatch(key):
            result |= as_recorded(file, key)
        elif key == "greedy/ids":
            result[key] = greedy(file)
    return result
