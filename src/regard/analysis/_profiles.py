"""Head profiles: how sharp every head of a recording is, how far it looks, and at which tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.analysis._layer_weights import (
    LayerWeights,
    Patterns,
    Recorded,
    by_head,
    layer_weights,
    separator_flags,
)
from regard.analysis._query_positions import QueryPositions, query_positions
from regard.analysis._reducers import WeightAmong, WeightAt
from regard.analysis._table import HeadwiseTable, Row
from regard.display.progress import progress
from regard.engine.reducers import Entropy, LogSumExp, MeanDistance, MeanScore, Reducer, SquaredWeight
from regard.normalisers import Softmax
from regard.operands import NEVER
from regard.weights import matrix_of

MEASURES = ("entropy", "saturation", "distance", "first", "previous", "itself", "separators")


class ProfileRow(NamedTuple):
    """One head in one step. Numbers are means over its queries, without padding and queries that see no key."""

    layer: str  # the module's path in the model
    step: int
    head: int
    entropy: float  # in nats: 0 = one-hot
    saturation: float  # sum of p^2: 1 = one-hot, 1 / keys = uniform
    distance: float  # mean |i - j| in tokens
    first: float  # weight on the first token of the sequence; large for an attention sink
    previous: float  # weight on the token before the query's own
    itself: float  # weight on the query's own token
    separators: float  # weight on the tokens that were given as separators


class MeasureTable(HeadwiseTable[Row]):
    """A table of the measures of `profiles`; the weight on separators is shown only if some were given."""

    def _shown_columns(self) -> Sequence[str]:
        unknown = all(map(math.isnan, self.column("separators")))
        return [name for name in self.columns if name != "separators" or not unknown]


@dataclass(frozen=True, repr=False)
class ProfileTable(MeasureTable[ProfileRow]):
    """Head profiles, one row for a head: iterate over rows, take a column, sort, print, or make a data frame."""

    columns: ClassVar[tuple[str, ...]] = ProfileRow._fields

    def most(self, count: int, by: str) -> ProfileTable:
        """The `count` heads with the largest numbers in a column, largest first."""
        self.column(by)
        known = [row for row in self.rows if not math.isnan(getattr(row, by))]
        return self._with_rows(sorted(known, key=lambda row: -getattr(row, by))[:count])


def profiles(
    recording: Recorded,
    *,
    layers: Patterns = None,
    step: int | None = None,
    separators: Sequence[int] | Sequence[str] | Tensor | None = None,
) -> ProfileTable:
    """Profile every head of a recording: how sharp it is, how far it looks, and how much goes to special tokens.

    With p_ij the weights of a head, and means over its queries i:

        entropy     mean_i -sum_j p_ij log p_ij         saturation  mean_i sum_j p_ij²
        distance    mean_i sum_j p_ij |i - j|           first       mean_i p_i,first
        previous    mean_i p_i,i-1                      itself      mean_i p_ii

    All measures of a layer take one pass over its weights, which are never built. The first token is the first that is
    no padding. Queries that are padding do not count; they are recognised by not seeing their own token. In cross
    attention queries have no position among the keys: distance, previous and itself are NaN there.

    recording: a `regard.Recording`. layers: names, or patterns with * and ?; all if left out. step: one forward pass;
    all if left out. separators: tokens whose weight the last column sums, as ids, as texts, or as a bool tensor (keys,)
    or (batch, keys); without them the column is NaN.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> table = rg.analysis.profiles(recording)
    >>> len(table), table.layers
    (2, ('self_attn',))
    """
    rows: list[ProfileRow] = []
    chosen = layer_weights(recording, layers, step)
    with progress("profiling heads", len(chosen)) as advance:
        for layer in chosen:
            rows += _rows(layer, separator_flags(recording, layer, separators))
            advance()
    return ProfileTable(tuple(rows))


@torch.no_grad()
def _rows(layer: LayerWeights, marks: Bool[Tensor, "*lead keys 1"] | None) -> list[ProfileRow]:
    weights = layer.weights
    positions = query_positions(weights, cross=layer.cross)
    measures = _measures(layer, positions, marks)
    counted = positions.real & (measures.pop("any") > 0)
    lead = weights.shape[:-2]
    flags = by_head(counted, lead).flatten(1)
    means = {name: _means(by_head(values, lead).flatten(1), flags) for name, values in measures.items()}
    unknown = torch.full((layer.heads,), math.nan)
    columns = [means.get(name, unknown).tolist() for name in MEASURES]
    return [
        ProfileRow(layer.layer, layer.step, head, *numbers) for head, numbers in enumerate(zip(*columns, strict=True))
    ]


def _measures(
    layer: LayerWeights, positions: QueryPositions, marks: Bool[Tensor, "*lead keys 1"] | None
) -> dict[str, Tensor]:
    """Every measure of every query, (..., queries) each, from one pass; "any" is positive where a query sees a key."""
    weights = layer.weights
    reducers: dict[str, Reducer[Any]] = {"at": WeightAt(positions.targets())}
    softmax = isinstance(weights.spec.normaliser, Softmax)
    if weights.normalised:
        reducers["saturation"] = SquaredWeight()
        if positions.own is not None:
            reducers["distance"] = MeanDistance(positions.own.to(torch.float64))
        reducers |= {"lse": LogSumExp(), "score": MeanScore()} if softmax else {"entropy": Entropy()}
    if marks is not None:
        reducers = {"separators": WeightAmong(marks), **reducers}
    results = dict(zip(reducers, matrix_of(weights).fold(list(reducers.values())), strict=True))
    if softmax:
        lse = results.pop("lse")
        results["entropy"] = torch.where(lse == NEVER, 0.0, (lse - results.pop("score")).clamp_min(0))
    first, previous, own = results.pop("at").unbind(-1)
    results["any"] = results["saturation"] if weights.normalised else torch.ones_like(first)
    results["first"] = first
    if positions.own is not None:
        results |= {"previous": previous, "itself": own}
    return results


def _means(values: Float[Tensor, "heads queries"], counted: Bool[Tensor, "heads queries"]) -> Float[Tensor, " heads"]:
    """Means over the queries that count, in double precision; NaN where none does."""
    total = values.double().where(counted, 0.0).sum(-1)
    return total / counted.sum(-1)
