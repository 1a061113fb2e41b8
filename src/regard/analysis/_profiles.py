"""What every head of a recording does, in a few numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.analysis._layer_weights import Matrix, Patterns, Recorded, by_head, heads_in, marked, matrices
from regard.analysis._query_positions import Places, places
from regard.analysis._reducers import Among, At
from regard.analysis._table import Table
from regard.engine.reducers import LogSumExp, MeanDistance, MeanScore, Reducer, SquaredWeight, Surprise
from regard.normalisers import Softmax
from regard.operands import NEVER
from regard.weights import matrix_of

MEASURES = ("entropy", "saturation", "distance", "first", "previous", "itself", "separators")


def printed(separators: Sequence[float]) -> tuple[str, ...]:
    """The measures that a table prints: separators only where some were named."""
    return MEASURES if not all(map(math.isnan, separators)) else MEASURES[:-1]


class ProfileRow(NamedTuple):
    """One head in one step. Means over its queries; those that are padding or see no key do not count."""

    layer: str  # the module's path in the model
    step: int
    head: int
    entropy: float  # in nats: 0 = one-hot
    saturation: float  # sum of p^2: 1 = one-hot, 1 / keys = uniform
    distance: float  # mean |i - j| in tokens
    first: float  # share on the first token of the sequence: a sink if it is large
    previous: float  # share on the token before the query's own
    itself: float  # share on the query's own token
    separators: float  # share on the tokens that were named


@dataclass(frozen=True)
class ProfileTable(Table[ProfileRow]):
    """What `profiles` found. Iterate over its rows, ask for a column, print it, or make a frame of `to_dict()`."""

    rows: tuple[ProfileRow, ...]

    columns = ProfileRow._fields

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.column("layer")))

    def most(self, count: int, by: str) -> ProfileTable:
        """The heads with the largest number in a column, largest first."""
        self.column(by)
        known = [row for row in self.rows if not math.isnan(getattr(row, by))]
        return ProfileTable(tuple(sorted(known, key=lambda row: -getattr(row, by))[:count]))

    def __str__(self) -> str:
        names = printed(self.column("separators"))
        width = max([len("layer"), *(len(row.layer) for row in self.rows)])
        head = f"{'layer':<{width}}{'step':>6}{'head':>6}" + "".join(f"{name:>12}" for name in names)
        lines = (
            f"{row.layer:<{width}}{row.step:>6}{row.head:>6}" + "".join(f"{getattr(row, x):>12.4f}" for x in names)
            for row in self.rows
        )
        return "\n".join([head, *lines])


def profiles(
    recording: Recorded,
    *,
    layers: Patterns = None,
    step: int | None = None,
    separators: Sequence[int] | Sequence[str] | Tensor | None = None,
) -> ProfileTable:
    """Tell of every head how sharp it is, how far it looks, and what share goes to the tokens that heads like.

    With p_ij the weights of a head and means over its queries i:

        entropy     mean_i -sum_j p_ij log p_ij         saturation  mean_i sum_j p_ij²
        distance    mean_i sum_j p_ij |i - j|           first       mean_i p_i,first
        previous    mean_i p_i,i-1                      itself      mean_i p_ii

    Every layer takes one pass over its tiles for all of these. The first token is the first that is no padding.
    Queries that are padding do not count: those that may not see their own token, which is how models hide padding.
    In cross attention queries have no place among the keys: distance, previous and itself are NaN there.

    separators: token ids, token texts, or a bool tensor (keys,) or (batch, keys); without them the column is NaN.
    layers: names, or patterns with * and ?. step: one of them; else all.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> table = rg.analysis.profiles(recording)
    >>> len(table), table.layers
    (2, ('self_attn',))
    """
    rows: list[ProfileRow] = []
    for matrix in matrices(recording, layers, step):
        rows += _rows(matrix, marked(recording, matrix, separators))
    return ProfileTable(tuple(rows))


@torch.no_grad()
def _rows(matrix: Matrix, marks: Tensor | None) -> list[ProfileRow]:
    weights = matrix.weights
    where = places(weights, cross=matrix.cross)
    answers = _answers(matrix, where, marks)
    counted = where.real & (answers.pop("any") > 0)
    lead = weights.shape[:-2]
    flags = by_head(counted, lead).flatten(1)
    means = {name: _means(by_head(values, lead).flatten(1), flags) for name, values in answers.items()}
    unknown = torch.full((heads_in(weights),), math.nan)
    columns = [means.get(name, unknown).tolist() for name in MEASURES]
    return [
        ProfileRow(matrix.layer, matrix.step, head, *numbers) for head, numbers in enumerate(zip(*columns, strict=True))
    ]


def _answers(matrix: Matrix, where: Places, marks: Tensor | None) -> dict[str, Tensor]:
    """Every measure query by query, (..., n) each, from one pass."""
    weights = matrix.weights
    asked: dict[str, Reducer[Any]] = {"at": At(where.targets())}
    softmax = isinstance(weights.spec.normaliser, Softmax)
    if weights.normalised:
        asked["saturation"] = SquaredWeight()
        if where.at is not None:
            asked["distance"] = MeanDistance(where.at.to(torch.float64))
        asked |= {"lse": LogSumExp(), "score": MeanScore()} if softmax else {"entropy": Surprise()}
    if marks is not None:
        asked = {"separators": Among(marks), **asked}
    found = dict(zip(asked, matrix_of(weights).survey(list(asked.values())), strict=True))
    if softmax:
        lse = found.pop("lse")
        found["entropy"] = torch.where(lse == NEVER, 0.0, (lse - found.pop("score")).clamp_min(0))
    first, previous, own = found.pop("at").unbind(-1)
    found["any"] = found["saturation"] if weights.normalised else torch.ones_like(first)
    found["first"] = first
    if where.at is not None:
        found |= {"previous": previous, "itself": own}
    return found


def _means(values: Tensor, counted: Tensor) -> Tensor:
    """(heads,) in double precision; NaN where nothing counts."""
    total = values.double().where(counted, 0.0).sum(-1)
    return total / counted.sum(-1)
