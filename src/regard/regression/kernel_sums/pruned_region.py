"""A region of queries, and the points that may matter to it: some are left out, tile by tile of queries, and known.

What is made ready of the points once serves all tiles of a region. A tile is small, so that the box around it is; a
region is large, so that points are not made ready for a few queries only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums.kd_tree import Tiles, tiles
from regard.regression.kernel_sums.pruning import SQUARES, bright
from regard.regression.kernel_sums.scaled import Scaled
from regard.regression.kernel_sums.state import Pooled, empty, merge

LOOKED_AT = 2  # queries of a tile, for a guess of the smallest sum at any of them
ROUNDING = 2.0**-60  # what float64 cannot tell from nothing


@runtime_checkable
class Ready(Protocol):
    """Points made ready for the queries of a region."""

    def most(self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]) -> Float[Tensor, "tiles n"]:
        """The log of what each point adds at most, to a query anywhere in each box."""
        ...

    def by_tiles(self, tiles: Sequence[slice], kept: Sequence[Int[Tensor, " some"] | None]) -> Pooled:
        """What some of the points, or all of them, say of the queries of each tile; one tile after the other."""
        ...

    def at(self, rows: Int[Tensor, " rows"]) -> Pooled:
        """What all of the points say of some queries."""
        ...


class Region(NamedTuple):
    """Queries that lie together, and pieces of the points that are made ready at once."""

    points: Scaled
    query: Float[Tensor, "q dim"]
    pieces: Sequence[list[slice]]
    ready: Callable[[Scaled], Ready]
    finish: Callable[[Float[Tensor, "q dim"], Pooled], Pooled]  # tells errors, once all points have spoken
    span: float
    log_lost: float  # log of the weight of all points that are in no piece, at most

    def parts(self) -> Iterable[Ready]:
        """To be gone through more than once. Several are made ready each time: all of them together may be too much."""
        parts = _Parts(self)
        return parts if len(self.pieces) > 1 else list(parts)

    def told(self, state: Pooled, log_lost: Float[Tensor, " q"]) -> Pooled:
        """A share of all weights that is missing moves a mean by at most that share of the span of values."""
        state, missing = self.finish(self.query, state), _missing(log_lost, state)
        return state._replace(error=state.error + torch.where(missing > ROUNDING, missing * self.span, 0.0))


class _Parts:
    def __init__(self, region: Region) -> None:
        self.region = region

    def __iter__(self) -> Iterator[Ready]:
        points, query = self.region.points, self.region.query
        return (self.region.ready(_taken(points, query, some)) for some in self.region.pieces)


def with_all(region: Region) -> Pooled:
    """Every point that is in a piece."""
    if not region.pieces:
        return empty(len(region.query), region.points.values.shape[1], region.query)
    state = reduce(merge, (points.by_tiles([slice(0, len(region.query))], [None]) for points in region.parts()))
    return region.told(state, torch.full_like(state.lse, region.log_lost))


def without_faint(region: Region, size: int, delta: float, share: float) -> Pooled:
    """Without points that are faint to a tile of that size; with them for queries that would miss more than `delta`.

    About the share of it is left out, if the guess of what the queries of a tile find is right.
    """
    if not region.pieces:
        return with_all(region)
    inner = tiles(region.query, size)
    region = region._replace(query=region.query[inner.order])
    parts = region.parts()
    state, log_lost = _by_tiles(region, inner, parts, share * delta / len(region.pieces))
    missed = (~(_missing(log_lost, state) <= delta)).nonzero().flatten()
    if len(missed):
        log_lost[missed] = region.log_lost
        for whole, part in zip(state, _at(parts, missed), strict=True):
            whole[missed] = part
    return Pooled(*map(inner.back, region.told(state, log_lost)))


def _by_tiles(region: Region, inner: Tiles, parts: Iterable[Ready], delta: float) -> tuple[Pooled, Float[Tensor, " q"]]:
    """What is found at each query, and the log of what was left out at most."""
    cuts = [inner.cut(tile) for tile in range(len(inner))]
    floor = _guess(parts, cuts)
    states: list[Pooled] = []
    lost = [torch.full_like(floor, region.log_lost)]
    for points in parts:
        kept, log_lost = bright(points.most(inner.low, inner.high), floor, delta)
        lost.append(log_lost)
        states.append(points.by_tiles(cuts, kept))
    together = torch.stack(lost).logsumexp(0)
    return reduce(merge, states), together.repeat_interleave(torch.tensor(inner.start).diff())


def _guess(parts: Iterable[Ready], cuts: Sequence[slice]) -> Float[Tensor, " tiles"]:
    """The log of the smallest sum at the queries of each tile, about, from some of them."""
    places = [range(rows.start, rows.stop, max(1, (rows.stop - rows.start) // LOOKED_AT)) for rows in cuts]
    found = _at(parts, torch.tensor([place for tile in places for place in tile])).lse
    return torch.stack([tile.min() for tile in found.split([len(tile) for tile in places])]) - math.log(2)


def _at(parts: Iterable[Ready], rows: Int[Tensor, " rows"]) -> Pooled:
    return reduce(merge, (points.at(rows) for points in parts))


def _missing(log_lost: Float[Tensor, " q"], state: Pooled) -> Float[Tensor, " q"]:
    """What was left out, as a share of what was found, which is rounded."""
    return torch.exp(log_lost - state.lse + SQUARES * state.lse.abs())


def _taken(problem: Scaled, query: Float[Tensor, "q dim"], some: list[slice]) -> Scaled:
    def take(tensor: Tensor) -> Tensor:
        return tensor[some[0]] if len(some) == 1 else torch.cat([tensor[run] for run in some])

    return problem.taking(take).asking(query)
