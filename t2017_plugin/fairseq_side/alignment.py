"""Word alignments for ``--print-alignment``, from the attention over the encoder's output.

The last layer's weights, averaged over heads and models, are computed once more for the hypotheses that came out of the
search, with the whole target at hand; the search itself then need not carry any weights.
"""

from collections.abc import Sequence
from typing import Any

import torch
from fairseq import utils
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.modules.decoder import Decoder


def add_alignments(
    models: Sequence[Any], sample: dict[str, Any], results: list[list[dict[str, Any]]], pad: int, eos: int, how: str
) -> None:
    """Fills ``attention`` (S, T) and ``alignment`` (``how`` is hard or soft) of every hypothesis.

    Raises:
        UsageError: a model cannot give its weights.
    """
    if not all(isinstance(model.decoder, Decoder) for model in models):
        raise UsageError("--print-alignment with the paper's search needs t2017_transformer: use --search stock")
    source = sample["net_input"]["src_tokens"]
    extract = utils.extract_hard_alignment if how == "hard" else utils.extract_soft_alignment
    for sentence, hypotheses in enumerate(results):
        tokens = source[sentence].unsqueeze(0)
        for hypothesis in hypotheses:
            weights = _weights(models, tokens, hypothesis["tokens"], eos)
            hypothesis["attention"] = weights.transpose(0, 1)
            target = hypothesis["tokens"].cpu()
            hypothesis["alignment"] = extract(weights.clone().cpu(), tokens[0].cpu(), target, pad, eos)


def _weights(models: Sequence[Any], source: Tensor, target: Tensor, eos: int) -> Tensor:
    """Shape: source: (1, S); target: (T,) -> (T, S)."""
    shifted = torch.cat([target.new_tensor([eos]), target[:-1]]).unsqueeze(0)
    each = []
    for model in models:
        _, extra = model.decoder(shifted, encoder_out=model.encoder(source), need_weights=True)
        each.append(extra["attn"][0][0].float())
    return torch.stack(each).mean(dim=0)
