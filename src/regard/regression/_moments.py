"""Means and covariances of the data around each query: what a local line and a derivative are made of.

All are averages under the kernel's weights p_i, so any way to pool serves. A covariance is then a difference of
averages, E[v y] - E[v] E[y], which loses digits where the data reaches much farther than the kernel: v is centred and
in units in which the local spread is about 1, y is centred, and the averages are asked for with a smaller error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression._data import Data
from regard.regression.sums._exact_lines import FLAT, TINY

SMALLEST_TOL = 1e-14  # what is asked for below that is asked of float64 itself
ROUNDED = 1e-2  # of a second moment from the origin: times FLAT this is well above what rounding leaves


@dataclass(frozen=True, eq=False)
class Frame:
    """Where x and y are measured from, and in which units: v = (x - centre) / unit."""

    centre: Float[Tensor, " dim"]
    unit: Float[Tensor, " dim"]
    level: Float[Tensor, " outputs"]

    @classmethod
    def of(cls, data: Data) -> Frame:
        x, share = data.sample.x, data.share()
        centre = share @ x
        # A feature of infinite width is weighted everywhere alike, and is still a direction of a local line.
        unit = torch.minimum(data.widths, (share @ (x - centre).square()).sqrt())
        return cls(centre, torch.where(unit > 0, unit, 1.0), share @ data.sample.values)

    def place(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        return (points - self.centre) / self.unit


@dataclass(frozen=True, eq=False)
class Moments:
    """At each query, under its weights p: the mean of v and of y, and how they vary together."""

    frame: Frame
    lse: Float[Tensor, " q"]  # nothing but zeros where a derivative is wanted
    v: Float[Tensor, "q dim"]
    away: Float[Tensor, "q dim"]  # from the mean of v to the query
    vv: Float[Tensor, "q dim dim"]  # the covariance of v
    y: Float[Tensor, "q outputs"]
    vy: Float[Tensor, "q dim outputs"]  # the covariance of v and y

    @torch.no_grad()
    def inverse(self) -> Float[Tensor, "q dim dim"]:
        """The pseudo-inverse of the spread: a direction in which the data near by hardly varies counts as flat."""
        spread = self.vv.diagonal(dim1=1, dim2=2)
        unit = (spread + self.away.square() + ROUNDED * (spread + self.v.square())).clamp_min(TINY).sqrt().unsqueeze(2)
        scaled = self.vv / unit / unit.mT
        if scaled.shape[1] == 1:
            return torch.where(scaled > FLAT, 1 / scaled, 0.0) / unit / unit.mT
        strength, direction = torch.linalg.eigh(scaled)
        return (
            (direction * torch.where(strength > FLAT, 1 / strength, 0.0).unsqueeze(1)) @ direction.mT / unit / unit.mT
        )

    def solved(self, right: Float[Tensor, "q dim columns"]) -> Float[Tensor, "q dim columns"]:
        """S^+ right, with a step of refinement that also carries its derivative, S^+ (d right - dS found)."""
        inverse = self.inverse()
        found = (inverse @ right).detach()
        return found + inverse @ (right - self.vv @ found)


def moments(data: Data, query: Float[Tensor, "q dim"], *, differentiable: bool = False) -> Moments:
    """All that a line needs at each query."""
    frame = Frame.of(data)
    v, y = frame.place(data.sample.x), data.sample.values - frame.level
    dim, outputs = v.shape[1], y.shape[1]
    rows, cols = torch.triu_indices(dim, dim, device=v.device)
    columns = torch.cat([v, y, _products(v, y), v[:, rows] * v[:, cols]], 1)
    if differentiable:
        lse, mean = torch.zeros_like(query[:, 0]), data.differentiable(query, columns)
    else:
        lse, mean, _ = data.pool(query, columns, _finer(data.tol, 1 + _farthest(v) ** 2))
    mean_v, mean_y, mean_vy, mean_vv = mean.split([dim, outputs, dim * outputs, len(rows)], 1)
    vv = mean_v.new_zeros(len(mean), dim, dim)
    vv[:, rows, cols] = mean_vv
    vv[:, cols, rows] = mean_vv
    return Moments(
        frame,
        lse,
        mean_v,
        frame.place(data.points(query)) - mean_v,
        vv - mean_v.unsqueeze(2) * mean_v.unsqueeze(1),
        mean_y,
        mean_vy.unflatten(1, (dim, outputs)) - mean_v.unsqueeze(2) * mean_y.unsqueeze(1),
    )


def covariance(data: Data, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
    """Of x and y around each query, in their own units."""
    frame = Frame.of(data)
    v, y = frame.place(data.sample.x), data.sample.values - frame.level
    mean = data.pool(query, torch.cat([v, y, _products(v, y)], 1), _finer(data.tol, 1 + _farthest(v))).mean
    mean_v, mean_y, mean_vy = mean.split([v.shape[1], y.shape[1], v.shape[1] * y.shape[1]], 1)
    found = mean_vy.unflatten(1, (v.shape[1], y.shape[1])) - mean_v.unsqueeze(2) * mean_y.unsqueeze(1)
    return found * frame.unit.unsqueeze(1)


def _products(v: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n products"]:
    return (v.unsqueeze(2) * y.unsqueeze(1)).flatten(1)


def _farthest(v: Float[Tensor, "n dim"]) -> float:
    return float(v.abs().amax()) if v.numel() else 0.0  # nothing to measure: all features are categories


def _finer(tol: float, reach: float) -> float:
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
