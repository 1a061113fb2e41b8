"""Receivers: the tokens that get the largest share of attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.analysis._layer_weights import LayerWeights, Patterns, Recorded, by_head, layer_weights
from regard.analysis._query_positions import query_positions
from regard.analysis._table import Formats, Table
from regard.display.progress import progress
from regard.display.text_table import one_line
from regard.errors import ChoiceError

PER = ("recording", "layer", "head")


class ReceiverRow(NamedTuple):
    """One token and its share of the attention of one head, one layer or the whole recording."""

    layer: str  # "" for all
    head: int  # -1 for all
    position: int
    token: str  # its text, or its id where no text is known
    share: float  # mean over queries of the weight on this token


@dataclass(frozen=True, repr=False)
class ReceiverTable(Table[ReceiverRow]):
    """Tokens with the largest shares of attention, largest first within each head, layer or recording."""

    columns: ClassVar[tuple[str, ...]] = ReceiverRow._fields
    _formats: ClassVar[Formats] = {
        "layer": lambda name: one_line(name) or "all",
        "head": lambda number: str(number) if number >= 0 else "all",
    }


def receivers(
    recording: Recorded,
    most: int = 10,
    *,
    per: str = "recording",
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
) -> ReceiverTable:
    """Find the tokens that get the largest share of attention in one sequence of the batch.

    The share of key j is mean_i p_ij over the queries i that are no padding.

    most: how many tokens. per: "recording" (mean over all heads of all layers), "layer" (mean over its heads) or
    "head". sequence: which one of the batch, from 0. layers: names, or patterns with * and ?; cross attention looks at
    other tokens than self attention, so choose where a recording has both. step: one forward pass; all if left out.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> len(rg.analysis.receivers(recording, 2, per="head"))
    4
    """
    if per not in PER:
        raise ChoiceError(f"per is one of {', '.join(PER)}, not {per!r}")
    chosen = list(layer_weights(recording, layers, step))
    shares: list[Tensor] = []
    with progress("summing weights", len(chosen)) as advance:
        for layer in chosen:
            shares.append(_shares(layer, sequence))
            advance()
    rows: list[ReceiverRow] = []
    if per == "recording":
        if len({share.shape[-1] for share in shares}) > 1:
            raise ChoiceError(
                "layers look at sequences of different length: choose with layers= or step=, or per='layer'"
            )
        rows += _largest(recording, chosen[0], "", -1, torch.cat(shares).mean(0), most, sequence)
    for layer, share in zip(chosen, shares, strict=True):
        if per == "layer":
            rows += _largest(recording, layer, layer.layer, -1, share.mean(0), most, sequence)
        elif per == "head":
            for head, own in enumerate(share):
                rows += _largest(recording, layer, layer.layer, head, own, most, sequence)
    return ReceiverTable(tuple(rows))


@torch.no_grad()
def _shares(layer: LayerWeights, sequence: int) -> Float[Tensor, "heads keys"]:
    """Mean weight on each key of one sequence, over the queries that are no padding and see a key."""
    weights = layer.weights
    lead = weights.shape[:-2]
    if not 0 <= sequence < layer.batch:
        raise ChoiceError(f"sequence={sequence} is not in a batch of {layer.batch}")
    real, empty = query_positions(weights, cross=layer.cross).real, weights.empty_rows()
    if bool((~real & ~empty).any()):  # what padding gives does not count
        received = (weights.mT @ real.unsqueeze(-1).to(weights.dtype)).squeeze(-1)
    else:
        received = weights.received()
    total, counted = (by_head(t, lead)[:, sequence].double().cpu() for t in (received, real & ~empty))
    return total / counted.sum(-1, keepdim=True).clamp_min(1)


def _largest(
    recording: Recorded,
    layer: LayerWeights,
    name: str,
    head: int,
    shares: Float[Tensor, " keys"],
    most: int,
    sequence: int,
) -> list[ReceiverRow]:
    labels = layer.key_tokens.labels(recording, sequence)
    values, indices = shares.topk(min(most, len(shares)))
    return [
        ReceiverRow(name, head, position, labels[position], share)
        for position, share in zip(indices.tolist(), values.tolist(), strict=True)
    ]
