"""Comparison of two recordings, head by head: before and after fine-tuning, or two prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool

from regard.analysis._layer_weights import Patterns, Recorded, head_count, one_step
from regard.analysis._profiles import MEASURES, MeasureTable, profiles
from regard.analysis._similarity import mean_cosines, real_queries
from regard.analysis._table import Formats
from regard.display.progress import progress
from regard.errors import ChoiceError
from regard.weights import Weights


class CompareRow(NamedTuple):
    """One head in two recordings: how similar its weights are, and by how much each measure of `profiles` changed."""

    layer: str
    head: int
    similarity: float  # mean over queries of the cosine between its rows: 1 = unchanged; NaN if lengths differ
    entropy: float  # this and all that follow: the second recording's measure minus the first's
    saturation: float
    distance: float
    first: float
    previous: float
    itself: float
    separators: float


@dataclass(frozen=True, repr=False)
class CompareTable(MeasureTable[CompareRow]):
    """Differences between two recordings, one row for a head."""

    columns: ClassVar[tuple[str, ...]] = CompareRow._fields
    _formats: ClassVar[Formats] = dict.fromkeys(MEASURES, "{:+.4f}".format)

    def most(self, count: int, by: str = "similarity") -> CompareTable:
        """The `count` heads that changed most: the least similar, or by the largest change of one measure."""
        self.column(by)
        known = [row for row in self.rows if not math.isnan(getattr(row, by))]
        change = (lambda row: row.similarity) if by == "similarity" else (lambda row: -abs(getattr(row, by)))
        return self._with_rows(sorted(known, key=change)[:count])


def compare(
    one: Recorded, two: Recorded, *, layers: Patterns = None, step: int | None = None, separators: Any = None
) -> CompareTable:
    """Compare two recordings of the same layers head by head, such as before and after fine-tuning.

    similarity = mean_i cos(p_i, p'_i), the mean over queries i of the cosine between the two rows of weights. It is NaN
    where numbers of queries or keys differ; the other columns are the change of each measure of `profiles`, the second
    recording's minus the first's, and are there in any case.

    layers: names, or patterns with * and ?; all if left out. step: the forward pass, needed if there are several.
    separators: as in `profiles`.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> x = torch.randn(3, 5, 8)
    >>> with torch.no_grad(), rg.record(model) as before:
    ...     output = model(x)
    >>> with torch.no_grad(), rg.record(model) as after:
    ...     output = model(2 * x)
    >>> rg.analysis.compare(before, after).most(1).column("layer")
    ('self_attn',)
    """
    first, second = ({layer.layer: layer for layer in one_step(r, layers, step)} for r in (one, two))
    if list(first) != list(second):
        missing = sorted(set(first) ^ set(second)) or list(second)
        raise ChoiceError(f"the two recordings differ in their layers ({', '.join(missing[:5])}): choose with layers=")
    tables = [profiles(r, layers=layers, step=step, separators=separators) for r in (one, two)]
    numbers = [{(row.layer, row.head): row[3:] for row in table} for table in tables]
    rows: list[CompareRow] = []
    with progress("comparing layers", len(first)) as advance:
        for name, layer in first.items():
            cosines = _cosines(layer.weights, second[name].weights, real_queries(layer))
            for head, cosine in enumerate(cosines):
                a, b = (numbers[i][name, head] for i in (0, 1))
                rows.append(CompareRow(name, head, cosine, *(y - x for x, y in zip(a, b, strict=True))))
            advance()
    return CompareTable(tuple(rows))


def _cosines(one: Weights, two: Weights, real: Bool[torch.Tensor, "batch queries"]) -> list[float]:
    """Mean cosine between the rows of each head in two recordings."""
    heads = head_count(one)
    if heads != head_count(two):
        raise ChoiceError(f"a layer has {heads} heads in one recording and {head_count(two)} in the other")
    if one.shape != two.shape:
        return [math.nan] * heads
    return mean_cosines([one, two], real)[:heads, heads:].diagonal().tolist()
