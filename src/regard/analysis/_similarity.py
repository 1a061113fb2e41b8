"""Which heads look at the same places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import NamedTuple

import torch
from torch import Tensor

from regard.analysis._layer_weights import Matrix, Patterns, Recorded, by_head, heads_in, one_step
from regard.analysis._query_positions import places
from regard.analysis._table import Table
from regard.errors import ChoiceError
from regard.weights import Weights

BUDGET = 1 << 24  # weights that are held at a time, of all heads together
REDUNDANT = 0.95
SHOWN = 20  # lines that are printed


class SimilarRow(NamedTuple):
    """Two heads."""

    layer: str
    head: int
    other_layer: str
    other_head: int
    similarity: float  # mean over queries of the cosine between their rows: 1 = the same weights


@dataclass(frozen=True, eq=False)
class SimilarTable(Table[SimilarRow]):
    """All pairs of heads, the most similar first, and `matrix`, the same as (heads, heads) in the order of `heads`."""

    rows: tuple[SimilarRow, ...]
    heads: tuple[tuple[str, int], ...]
    matrix: Tensor

    columns = SimilarRow._fields

    def most(self, count: int) -> SimilarTable:
        """The most similar pairs."""
        return SimilarTable(self.rows[:count], self.heads, self.matrix)

    def redundant(self, threshold: float = REDUNDANT) -> SimilarTable:
        """Heads for which an earlier head does the same: each with the one that it is most like.

        Heads are taken in order; one that is at least `threshold` similar to a head that is kept is redundant.
        """
        kept: list[int] = []
        found: list[SimilarRow] = []
        for number in range(len(self.heads)):
            twin = max(kept, key=lambda k: float(self.matrix[number, k]), default=None)
            if twin is not None and float(self.matrix[number, twin]) >= threshold:
                found.append(self._row(number, twin))
            else:
                kept.append(number)
        return SimilarTable(tuple(found), self.heads, self.matrix)

    def _row(self, one: int, two: int) -> SimilarRow:
        return SimilarRow(*self.heads[one], *self.heads[two], float(self.matrix[one, two]))

    def __str__(self) -> str:
        width = max([len("layer"), len("like layer"), *(len(name) for name, _ in self.heads)])
        head = f"{'layer':<{width}}{'head':>6}  {'like layer':<{width}}{'head':>6}{'similarity':>12}"
        lines = [
            f"{r.layer:<{width}}{r.head:>6}  {r.other_layer:<{width}}{r.other_head:>6}{r.similarity:>12.4f}"
            for r in self.rows[:SHOWN]
        ]
        left = len(self.rows) - len(lines)
        return "\n".join([head, *lines, *([f"... and {left} more pairs"] if left else [])])


def similar(recording: Recorded, *, layers: Patterns = None, step: int | None = None) -> SimilarTable:
    """Compare every head with every other by the mean cosine of their rows,

        similarity(a, b) = mean_i  sum_j p^a_ij p^b_ij / (|p^a_i| |p^b_i|),

    over queries i that count (no padding, seeing a key). 1: the same weights everywhere; 0: never on the same key.
    All layers must have as many queries and keys: choose them with `layers` (names, or patterns with * and ?).

    Some rows of all heads are made at a time, and their products added up: n x m is never built.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> table = rg.analysis.similar(recording)
    >>> len(table), tuple(table.matrix.shape)
    (6, (4, 4))
    """
    found = list(one_step(recording, layers, step))
    _same_sizes(found)
    heads = tuple((matrix.layer, head) for matrix in found for head in range(heads_in(matrix.weights)))
    cosines = mean_cosines([matrix.weights for matrix in found], real_rows(found[0]))
    pairs = combinations(range(len(heads)), 2)
    numbers = cosines.tolist()
    rows = [SimilarRow(*heads[a], *heads[b], numbers[a][b]) for a, b in pairs]
    return SimilarTable(tuple(sorted(rows, key=lambda row: -row.similarity)), heads, cosines)


def _same_sizes(found: Sequence[Matrix]) -> None:
    sizes = {size: list(group) for size, group in groupby(found, lambda matrix: _sizes(matrix.weights))}
    if len(sizes) > 1:
        listed = "; ".join(f"{group[0].layer}: {list(size)}" for size, group in sizes.items())
        raise ChoiceError(f"heads are compared row by row, and rows differ ({listed}): choose with layers=")


def _sizes(weights: Weights) -> tuple[int, ...]:
    """All but the number of heads."""
    return tuple(length for dim, length in enumerate(weights.shape) if weights.ndim < 4 or dim != weights.ndim - 3)


def real_rows(matrix: Matrix) -> Tensor:
    """Which queries of each sequence are no padding, (batch, n)."""
    real = places(matrix.weights, cross=matrix.cross).real
    return by_head(real, matrix.weights.shape[:-2]).any(0)


@torch.no_grad()
def mean_cosines(all_weights: Sequence[Weights], real: Tensor) -> Tensor:
    """(heads, heads) over all matrices together, in double precision."""
    count = sum(heads_in(weights) for weights in all_weights)
    total = torch.zeros(count, count, dtype=torch.float64)
    shared = torch.zeros_like(total)
    for low, high in _row_blocks(all_weights):
        rows = torch.cat([_unit_rows(weights, low, high, real) for weights in all_weights])  # (heads, rows, m)
        seen = rows.any(-1).double()
        flat = rows.flatten(1)
        total += (flat @ flat.mT).double()
        shared += seen @ seen.mT
    return (total / shared.clamp_min(1)).clamp(0, 1)


def _row_blocks(all_weights: Sequence[Weights]) -> Iterator[tuple[int, int]]:
    n = all_weights[0].shape[-2]
    numbers = sum(weights.shape[:-2].numel() * weights.shape[-1] for weights in all_weights)  # in one row of all
    step = max(1, BUDGET // max(1, numbers))
    return ((low, min(low + step, n)) for low in range(0, n, step))


def _unit_rows(weights: Weights, low: int, high: int, real: Tensor) -> Tensor:
    """Rows low to high of every head, each of length 1, or 0 where it does not count: (heads, batch * rows, m)."""
    block = by_head(weights[..., low:high, :], weights.shape[:-2])
    block = torch.nn.functional.normalize(block.float(), dim=-1) * real[:, low:high, None]
    return block.flatten(1, 2)
