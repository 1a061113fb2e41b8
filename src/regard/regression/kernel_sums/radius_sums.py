"""Averages over the points near a query, for queries that no fast sum is certain about: few points, or far from all.

If the weight at a query is surely at least f, the points beyond a radius r add at most the share S exp(-r^2 / 2) / f to
it (S: the sum of all weights), and move the average by at most that share of the values' range. So

    r^2 = 2 log(S range / (f tol))

is far enough. Where nothing better is known, the nearest point alone gives f = s exp(-d^2 / 2). In bandwidths.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums.cloud import ROUNDING, Cloud
from regard.regression.kernel_sums.radius_search import Line, Tree, cells, in_cells
from regard.regression.kernel_sums.segment_sums import Lists, Points, directly, sums
from regard.regression.kernel_sums.state import Pooled, empty

STRICT = 0.1  # the share of `tol` that may be left out: it costs only a logarithm
WIDEST = 14.0  # bandwidths; a wider ball would reach over many empty cells
FEW_PAIRS = 3e7  # up to here all pairs are quicker than a tree


def pool(cloud: Cloud, at: Float[Tensor, "dim q"], tol: float, floor: Float[Tensor, " q"] | None = None) -> Pooled:
    """The average at each query over the points that matter; `floor` is the log of a weight surely there, or -inf."""
    return _Search(cloud, at, tol, floor).run()


class _Search:
    def __init__(self, cloud: Cloud, at: Tensor, tol: float, floor: Tensor | None) -> None:
        self.cloud, self.at = cloud, at
        self.found = empty(at.shape[1], cloud.columns, at)
        self.floor = self.found.lse.clone() if floor is None else floor.clone()
        self.mass, self.range = _mass(cloud), max(1.0, _range(cloud))
        # Less than rounding cannot be seen: a tol of 0 asks for what float64 can tell.
        self.enough = self.mass + math.log(self.range / (STRICT * max(tol, ROUNDING)))

    def run(self) -> Pooled:
        unknown = torch.nonzero(self.floor == -math.inf).squeeze(-1)
        index = None
        if len(unknown) and self._all_pairs_are_quick(len(unknown)):
            lse, mean = directly(self.cloud, self.at[:, unknown])
            self.found.lse[unknown], self.found.mean[unknown] = lse, mean
        elif len(unknown):
            index = self._index()
            distance, which = index.nearest(self.at[:, unknown])
            self.floor[unknown] = self._log_weight(which) - distance.square() / 2
        radius = torch.sqrt(2 * (self.enough - self.floor))  # inf: done already
        self._in_cells(radius, torch.nonzero(radius <= WIDEST).squeeze(-1))
        self._far_away(radius, torch.nonzero((radius > WIDEST) & (radius < math.inf)).squeeze(-1), index)
        return self.found

    def _all_pairs_are_quick(self, queries: int) -> bool:
        several = len(self.cloud.x) > 1
        return several and (queries * self.cloud.n <= FEW_PAIRS or not has_scipy())

    def _index(self) -> Line | Tree:
        return Line(self.cloud) if len(self.cloud.x) == 1 else Tree(self.cloud)

    def _log_weight(self, which: Int[Tensor, " q"]) -> Float[Tensor, " q"]:
        weights = self.cloud.log_weight
        return torch.zeros(len(which), dtype=torch.float64) if weights is None else weights[which]

    def _in_cells(self, radius: Float[Tensor, " q"], some: Int[Tensor, " some"]) -> None:
        if len(some) == 0:
            return
        if in_cells(self.cloud, float(radius[some].max())):
            self._add(some, radius[some], *cells(self.cloud, self.at[:, some], radius[some]))
        else:
            self._far_away(radius, some, None)

    def _far_away(self, radius: Float[Tensor, " q"], some: Int[Tensor, " some"], index: Line | Tree | None) -> None:
        if len(some) == 0:
            return
        index = index or self._index()
        self._add(some, radius[some], index.points, index.balls(self.at[:, some], radius[some]))

    def _add(self, some: Tensor, radius: Tensor, points: Points, lists: Iterator[Lists]) -> None:
        floor = self.floor[some]
        weight, total = sums(points, self.at[:, some], floor, lists)
        self.found.lse[some] = weight.log() + floor
        self.found.mean[some] = total / weight.unsqueeze(-1)
        self.found.error[some] = torch.exp(self.mass - radius.square() / 2 - floor) / weight * self.range


@cache
def has_scipy() -> bool:
    return importlib.util.find_spec("scipy") is not None


def _mass(cloud: Cloud) -> float:
    """The log of the sum of all weights."""
    return math.log(cloud.n) if cloud.log_weight is None else float(torch.logsumexp(cloud.log_weight, 0))


def _range(cloud: Cloud) -> float:
    """The largest difference within a column, in its standard deviations."""
    if cloud.columns == 0:
        return 0.0
    low, high = cloud.values.aminmax(dim=0)
    return float((high - low).max())
