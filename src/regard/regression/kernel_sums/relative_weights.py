"""Kernel averages with every weight told relative to the nearest point: exact at any distance, and slower.

-|q - x_i|^2 / 2 is 5 * 10^11 at a million bandwidths, and float64 leaves 4 digits of what weights it has behind the
point. What matters are differences, and these need no large squares: with x_0 the point nearest to q,

    (|q - x_0|^2 - |q - x_i|^2) / 2 = (x_i - x_0).((q - x_i) + (q - x_0)) / 2,

where every difference is taken before anything is divided, so that it is exact for points that are close to each other.
For the Laplace kernel the same over the mean of both distances is the difference of the distances.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.operands import NEVER
from regard.regression.kernel_sums import pruned_tiles
from regard.regression.kernel_sums.cloud import ROUNDING
from regard.regression.kernel_sums.direct import log_kernel
from regard.regression.kernel_sums.kd_tree import Tiles, tiles
from regard.regression.kernel_sums.plan import EXACT_PAIRS
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.scaled import scaled
from regard.regression.kernel_sums.state import Pooled

TILE = 1 << 18  # pairs at a time
MOST = 256  # queries in a tile; where they are few, they are seldom neighbours, and each is alone
DEEPEST = -1e4  # the log of a total weight below which its parts have lost more than three digits
SEEN = 0.01  # of `tol`
FAINTEST = 2.0**-100  # a spread of nearly nothing may be asked for, and is made by few faint points
FARTHEST = torch.finfo(torch.float64).max


class Seen(NamedTuple):
    """Some queries and all points that matter to them."""

    queries: Int[Tensor, " q"]  # which these are
    points: Int[Tensor, " n"]
    weights: Float[Tensor, "q n"]  # of sum 1; nothing but 0 where no point is in reach
    apart: Float[Tensor, "q dim n"]  # from the point nearest to the query, in bandwidths
    gap: Float[Tensor, "q dim"]  # from that point to the query
    square: Float[Tensor, "q n"]  # of the distance from the query, in bandwidths
    log_weight: Float[Tensor, " n"] | None  # of the points
    lse: Float[Tensor, " q"]


class Own(NamedTuple):
    """Queries that are points themselves, and how much of its weight such a point keeps for itself."""

    points: Int[Tensor, " q"]
    log_kept: Float[Tensor, " q"] | None = None  # None: nothing

    def of(self, some: Int[Tensor, " p"]) -> Own:
        return Own(self.points[some], None if self.log_kept is None else self.log_kept[some])


Answer = Callable[[Seen], tuple[Tensor, ...]]


def mended(sample: Sample, query: Float[Tensor, "q dim"], found: Pooled, tol: float) -> Pooled:
    """The same averages, told anew for queries so far from all points that others have lost too many digits.

    Where all pairs are taken three digits are too many, elsewhere what can be seen beside `tol`.
    """
    if kernels.get(sample.kernel).compact or not len(sample.x):
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
    middle = sample.values.mean(0)
    values = sample.values - middle
    lse, mean = answered(sample, query, lambda seen: (seen.weights @ values[seen.points],))
    return Pooled(lse, mean + middle, torch.zeros_like(lse))


def answered(
    sample: Sample, query: Float[Tensor, "q dim"], answer: Answer, own: Own | None = None
) -> tuple[Tensor, ...]:
    """The log of the total weight at each query, and all that `answer` makes of the points around it.

    What `answer` gives has a row for each query. Points are left out that are too faint to be told.
    """
    unit, counting = units(sample), _counting(sample)

    def one(task: Task) -> tuple[Tensor, ...]:
        points = counting if task.points is None else counting[task.points()]
        points = points if len(points) else counting[:1]  # out of reach, which its weight will say
        parts = []
        for some in task.queries.split(max(1, TILE // max(1, len(points)))):
            seen = _seen(sample, unit, query, some, points, own)
            parts.append((seen.lse, *answer(seen)))
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    tasks = _tasks(sample, query)
    parts = threads.parallel_map(one, tasks) if query.device.type == "cpu" else [one(task) for task in tasks]
    back = torch.argsort(torch.cat([task.queries for task in tasks]))
    return tuple(torch.cat(part)[back] for part in zip(*parts, strict=True))


class Task(NamedTuple):
    """Queries that lie together, and the points that matter to one of them."""

    queries: Int[Tensor, " q"]
    points: Callable[[], Int[Tensor, " n"]] | None = None  # of those that count; None: all


def _counting(sample: Sample) -> Int[Tensor, " n"]:
    """Points with a weight."""
    everyone = torch.arange(len(sample.x), device=sample.x.device)
    return everyone if sample.log_weight is None else everyone[sample.log_weight > NEVER]


def units(sample: Sample) -> Float[Tensor, " dim"]:
    """Of each feature: its width, or where that is infinite how far its values differ."""
    told = torch.isfinite(sample.bandwidth)
    return sample.bandwidth if bool(told.all()) else torch.where(told, sample.bandwidth, scale_of(sample.x))


def _tasks(sample: Sample, query: Float[Tensor, "q dim"]) -> list[Task]:
    problem = scaled(sample, query)
    n, everyone = len(problem.x), torch.arange(len(query), device=query.device)
    if query.device.type != "cpu" or not problem.x.shape[1] or not len(query) or n <= pruned_tiles.POINTS:
        return [Task(some) for some in everyone.split(max(1, TILE // max(1, n)))]
    few = len(query) * n <= EXACT_PAIRS
    size = max(1, TILE // n) if few else min(max(1, len(query) // MOST), MOST)
    there, asked = tiles(problem.x, pruned_tiles.POINTS), tiles(problem.query, size)
    log_weights = pruned_tiles.tile_weights(there, problem.log_weight)
    step = max(1, pruned_tiles.BOXES // len(there))
    found: list[Task] = []
    for low in range(0, len(asked), step):
        some = range(low, min(low + step, len(asked)))
        reach = pruned_tiles.reach_of(asked, some, there, log_weights, problem.kernel, FAINTEST)
        found += [
            Task(asked.order[asked.cut(tile)], partial(_members, there, row))
            for tile, row in zip(some, reach.kept, strict=True)
        ]
    return found


def _members(there: Tiles, kept: Bool[Tensor, " tiles"]) -> Int[Tensor, " n"]:
    if bool(kept.all()):
        return there.order
    return torch.cat([there.order[:0], *(there.order[there.cut(tile)] for tile in kept.nonzero().flatten().tolist())])


def _seen(sample: Sample, unit: Tensor, query: Tensor, some: Tensor, points: Tensor, own: Own | None) -> Seen:
    x, at = sample.x[points], query[some]
    told = torch.isfinite(sample.bandwidth).nonzero().flatten().tolist()
    square = at.new_zeros(len(at), len(x))
    ways = [(at[:, axis : axis + 1] - x[:, axis]).div_(unit[axis]) for axis in told]
    for way in ways:
        square.addcmul_(way, way)
    hidden = None if own is None else points == own.points[some].unsqueeze(1)
    if hidden is not None and own is not None and own.log_kept is None:
        square.masked_fill_(hidden, torch.inf)
    apart, gap = _from(square.argmin(1), x, at, unit)
    best = square.amin(1, keepdim=True)
    if not kernels.get(sample.kernel).compact:
        logits = _nearer(sample.kernel, apart, ways, gap, told, square, best)
        for _ in told:  # squares far away are all the same: the nearest is found one feature at a time
            nearer = logits.masked_fill(square == torch.inf, NEVER)
            if not bool((nearer > 0).any()):
                break
            apart, gap = _from(nearer.argmax(1), x, at, unit)
            logits = _nearer(sample.kernel, apart, ways, gap, told, square, best)
        floor = log_kernel(best, sample.kernel).squeeze(1)
    else:
        logits, floor = log_kernel(square, sample.kernel), 0.0
    log_weight = None if sample.log_weight is None else sample.log_weight[points]
    if log_weight is not None:
        logits += log_weight
    if hidden is not None and own is not None:
        logits = torch.where(hidden, NEVER if own.log_kept is None else logits + own.log_kept[some, None], logits)
    top = logits.amax(1, keepdim=True)
    weights = logits.sub_(torch.where(top == NEVER, 0.0, top)).exp_()
    total = weights.sum(1, keepdim=True)
    lse = (top + total.log()).squeeze(1)
    lse = torch.where(lse == NEVER, NEVER, (lse + floor).clamp_min(-FARTHEST))
    weights /= torch.where(total > 0, total, 1.0)
    return Seen(some, points, weights, apart, gap, square, log_weight, lse)


def _from(
    nearest: Int[Tensor, " q"], x: Float[Tensor, "n dim"], at: Float[Tensor, "q dim"], unit: Float[Tensor, " dim"]
) -> tuple[Float[Tensor, "q dim n"], Float[Tensor, "q dim"]]:
    """How far all points are from these, and these from the queries."""
    apart = torch.empty(len(at), x.shape[1], len(x), dtype=at.dtype, device=at.device)
    for axis, place in enumerate(x.unbind(1)):
        torch.sub(place, place[nearest].unsqueeze(1), out=apart[:, axis]).div_(unit[axis])
    return apart, (at - x[nearest]) / unit


def _nearer(
    kernel: str, apart: Tensor, ways: list[Tensor], gap: Tensor, told: list[int], square: Tensor, best: Tensor
) -> Float[Tensor, "q n"]:
    """The log of each weight, less that of the nearest point's."""
    found = torch.zeros_like(square)
    for axis, way in zip(told, ways, strict=True):
        found.addcmul_(apart[:, axis], way + gap[:, axis : axis + 1], value=0.5)
    return kernels.get(kernel).log_relative(found, square, best)
