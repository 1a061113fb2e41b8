"""Means and covariances of the data around each query: what lines and derivatives are made of where pairs are many.

All are averages under the kernel's weights p_i, so any way to pool serves. A covariance is then a difference of
averages, E[v y] - E[v] E[y], which loses digits where the data reaches much farther than the kernel: v is centred and
in units in which the local spread is about 1, y is centred, and the averages are asked for with a smaller error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums.sample import Sample
from regard.regression.local.data import Data
from regard.regression.local.linear_exact import FLAT, TINY

SMALLEST_TOL = 1e-14  # what is asked for below that is asked of float64 itself
ROUNDED = 1e-2  # of a second moment from the origin: times FLAT this is well above what rounding leaves


@dataclass(frozen=True, eq=False)
class Frame:
    """Where x and y are measured from, and in which units: v = (x - centre) / unit."""

    centre: Float[Tensor, " dim"]
    unit: Float[Tensor, " dim"]
    level: Float[Tensor, " outputs"]

    @classmethod
    def of(cls, sample: Sample) -> Frame:
        x, share = sample.x, sample.share()
        centre = share @ x
        deviation = (share @ (x - centre).square()).sqrt()
        return cls.around(centre, deviation, sample.bandwidth, share @ sample.values)

    @classmethod
    def around(
        cls,
        centre: Float[Tensor, " dim"],
        deviation: Float[Tensor, " dim"],
        width: Float[Tensor, " dim"],
        level: Float[Tensor, " outputs"],
    ) -> Frame:
        """From the means of x and y, and from how wide data and kernel are."""
        # A feature of infinite width is weighted everywhere alike, and is still a direction of a local line.
        unit = torch.minimum(width, deviation)
        return cls(centre, torch.where(unit > 0, unit, 1.0), level)

    def place(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        return (points - self.centre) / self.unit

    def columns(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
        """What is averaged around each query: all that a line is made of."""
        return columns_of(self.place(x), y - self.level)


@dataclass(frozen=True, eq=False)
class Moments:
    """At each query, under its weights p: the mean of v and of y, and how they vary together."""

    frame: Frame
    lse: Float[Tensor, " q"]
    v: Float[Tensor, "q dim"]
    away: Float[Tensor, "q dim"]  # from the mean of v to the query
    vv: Float[Tensor, "q dim dim"]  # the covariance of v
    y: Float[Tensor, "q outputs"]
    vy: Float[Tensor, "q dim outputs"]  # the covariance of v and y

    @classmethod
    def of(
        cls, frame: Frame, points: Float[Tensor, "q dim"], lse: Float[Tensor, " q"], mean: Float[Tensor, "q columns"]
    ) -> Moments:
        """From the averages of `Frame.columns` around these points."""
        v, y, vy, vv = split(mean, len(frame.centre), len(frame.level))
        vv = vv - v.unsqueeze(2) * v.unsqueeze(1)
        return cls(frame, lse, v, frame.place(points) - v, vv, y, vy - v.unsqueeze(2) * y.unsqueeze(1))

    def inverse(self) -> Float[Tensor, "q dim dim"]:
        """The pseudo-inverse of the spread: a direction in which the data near by hardly varies counts as flat."""
        spread = self.vv.diagonal(dim1=1, dim2=2)
        near, rounded = spread + self.away.square(), ROUNDED * (spread + self.v.square())
        unit = (near + rounded).clamp_min(TINY).sqrt().unsqueeze(2)
        scaled = self.vv / unit / unit.mT
        if scaled.shape[1] == 1:
            return torch.where(scaled > FLAT, 1 / scaled, 0.0) / unit / unit.mT
        strength, direction = torch.linalg.eigh(scaled)
        kept = strength > FLAT
        found = _composed(direction, torch.where(kept, 1 / strength, 0.0)) / unit / unit.mT
        some = (kept.any(1) & ~kept.all(1)).nonzero().squeeze(1)
        if len(some):
            known = _composed(direction[some], torch.where(kept, strength, 0.0)[some]) * unit[some] * unit[some].mT
            close = torch.maximum(near, FLAT * rounded)[some].clamp_min(TINY).sqrt().unsqueeze(2)
            found[some] = _flattest(known, close, kept[some].sum(1))
        return found

    def solved(self, right: Float[Tensor, "q dim columns"]) -> Float[Tensor, "q dim columns"]:
        """S^+ right, with a step of refinement."""
        inverse = self.inverse()
        found = inverse @ right
        return found + inverse @ (right - self.vv @ found)

    def value(self, slope: Float[Tensor, "q dim outputs"] | None = None) -> Float[Tensor, "q outputs"]:
        """The line at the query itself."""
        slope = self.solved(self.vy) if slope is None else slope
        return self.frame.level + self.y + (self.away.unsqueeze(1) @ slope).squeeze(1)

    def moved(self, off: Off, tilt: Float[Tensor, "q dim"], slope: Tensor) -> Float[Tensor, "q outputs"]:
        """By how much the line may be off at the query, at first order.

        With a the way from the mean of v to the query and b = S^+ Cov(v, y), a line E[y] + a.b moves with its averages
        by dE[y] + b.da + (S^+ a).(dCov - dS b).
        """
        slope = slope.abs()
        return off.y + (off.v.unsqueeze(1) @ slope + tilt.abs().unsqueeze(1) @ (off.vy + off.vv @ slope)).squeeze(1)


class Off(NamedTuple):
    """By how much the parts of `Moments` may be off."""

    v: Float[Tensor, "q dim"]
    y: Float[Tensor, "q outputs"]
    vy: Float[Tensor, "q dim outputs"]
    vv: Float[Tensor, "q dim dim"]

    @classmethod
    def of(cls, line: Moments, columns: Float[Tensor, "q columns"], middle: Float[Tensor, "q dim"]) -> Off:
        """From what averages of `Frame.columns` may be off by, and how far the mean is from where these are told."""
        v, y, vy, vv = split(columns, line.v.shape[1], line.y.shape[1])
        middle, off = middle.abs().unsqueeze(2), v.unsqueeze(2)
        spread = vv + middle * off.mT + off * middle.mT
        return cls(v, y, vy + middle * y.unsqueeze(1) + off * line.y.abs().unsqueeze(1), spread)


def columns_of(v: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
    """v, y, their products, and those of v with itself, each once."""
    rows, cols = torch.triu_indices(v.shape[1], v.shape[1], device=v.device)
    return torch.cat([v, y, _products(v, y), v[:, rows] * v[:, cols]], 1)


def split(columns: Float[Tensor, "q columns"], dim: int, outputs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The parts of `columns_of`, each in its own shape: (q, dim), (q, outputs), (q, dim, outputs), (q, dim, dim)."""
    rows, cols = torch.triu_indices(dim, dim, device=columns.device)
    v, y, vy, once = columns.split([dim, outputs, dim * outputs, len(rows)], 1)
    vv = columns.new_zeros(len(columns), dim, dim)
    vv[:, rows, cols] = once
    vv[:, cols, rows] = once
    return v, y, vy.unflatten(1, (dim, outputs)), vv


