"""Kernel averages with every weight told relative to the nearest point: exact at any distance, and slower.

-|q - x_i|^2 / 2 is 5 * 10^11 at a million bandwidths, and float64 leaves 4 digits of what weights it has behind the
point. What matters are differences, and these need no large squares: with x_0 the point nearest to q,

    (|q - x_0|^2 - |q - x_i|^2) / 2 = (x_i - x_0).(q - (x_i + x_0) / 2),

where x_i - x_0 is taken before anything is divided, so that it is exact for points that are close to each other. For
the Laplace kernel the same over the mean of both distances is the difference of the distances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard._operands import NEVER
from regard.regression.sums import _cells
from regard.regression.sums._cloud import ROUNDING
from regard.regression.sums._direct import gathered, log_kernel, squared_distance
from regard.regression.sums._plan import EXACT_PAIRS
from regard.regression.sums._sample import INFINITE, Sample
from regard.regression.sums._scaled import Scaled, counting, scaled
from regard.regression.sums._state import Pooled

TILE = 1 << 18  # pairs at a time
MOST = 256  # queries in a tile; where they are few, they are seldom neighbours, and each is alone
DEEPEST = -1e4  # the log of a total weight below which its parts have lost more than three digits
SEEN = 0.01  # of `tol`
FAINT = 100.0  # the log of a weight beside another that it cannot be seen beside, even a million times
FAINTEST = 2.0**-100  # a spread of nearly nothing may be asked for, and is made by few faint points
FARTHEST = torch.finfo(torch.float64).max


class Seen(NamedTuple):
    """Some queries and all points that matter to them."""

    weights: Float[Tensor, "q n"]  # of sum 1
    apart: Float[Tensor, "dim q n"]  # from the point nearest to the query, in bandwidths
    gap: Float[Tensor, "q dim"]  # from that point to the query
    values: Float[Tensor, "n columns"]


Answer = Callable[[Seen], Float[Tensor, "q answers"]]


def average(seen: Seen) -> Float[Tensor, "q columns"]:
    return seen.weights @ seen.values


def mended(sample: Sample, query: Float[Tensor, "q dim"], found: Pooled, tol: float) -> Pooled:
    """The same averages, told anew for queries so far from all points that others have lost too many digits.

    Where all pairs are taken three digits are too many, elsewhere what can be seen beside `tol`.
    """
    if sample.kernel not in INFINITE or not len(sample.x):
        return found
    heaviest = 0.0 if sample.log_weight is None else float(sample.log_weight.max())
    exact = len(query) * len(sample.x) <= EXACT_PAIRS
    deepest = DEEPEST if exact else min(DEEPEST, -SEEN * tol / ROUNDING)
    far = (~(found.lse - heaviest >= deepest)).nonzero().squeeze(-1)
    if not len(far) or heaviest == NEVER:
        return found
    again = pool(sample, query[far])
    return Pooled(*(whole.index_copy(0, far, part) for whole, part in zip(found, again, strict=True)))


def pool(sample: Sample, query: Float[Tensor, "q dim"]) -> Pooled:
    """The average at each query."""
    problem, found = answered(sample, query, average)
    return problem.lift(found)


def answered(sample: Sample, query: Float[Tensor, "q dim"], answer: Answer) -> tuple[Scaled, Pooled]:
    """What `answer` makes of the points around each query, in the units of the problem, which is returned too."""
    problem, raw = scaled(sample, query), counting(sample).x
    width, columns = sample.bandwidth[torch.isfinite(sample.bandwidth)], problem.values.shape[1]

    def block(part: Scaled) -> Pooled:
        values, places = part.values[:, :columns], part.values[:, columns:]
        states: list[Pooled] = []
        for some in part.query.split(max(1, TILE // len(part.x))):
            asked = part.asking(some)
            seen = _seen(asked)
            points = asked.taking(lambda side, seen=seen: side[seen])
            states.append(_block(points, places[seen], width, values[seen], answer))
        return gathered(states, columns, part.query)

    carrying = replace(  # places go where the points go, as values in units of their own
        problem,
        values=torch.cat([problem.values, raw], 1),
        middle=torch.cat([problem.middle, torch.zeros_like(width)]),
        unit=torch.cat([problem.unit, torch.ones_like(width)]),
    )
    if problem.x.device.type != "cpu" or not problem.x.shape[1]:
        return problem, block(carrying)
    queries = min(max(1, len(query) // MOST), MOST)
    return problem, _cells.by_tiles(
        carrying,
        0.0,
        _cells.POINTS,
        queries,
        lambda part: _cells.Plain(part, block),
        keys=len(problem.x),
        rounding=FAINTEST,
        by_point=False,
    )


def _seen(part: Scaled) -> Tensor:
    """Which points one of the queries could see: a first look, with all its rounding, spares most of the work."""
    rough = log_kernel(squared_distance(part.query, part.x), part.kernel)
    rough = rough if part.log_weight is None else rough + part.log_weight
    top = rough.amax(1, keepdim=True)
    return (~(rough < top - FAINT - top.abs() * _cells.SQUARES)).any(0).nonzero().squeeze(-1)


def _from(nearest: Tensor, part: Scaled, places: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """How far all points are from these, and by how much half the square of their distance to the query is less."""
    apart = places.new_empty(places.shape[1], len(part.query), len(places))
    nearer = places.new_zeros(len(part.query), len(places))
    for axis, one in enumerate(apart):
        place, x = places[:, axis], part.x[:, axis]
        torch.sub(place, place[nearest].unsqueeze(1), out=one).div_(width[axis])
        nearer.addcmul_(one, part.query[:, axis : axis + 1] - (x + x[nearest].unsqueeze(1)) / 2)
    return apart, nearer


def _block(part: Scaled, places: Tensor, width: Tensor, values: Tensor, answer: Answer) -> Pooled:
    square = squared_distance(part.query, part.x)
    nearest = square.argmin(1)
    apart, nearer = _from(nearest, part, places, width)
    for _ in range(part.x.shape[1]):  # squares far away are all the same: the nearest is found one feature at a time
        better = nearer.amax(1) > 0
        if not bool(better.any()):
            break
        nearest = torch.where(better, nearer.argmax(1), nearest)
        apart, nearer = _from(nearest, part, places, width)
    best = square.gather(1, nearest.unsqueeze(1))
    if part.kernel == "laplace":
        nearer /= ((square.sqrt() + best.sqrt()) / 2).clamp_min(torch.finfo(square.dtype).tiny)
    logits = nearer if part.log_weight is None else nearer + part.log_weight
    top = logits.amax(1, keepdim=True)
    weights = torch.exp(logits - top)
    total = weights.sum(1, keepdim=True)
    lse = (log_kernel(best, part.kernel) + top + total.log()).squeeze(1)
    seen = Seen(weights.div_(total), apart, part.query - part.x[nearest], values)
    return Pooled(lse.clamp_min(-FARTHEST), answer(seen), torch.zeros_like(lse))
