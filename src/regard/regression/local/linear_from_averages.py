"""Local lines from averages around each query, for many pairs: quick, and certain of what they are certain of.

A covariance is here a difference of averages, E[v y] - E[v] E[y], and so is off by what these are off by: by what was
left out, which they tell, and by rounding, which is a part of the numbers that are added. Each answer comes with the
queries at which that may matter. Those are to be asked again, of the points themselves; and so are those where a
direction may be flat, so that what is flat is decided in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local import squared_weights
from regard.regression.local.data import Data
from regard.regression.local.linear_exact import FLAT, TINY
from regard.regression.local.moments import Frame, Moments, Off, columns_of, farthest, finer

ROUNDING = 2.0**-46  # of what is added up, at most: some hundred roundings
CAREFUL = 2.0  # times what errors do at first order, which is nearly all where that is small
OWN = 1e-3  # a point beside whom the others weigh less than this part of all is asked for again without it
FIRM = 16.0  # times what it may be off by and FLAT: a direction that varies by more is none that is flat

Found = tuple[tuple[Tensor, ...], Bool[Tensor, " q"]]


@dataclass(frozen=True, eq=False)
class Averages:
    """What a line is made of at each query, and by how much that may be off."""

    line: Moments
    off: Float[Tensor, "q columns"]

    @classmethod
    def of(cls, frame: Frame, points: Float[Tensor, "q dim"], pooled: Pooled, columns: Tensor) -> Averages:
        line = Moments.of(frame, points, pooled.lse, pooled.mean)
        size = (line.vv.diagonal(dim1=1, dim2=2).clamp_min(0) + line.v.square()).sqrt() + line.away.abs()
        dim, outputs = len(frame.centre), len(frame.level)
        high = columns[:, dim : dim + outputs].abs().amax(0).expand(len(size), -1)
        # Averages are told from the mean of each column, which in heavy tails is larger than all that is near.
        added = columns_of(size, high) + columns.abs().mean(0)
        off = pooled.error.unsqueeze(1) * scale_of(columns) + ROUNDING * added
        return cls(line, off)

    @cached_property
    def moved(self) -> Off:
        """What that does to means and covariances."""
        return Off.of(self.line, self.off, self.line.v)

    def flat(self) -> Bool[Tensor, " q"]:
        """Where a direction is nearly flat, as far as that can be told."""
        line = self.line
        if not line.v.shape[1]:
            return torch.zeros_like(line.lse, dtype=torch.bool)
        unit = (line.vv.diagonal(dim1=1, dim2=2).clamp_min(0) + line.away.square()).sqrt().clamp_min(TINY).unsqueeze(2)
        least = torch.linalg.eigvalsh(line.vv / unit / unit.mT)[:, 0]
        firm = least > FIRM * (FLAT + (self.moved.vv / unit / unit.mT).sum(2).amax(1))
        return ~firm

    def tilt(self) -> tuple[Float[Tensor, "q dim"], Float[Tensor, "q dim"]]:
        """S^-1 (x - m), and by how much it may be off."""
        line = self.line
        found = line.solved(line.away.unsqueeze(2))
        moved = line.inverse().abs() @ (self.moved.v.unsqueeze(2) + self.moved.vv @ found.abs())
        return found.squeeze(2), CAREFUL * moved.squeeze(2)

    def value(self, tol: Float[Tensor, " outputs"]) -> tuple[Float[Tensor, "q outputs"], Bool[Tensor, " q"]]:
        """The line at each query, and where it may be off by more than that."""
        slope, (tilt, _) = self.line.solved(self.line.vy), self.tilt()
        moved = self.line.moved(self.moved, tilt, slope)
        return self.line.value(slope), self.doubt(~(CAREFUL * moved <= tol).all(1))

    def doubt(self, off: Bool[Tensor, " q"]) -> Bool[Tensor, " q"]:
        """Where something is off, or nearly flat; not where no point is in reach, which is certain."""
        return (off | self.flat()) & (self.line.lse > NEVER)


Pool = Callable[[Float[Tensor, "n columns"], float], Pooled]


def averages(sample: Sample, points: Float[Tensor, "q dim"], pool: Pool, tol: float) -> Averages:
    """Around each of these points. A feature that never changes has no slope, and is not asked for."""
    changes = sample.x.amax(0) > sample.x.amin(0)
    some = replace(sample, x=sample.x[:, changes], bandwidth=sample.bandwidth[changes])
    frame = Frame.of(some)
    columns = frame.columns(some.x, some.values)
    reach = 1 + farthest(columns[:, : len(frame.centre)]) ** 2
    return Averages.of(frame, points[:, changes], pool(columns, finer(tol, reach)), columns)


def value(data: Data, query: Float[Tensor, "q dim"]) -> Found:
    """The line at each query, from the mean of all y."""
    known = averages(data.sample, data.points(query), partial(data.pool, query), data.tol)
    found, doubt = known.value(data.tol * scale_of(data.sample.values))
    return (known.line.lse, found - data.sample.values.mean(0)), doubt


def left_out(sample: Sample, pool: Pool, tol: float, log_left_out: Float[Tensor, " n"]) -> tuple[Tensor, Tensor]:
    """The line at each point through the others, of whose averages `pool` tells, and where it is in doubt."""
    rest = torch.ones_like(log_left_out)

    def others(columns: Tensor, tol: float) -> Pooled:
        lse, mean, error = pool(columns, tol)
        own = torch.exp(log_left_out - lse).clamp_max(1.0 - OWN)
        torch.sub(1, own, out=rest)
        # An error of the total weight is one of a point's own share in it.
        apart = ((columns - mean).abs() / scale_of(columns)).amax(1)
        mean = (mean - own.unsqueeze(1) * columns) / rest.unsqueeze(1)
        return Pooled(lse + rest.log(), mean, error * (1 + apart) / rest.square())

    known = averages(sample, sample.x, others, tol)
    known = replace(known, off=known.off / rest.unsqueeze(1))
    found, doubt = known.value(tol * scale_of(sample.values))
    return found, doubt | (rest < 2 * OWN)


def lift(data: Data, query: Float[Tensor, "q dim"]) -> Found:
    """(x - m) S^-1 (x - m)."""
    known = averages(_without_y(data.sample), data.points(query), partial(data.pool, query), data.tol)
    tilt, moved = known.tilt()
    away = known.line.away
    found = (away * tilt).sum(1).clamp_min(0)
    doubt = ~((moved * away.abs() + tilt.abs() * known.moved.v).sum(1) <= data.tol * (1 + found))
    return (known.line.lse, found), known.doubt(doubt)


def noise(variance: Float[Tensor, "n outputs"]) -> Callable[[Data, Tensor], Found]:
    """The mean variance, sum_i l_i^2 / s_i and sum_i p_i^2 / s_i."""

    def found(data: Data, query: Float[Tensor, "q dim"]) -> Found:
        sample, points, near = _without_y(data.sample), data.points(query), data.pool(query, variance)
        known = averages(sample, points, partial(data.pool, query), data.tol)
        # Under p^2 / s, of which none is negative, 1 + t.(v - m) has a mean and a variance.
        squared = averages(sample, points, partial(squared_weights.pool, data, query, near.lse), data.tol)
        line, (tilt, moved) = known.line, known.tilt()
        apart = squared.line.v - line.v
        mean, tilted = 1 + (apart * tilt).sum(1), (squared.line.vv @ tilt.unsqueeze(2)).squeeze(2)
        part = (tilt * tilted).sum(1).clamp_min(0)
        size = tilt.abs()
        off_mean = (size * (known.moved.v + squared.moved.v) + moved * apart.abs()).sum(1)
        off_part = (size * (squared.moved.vv @ size.unsqueeze(2)).squeeze(2) + 2 * moved * tilted.abs()).sum(1)
        kept = mean.square() + part
        doubt = ~(2 * mean.abs() * off_mean + off_mean.square() + off_part <= data.tol * kept)
        total = squared.line.lse.exp()
        return (near.lse, near.mean, total * kept, total), known.doubt(doubt)

    return found


def _without_y(sample: Sample) -> Sample:
    return replace(sample, values=sample.values[:, :0])
