"""Who is near? Three ways to find the points within a radius: cells, a sorted line, a tree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums.cloud import Cloud
from regard.regression.kernel_sums.segment_sums import Lists, Points, of_runs, parts_of

ROWS = 2  # cells to each side: a radius is two cells wide
FINE = 8  # along the last axis cells are this much shorter: points there stand in a row anyway
SLACK = 1 + 1e-9  # a point on the edge of a cell may be counted to either
MOST_KEYS = 2.0**62
MOST_MARKS = 2**22


def in_cells(cloud: Cloud, radius: float) -> bool:
    """Whether the cells can be numbered."""
    side = radius / ROWS
    return math.prod(float(width) / side + 1 for width in cloud.high - cloud.low) * FINE < MOST_KEYS


def cells(cloud: Cloud, at: Float[Tensor, "dim q"], radius: Float[Tensor, " q"]) -> tuple[Points, Iterator[Lists]]:
    """Points sorted by cell, row after row; each query reads the part of each row that its ball touches."""
    radius = radius * SLACK
    largest = float(radius.max())
    side = [largest / ROWS] * (len(cloud.x) - 1) + [largest / ROWS / FINE]
    count = [int(float(width) / s) + 1 for width, s in zip(cloud.high - cloud.low, side, strict=True)]
    chosen = _in_reach(cloud, at, largest)
    key, order = torch.sort(_key(cloud.x if chosen is None else cloud.x[:, chosen], cloud.low, side, count))
    points = Points.of(cloud, order if chosen is None else chosen[order])
    return points, of_runs(*_rows_in_ball(cloud.low, at, radius, side, count, key))


def _key(x: Float[Tensor, "dim n"], low: Tensor, side: list[float], count: list[int]) -> Int[Tensor, " n"]:
    key = torch.zeros(x.shape[1], dtype=torch.int64)
    for row, edge, length, many in zip(x, low, side, count, strict=True):
        key.mul_(many).add_(((row - edge) / length).to(torch.int64).clamp_(0, many - 1))
    return key


def _in_reach(cloud: Cloud, at: Float[Tensor, "dim q"], radius: float) -> Int[Tensor, " some"] | None:
    """Points in the same large cell as a query or next to it: the others need not be sorted. None: not worth it."""
    widths = (cloud.high - cloud.low).tolist()
    count = [int(width / radius) + 1 for width in widths]
    if math.prod(count) > MOST_MARKS or math.prod(count) <= 3 ** len(count):
        return None
    marks = torch.zeros(count, dtype=torch.bool)
    own = [((row - edge) / radius).floor().to(torch.int64) for row, edge in zip(at, cloud.low, strict=True)]
    for step in itertools.product((-1, 0, 1), repeat=len(count)):
        there = [(cell + s).clamp(0, many - 1) for cell, s, many in zip(own, step, count, strict=True)]
        marks[tuple(there)] = True  # clamped: a cell too many is harmless
    marked = marks.flatten()[_key(cloud.x, cloud.low, [radius] * len(count), count)]
    return torch.nonzero(marked).squeeze(-1)


def _rows_in_ball(
    low: Tensor, at: Tensor, radius: Tensor, side: list[float], count: list[int], key: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """For every query and every row of cells near it: the owner, the first point and the one after the last."""
    row = torch.zeros(at.shape[1], 1, dtype=torch.int64)
    left = radius.square().unsqueeze(-1)  # what remains of the squared radius along the last axis; (q, rows)
    steps = torch.arange(-ROWS, ROWS + 1)
    for here, edge, length, many in zip(at[:-1], low, side, count, strict=False):
        cell = ((here - edge) / length).floor().to(torch.int64).unsqueeze(-1) + steps
        begin = edge + cell * length
        gap = torch.maximum(begin - here.unsqueeze(-1), here.unsqueeze(-1) - begin - length).clamp_min_(0.0)
        there = (left.unsqueeze(-1) - gap.square().unsqueeze(1)).masked_fill_(
            ((cell < 0) | (cell >= many)).unsqueeze(1), -1.0
        )
        left = there.flatten(1)
        row = (row.unsqueeze(-1) * many + cell.unsqueeze(1)).flatten(1)
    half = torch.sqrt(left.clamp_min(0.0))
    here, last = (at[-1] - low[-1]).unsqueeze(-1), count[-1] - 1
    first_cell = ((here - half) / side[-1] - 1e-9).floor()
    last_cell = ((here + half) / side[-1] + 1e-9).floor()
    some = (left >= 0) & (last_cell >= 0) & (first_cell <= last)
    owner = torch.nonzero(some)[:, 0]
    base = row[some] * count[-1]
    start = torch.searchsorted(key, base + first_cell[some].clamp_(0, last).to(torch.int64))
    stop = torch.searchsorted(key, base + last_cell[some].clamp_(0, last).to(torch.int64), right=True)
    return owner, start, stop


class Line:
    """One feature: the points in order."""

    def __init__(self, cloud: Cloud) -> None:
        self.sorted, self.order = torch.sort(cloud.x[0])
        self.points = Points.of(cloud, self.order)

    def nearest(self, at: Float[Tensor, "dim q"]) -> tuple[Float[Tensor, " q"], Int[Tensor, " q"]]:
        right = torch.searchsorted(self.sorted, at[0]).clamp_(max=len(self.sorted) - 1)
        left = (right - 1).clamp_min_(0)
        to_left, to_right = ((self.sorted[side] - at[0]).abs() for side in (left, right))
        closer = to_left < to_right
        return torch.where(closer, to_left, to_right), self.order[torch.where(closer, left, right)]

    def balls(self, at: Float[Tensor, "dim q"], radius: Float[Tensor, " q"]) -> Iterator[Lists]:
        radius = radius * SLACK
        start = torch.searchsorted(self.sorted, at[0] - radius)
        stop = torch.searchsorted(self.sorted, at[0] + radius, right=True)
        return of_runs(torch.arange(len(radius)), start, stop)


class Tree:
    """Two or three features: scipy's tree."""

    def __init__(self, cloud: Cloud) -> None:
        from scipy.spatial import KDTree

        # A balanced tree takes twice as long to build and answers no faster here.
        self.tree: Any = KDTree(cloud.x.T.contiguous().numpy(), balanced_tree=False, compact_nodes=False)
        self.points = Points.of(cloud)
        self.workers = torch.get_num_threads()

    def nearest(self, at: Float[Tensor, "dim q"]) -> tuple[Float[Tensor, " q"], Int[Tensor, " q"]]:
        distance, which = self.tree.query(at.T.contiguous().numpy(), workers=self.workers)
        return torch.from_numpy(distance), torch.from_numpy(which)

    def balls(self, at: Float[Tensor, "dim q"], radius: Float[Tensor, " q"]) -> Iterator[Lists]:
        places, reach = at.T.contiguous().numpy(), (radius * SLACK).numpy()
        length = torch.from_numpy(self._ask(places, reach, return_length=True))
        owner = torch.arange(len(length))[length > 0]
        for part in parts_of(length[owner]):
            who = owner[part].numpy()
            lists = self._ask(places[who], reach[who])
            flat = np.concatenate([np.asarray(one, dtype=np.int64) for one in lists])
            yield Lists(torch.from_numpy(flat), owner[part], length[owner][part])

    def _ask(self, places: np.ndarray, reach: np.ndarray, **options: bool) -> Any:
        return self.tree.query_ball_point(places, reach, workers=self.workers, **options)
