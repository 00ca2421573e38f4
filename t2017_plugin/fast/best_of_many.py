"""The best few of very many: the search takes 2 * beam of a whole vocabulary for every hypothesis."""

import torch
from torch import Tensor

BLOCK = 64
# Below so many scores, topk as it is takes less time than what is done here.
MANY = 50_000


def best_of_many(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """``topk`` over the last axis, several times faster on a CPU when that axis is long.

    torch sorts copies of whole rows there. The best ``count`` values stand in the ``count`` blocks with the largest
    maxima, and maxima of blocks are cheap; only those blocks are then sorted.

    Shape:
        scores: (..., V) -> values and indices (..., min(count, V))
    """
    width = scores.size(-1)
    count = min(count, width)
    blocks = width // BLOCK
    if scores.device.type != "cpu" or blocks < 4 * count or scores.numel() < MANY:
        return scores.topk(count)
    rows = scores.reshape(-1, width)
    whole = rows[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))
    chosen = whole.amax(dim=2).topk(count).indices
    candidates = whole.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)
    places = (chosen.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    rest = rows[:, blocks * BLOCK :]
    if rest.size(1):
        candidates = torch.cat([candidates, rest], dim=1)
        tail = torch.arange(blocks * BLOCK, width, device=scores.device).expand(len(rows), -1)
        places = torch.cat([places, tail], dim=1)
    values, index = candidates.topk(count)
    shape = (*scores.shape[:-1], count)
    return values.view(shape), places.gather(1, index).view(shape)
