"""Similarity of heads: the mean cosine between their rows of weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.analysis._layer_weights import LayerWeights, Patterns, Recorded, by_head, head_count, one_step
from regard.analysis._query_positions import query_positions
from regard.analysis._table import Table, Titles
from regard.display.progress import progress
from regard.errors import ChoiceError
from regard.weights import Weights

WEIGHTS_AT_ONCE = 1 << 24  # weights in memory at a time, of all heads together: 64 MB in float32
REDUNDANT = 0.95  # similarity from which on a head is called redundant


class SimilarRow(NamedTuple):
    """A pair of heads."""

    layer: str
    head: int
    other_layer: str
    other_head: int
    similarity: float  # mean over queries of the cosine between their rows: 1 = the same weights


@dataclass(frozen=True, eq=False, repr=False)
class SimilarTable(Table[SimilarRow]):
    """All pairs of heads, the most similar first; `matrix` has all similarities, (heads, heads) in order of `heads`."""

    heads: tuple[tuple[str, int], ...]
    matrix: Tensor

    columns: ClassVar[tuple[str, ...]] = SimilarRow._fields
    _titles: ClassVar[Titles] = {"other_layer": "like layer", "other_head": "head"}

    def most(self, count: int) -> SimilarTable:
        """The `count` most similar pairs."""
        return self._with_rows(self.rows[:count])

    def redundant(self, threshold: float = REDUNDANT) -> SimilarTable:
        """Heads that repeat an earlier head, each paired with the kept head that it is most similar to.

        Heads are visited in order. One whose similarity to a head that was kept is at least `threshold` is redundant,
        any other is kept.
        """
        kept: list[int] = []
        redundant: list[SimilarRow] = []
        for number in range(len(self.heads)):
            twin = max(kept, key=lambda k: float(self.matrix[number, k]), default=None)
            if twin is not None and float(self.matrix[number, twin]) >= threshold:
                redundant.append(self._row(number, twin))
            else:
                kept.append(number)
        return self._with_rows(redundant)

    def _row(self, one: int, two: int) -> SimilarRow:
        return SimilarRow(*self.heads[one], *self.heads[two], float(self.matrix[one, two]))


def similar(recording: Recorded, *, layers: Patterns = None, step: int | None = None) -> SimilarTable:
    """Compare every head of a recording with every other, by the mean cosine between their rows of weights:

        similarity(a, b) = mean_i  sum_j p^a_ij p^b_ij / (|p^a_i| |p^b_i|)

    over queries i that are no padding and see a key. 1: the same weights everywhere; 0: never on the same key. All
    layers must have the same numbers of queries and keys: choose them with `layers` (names, or patterns with * and ?).
    step: the forward pass, needed if there are several. A block of rows of all heads is computed at a time, so that
    n x m is never built.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> table = rg.analysis.similar(recording)
    >>> len(table), tuple(table.matrix.shape)
    (6, (4, 4))
    """
    chosen = list(one_step(recording, layers, step))
    _check_sizes(chosen)
    heads = tuple((layer.layer, head) for layer in chosen for head in range(layer.heads))
    cosines = mean_cosines([layer.weights for layer in chosen], real_queries(chosen[0]))
    pairs = combinations(range(len(heads)), 2)
    numbers = cosines.tolist()
    rows = [SimilarRow(*heads[a], *heads[b], numbers[a][b]) for a, b in pairs]
    return SimilarTable(tuple(sorted(rows, key=lambda row: -row.similarity)), heads, cosines)


def _check_sizes(layers: Sequence[LayerWeights]) -> None:
    sizes = {size: list(group) for size, group in groupby(layers, lambda layer: _sizes(layer.weights))}
    if len(sizes) > 1:
        listed = "; ".join(f"{group[0].layer}: {list(size)}" for size, group in sizes.items())
        raise ChoiceError(f"heads are compared row by row, and rows differ ({listed}): choose with layers=")


def _sizes(weights: Weights) -> tuple[int, ...]:
    """The shape without the number of heads."""
    return tuple(length for dim, length in enumerate(weights.shape) if weights.ndim < 4 or dim != weights.ndim - 3)


def real_queries(layer: LayerWeights) -> Bool[Tensor, "batch queries"]:
    """True for the queries of each sequence that are no padding."""
    real = query_positions(layer.weights, cross=layer.cross).real
    return by_head(real, layer.weights.shape[:-2]).any(0)


@torch.no_grad()
def mean_cosines(all_weights: Sequence[Weights], real: Bool[Tensor, "batch queries"]) -> Float[Tensor, "heads heads"]:
    """Mean cosine between the rows of every pair of heads, over the heads of all weights, in double precision."""
    count = sum(head_count(weights) for weights in all_weights)
    total = torch.zeros(count, count, dtype=torch.float64)
    shared = torch.zeros_like(total)
    blocks = list(_row_blocks(all_weights))
    with progress("comparing heads", len(blocks)) as advance:
        for low, high in blocks:
            rows = torch.cat([_unit_rows(weights, low, high, real) for weights in all_weights])  # (heads, rows, m)
            seen = rows.any(-1).double()
            flat = rows.flatten(1)
            total += (flat @ flat.mT).double()
            shared += seen @ seen.mT
            advance()
    return (total / shared.clamp_min(1)).clamp(0, 1)


def _row_blocks(all_weights: Sequence[Weights]) -> Iterator[tuple[int, int]]:
    """Ranges of queries whose weights, of all heads, fit into the budget."""
    n = all_weights[0].shape[-2]
    numbers = sum(weights.shape[:-2].numel() * weights.shape[-1] for weights in all_weights)  # in one row of all
    step = max(1, WEIGHTS_AT_ONCE // max(1, numbers))
    return ((low, min(low + step, n)) for low in range(0, n, step))


def _unit_rows(
    weights: Weights, low: int, high: int, real: Bool[Tensor, "batch queries"]
) -> Float[Tensor, "heads rows keys"]:
    """Rows low to high of every head and sequence, scaled to length 1; zeros for queries that are padding."""
    block = by_head(weights[..., low:high, :], weights.shape[:-2])
    block = torch.nn.functional.normalize(block.float(), dim=-1) * real[:, low:high, None]
    return block.flatten(1, 2)
