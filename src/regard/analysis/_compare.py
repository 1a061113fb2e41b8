"""Two recordings side by side: before and after fine-tuning, or two prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from regard.analysis._layer_weights import Patterns, Recorded, heads_in, one_step
from regard.analysis._profiles import printed, profiles
from regard.analysis._similarity import mean_cosines, real_rows
from regard.analysis._table import Table
from regard.errors import ChoiceError
from regard.weights import Weights


class CompareRow(NamedTuple):
    """One head in two recordings: how alike its weights are, and by how much each measure has changed."""

    layer: str
    head: int
    similarity: float  # mean over queries of the cosine between its rows: 1 = unchanged; NaN for other lengths
    entropy: float  # the second recording's minus the first's, as all that follow
    saturation: float
    distance: float
    first: float
    previous: float
    itself: float
    separators: float


@dataclass(frozen=True)
class CompareTable(Table[CompareRow]):
    """What `compare` found, head by head."""

    rows: tuple[CompareRow, ...]

    columns = CompareRow._fields

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.column("layer")))

    def most(self, count: int, by: str = "similarity") -> CompareTable:
        """The heads that changed most: the least similar, or those with the largest change of a measure."""
        self.column(by)
        known = [row for row in self.rows if not math.isnan(getattr(row, by))]
        change = (lambda row: row.similarity) if by == "similarity" else (lambda row: -abs(getattr(row, by)))
        return CompareTable(tuple(sorted(known, key=change)[:count]))

    def __str__(self) -> str:
        names = printed(self.column("separators"))
        width = max([len("layer"), *(len(row.layer) for row in self.rows)])
        head = f"{'layer':<{width}}{'head':>6}{'similarity':>12}" + "".join(f"{name:>12}" for name in names)
        lines = (
            f"{row.layer:<{width}}{row.head:>6}{row.similarity:>12.4f}"
            + "".join(f"{getattr(row, name):>+12.4f}" for name in names)
            for row in self.rows
        )
        return "\n".join([head, *lines])


def compare(
    one: Recorded, two: Recorded, *, layers: Patterns = None, step: int | None = None, separators: Any = None
) -> CompareTable:
    """Tell of every head how it differs between two recordings of the same layers.

    similarity = mean_i cos(p_i, p'_i) where queries and keys are as many in both; else NaN, and the measures of
    `profiles` still compare: each is the second recording's minus the first's.

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
    first, second = ({m.layer: m for m in one_step(r, layers, step)} for r in (one, two))
    if list(first) != list(second):
        missing = sorted(set(first) ^ set(second)) or list(second)
        raise ChoiceError(f"the two recordings differ in their layers ({', '.join(missing[:5])}): choose with layers=")
    tables = [profiles(r, layers=layers, step=step, separators=separators) for r in (one, two)]
    numbers = [{(row.layer, row.head): row[3:] for row in table} for table in tables]
    rows: list[CompareRow] = []
    for name, matrix in first.items():
        cosines = _cosines(matrix.weights, second[name].weights, real_rows(matrix))
        for head, cosine in enumerate(cosines):
            a, b = (numbers[i][name, head] for i in (0, 1))
            rows.append(CompareRow(name, head, cosine, *(y - x for x, y in zip(a, b, strict=True))))
    return CompareTable(tuple(rows))


def _cosines(one: Weights, two: Weights, real: torch.Tensor) -> list[float]:
    heads = heads_in(one)
    if heads != heads_in(two):
        raise ChoiceError(f"a layer has {heads} heads in one recording and {heads_in(two)} in the other")
    if one.shape != two.shape:
        return [math.nan] * heads
    return mean_cosines([one, two], real)[:heads, heads:].diagonal().tolist()