def _composed(direction: Float[Tensor, "q dim dim"], strength: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim dim"]:
    return (direction * strength.unsqueeze(1)) @ direction.mT


def _flattest(
    spread: Float[Tensor, "q dim dim"], unit: Float[Tensor, "q dim 1"], rank: Int[Tensor, " q"]
) -> Float[Tensor, "q dim dim"]:
    """The pseudo-inverse of a spread that lacks directions: of all lines that fit, it takes the flattest.

    What is flat depends on units. Here they are how far the points are from the query, wherever the origin is: so they
    are in leave-one-out and in `_exact_lines`.
    """
    strength, direction = torch.linalg.eigh(spread / unit / unit.mT)
    last = torch.arange(spread.shape[1], device=rank.device) >= spread.shape[1] - rank.unsqueeze(1)
    return _composed(direction, torch.where(last, 1 / strength, 0.0)) / unit / unit.mT


def covariance(data: Data, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
    """Of x and y around each query, in their own units."""
    frame = Frame.of(data.sample)
    v, y = frame.place(data.sample.x), data.sample.values - frame.level
    mean = data.pool(query, torch.cat([v, y, _products(v, y)], 1), finer(data.tol, 1 + farthest(v))).mean
    mean_v, mean_y, mean_vy = mean.split([v.shape[1], y.shape[1], v.shape[1] * y.shape[1]], 1)
    found = mean_vy.unflatten(1, (v.shape[1], y.shape[1])) - mean_v.unsqueeze(2) * mean_y.unsqueeze(1)
    return found * frame.unit.unsqueeze(1)


def _products(v: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n products"]:
    return (v.unsqueeze(2) * y.unsqueeze(1)).flatten(1)


def farthest(v: Float[Tensor, "n dim"]) -> float:
    return float(v.abs().amax()) if v.numel() else 0.0  # nothing to measure: all features are categories


def finer(tol: float, reach: float) -> float:
    """The error that averages may have whose differences are so much smaller than they are."""
    return max(tol / (4 * reach), SMALLEST_TOL)


def by_autograd(
    function: Callable[[Float[Tensor, "q dim"]], Float[Tensor, "q outputs"]], query: Float[Tensor, "q dim"]
) -> Float[Tensor, "q dim outputs"]:
    """The derivative of each output, for a function that answers queries one by one."""
    with torch.enable_grad():
        place = query.detach().clone().requires_grad_()
        answer = function(place)
        parts = [torch.autograd.grad(column.sum(), place, retain_graph=True)[0] for column in answer.unbind(1)]
    return torch.stack(parts, 2)
