"""Which tokens are looked at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.analysis._layer_weights import Matrix, Patterns, Recorded, by_head, heads_in, matrices, texts
from regard.analysis._query_positions import places
from regard.analysis._table import Table
from regard.errors import ChoiceError

PER = ("recording", "layer", "head")


class ReceiverRow(NamedTuple):
    """One token, as one head, one layer or the whole recording sees it."""

    layer: str  # "" for all
    head: int  # -1 for all
    position: int
    token: str  # its text, or its id where no text is known
    share: float  # of all attention: what it gets from a query, on average


@dataclass(frozen=True)
class ReceiverTable(Table[ReceiverRow]):
    """The tokens that receive most, largest shares first within each head, layer or recording."""

    rows: tuple[ReceiverRow, ...]

    columns = ReceiverRow._fields

    def __str__(self) -> str:
        wide, width = (max([len(name), *map(len, self.column(name))]) for name in ("layer", "token"))
        head = f"{'layer':<{wide}}{'head':>6}{'position':>10}  {'token':<{width}}{'share':>10}"
        lines = (
            f"{row.layer or 'all':<{wide}}{row.head if row.head >= 0 else 'all':>6}{row.position:>10}  "
            f"{row.token:<{width}}{row.share:>10.4f}"
            for row in self.rows
        )
        return "\n".join([head, *lines])


def receivers(
    recording: Recorded,
    most: int = 10,
    *,
    per: str = "recording",
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
) -> ReceiverTable:
    """The tokens that get the largest share of attention, sum_i p_ij / queries, in one sequence of the batch.

    per: "recording" (mean over all heads of all layers), "layer" (mean over its heads) or "head". Cross attention looks
    at other tokens than self attention: choose by `layers` where a recording has both.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> len(rg.analysis.receivers(recording, 2, per="head"))
    4
    """
    if per not in PER:
        raise ChoiceError(f"per is one of {', '.join(PER)}, not {per!r}")
    found = list(matrices(recording, layers, step))
    shares = [_shares(matrix, sequence) for matrix in found]
    rows: list[ReceiverRow] = []
    if per == "recording":
        if len({share.shape[-1] for share in shares}) > 1:
            raise ChoiceError(
                "layers look at sequences of different length: choose with layers= or step=, or per='layer'"
            )
        rows += _best(recording, found[0], "", -1, torch.cat(shares).mean(0), most, sequence)
    for matrix, share in zip(found, shares, strict=True):
        if per == "layer":
            rows += _best(recording, matrix, matrix.layer, -1, share.mean(0), most, sequence)
        elif per == "head":
            for head, own in enumerate(share):
                rows += _best(recording, matrix, matrix.layer, head, own, most, sequence)
    return ReceiverTable(tuple(rows))


@torch.no_grad()
def _shares(matrix: Matrix, sequence: int) -> Tensor:
    """What each key of one sequence gets of a query, on average over queries that count: (heads, m)."""
    weights = matrix.weights
    lead = weights.shape[:-2]
    batch = lead.numel() // heads_in(weights)
    if not 0 <= sequence < batch:
        raise ChoiceError(f"sequence={sequence} is not in a batch of {batch}")
    real, empty = places(weights, cross=matrix.cross).real, weights.empty_rows()
    if bool((~real & ~empty).any()):  # what padding gives does not count
        received = (weights.mT @ real.unsqueeze(-1).to(weights.dtype)).squeeze(-1)
    else:
        received = weights.received()
    got, counted = (by_head(t, lead)[:, sequence].double().cpu() for t in (received, real & ~empty))
    return got / counted.sum(-1, keepdim=True).clamp_min(1)


def _best(
    recording: Recorded, matrix: Matrix, layer: str, head: int, shares: Tensor, most: int, sequence: int
) -> list[ReceiverRow]:
    words = texts(recording, matrix, len(shares), sequence)
    values, indices = shares.topk(min(most, len(shares)))
    return [
        ReceiverRow(layer, head, at, words[at], share)
        for at, share in zip(indices.tolist(), values.tolist(), strict=True)
    ]
