"""Kernel averages of out-of-core data: each chunk is averaged on its own, and partial averages merge.

For local linear fits a chunk averages v, y, v y and v v (`local.least_squares`) in a frame of the summary that all
chunks share; lines are solved from the merged averages. Far from the frame's origin v v is large, and the Fourier sum,
whose error is a part of the whole, would leave few digits for a line. So it measures from the query itself, its result
is moved to the frame, and its error is stated as seen from the query. All other plans are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums import engine
from regard.regression.kernel_sums.plan import plan_for
from regard.regression.kernel_sums.radius_search import Nearest, nearest_points
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled, empty, merge
from regard.regression.local import linear_fourier
from regard.regression.local.least_squares import Frame, MomentErrors, Moments, moment_columns
from regard.regression.local.linear_fourier import Sums
from regard.regression.out_of_core.source import Chunk, Source, Summary

LINES_RANGE = 25.0  # largest difference of two chunks' averages, as seen from a query that the Fourier sum answers


class PartialState(NamedTuple):
    """Averages over some points at each query, which merge with those over other points."""

    average: Pooled
    nearest: Nearest | None = None  # for queries that no point reaches
    slope: Pooled | None = None  # under g = -2 dK / d(u^2), where leave-one-out needs it and it is not K

    def merge(self, other: PartialState, scale: Float[Tensor, " columns"] | None = None) -> PartialState:
        """The state of both parts of the data; `scale` is the unit of each column (see `state.merge`)."""
        nearest = None if self.nearest is None or other.nearest is None else self.nearest.merge(other.nearest)
        slope = None if self.slope is None or other.slope is None else merge(self.slope, other.slope)
        return PartialState(merge(self.average, other.average, scale), nearest, slope)


@dataclass(frozen=True, eq=False)
class ChunkAverage:
    """Settings of the average of one chunk. `scale` is the unit of each column over *all* data (see `scale_of`)."""

    bandwidth: Float[Tensor, " dim"]
    scale: Float[Tensor, " columns"]
    kernel: str = "gaussian"
    tol: float = 1e-6
    plan: str = "auto"
    find_nearest: bool = False  # for queries that no point reaches
    lines: LinearAverages | None = None  # for degree 1; degree 0 averages y

    def chunk_state(self, query: Float[Tensor, "q dim"], chunk: Chunk) -> PartialState:
        """Average of one chunk at each query, with an error in units of the whole data."""
        sample = self.sample(chunk, query.device)
        if not len(sample.x):
            shape = len(query), sample.values.shape[1]
            return PartialState(empty(*shape, query), Nearest.empty(*shape, query) if self.find_nearest else None)
        pooled = self._average(sample, query)
        if not self.find_nearest:
            return PartialState(pooled)
        # A query that another chunk reaches needs no nearest points; one that no chunk reaches gets them from all.
        return PartialState(pooled, nearest_points(sample, query, (pooled.lse == NEVER).nonzero().squeeze(1)))

    def _average(self, sample: Sample, query: Float[Tensor, "q dim"]) -> Pooled:
        if self.lines is not None:
            return self.lines.average(sample, query, self.tol, self.plan)
        # A chunk may vary more than the whole. Where it varies less, its total weight still needs the same precision.
        units = float((scale_of(sample.values) / self.scale).max().clamp_min(1.0))
        pooled = engine.pool(sample, query, tol=self.tol / units, plan=self.plan)
        return pooled._replace(error=pooled.error * units)

    def sample(self, chunk: Chunk, device: torch.device) -> Sample:
        """Rows of a chunk, with the columns to average as values."""
        columns = chunk.y if self.lines is None else self.lines.frame.columns(chunk.x, chunk.y)
        weight = None if chunk.log_weight is None else chunk.log_weight.to(device)
        return Sample(chunk.x.to(device), columns.to(device), self.bandwidth, self.kernel, weight)

    def merge(self, one: PartialState, two: PartialState) -> PartialState:
        return one.merge(two, self.scale)

    def inaccurate(self, query: Float[Tensor, "q dim"], pooled: Pooled) -> Bool[Tensor, " q"]:
        """Queries whose average, or whose line, may have an error above `tol`."""
        too_large = pooled.error > self.tol
        return too_large if self.lines is None else too_large | self.lines.uncertain(query, pooled, self.tol)

    def predictions(self, query: Float[Tensor, "q dim"], state: PartialState) -> Float[Tensor, "q outputs"]:
        """Predictions from averages of all chunks: the mean of the nearest points, or NaN, where no point reaches."""
        mean, nearest = state.average.mean, None if state.nearest is None else state.nearest.mean
        if self.lines is not None:
            mean = self.lines.values(query, mean)
            nearest = None if nearest is None else self.lines.frame.level + nearest[:, self.lines.outputs]
        return torch.where(state.average.lse.unsqueeze(1) == NEVER, math.nan if nearest is None else nearest, mean)


def average(source: Source, query: Float[Tensor, "q dim"], settings: ChunkAverage) -> PartialState:
    """Average of all chunks at each query, with an error of at most `settings.tol`."""
    # Half of the tolerance is for the chunks; merging chunks that differ adds to their errors.
    state = source.fold(partial(replace(settings, tol=settings.tol / 2).chunk_state, query), settings.merge)
    rows = settings.inaccurate(query, state.average).nonzero().squeeze(1)
    if not len(rows):
        return state
    # With tol = 0 only weights below rounding are left out: merging adds no error, however much chunks differ.
    exact = replace(settings, tol=0.0, find_nearest=False)
    better = source.fold(partial(exact.chunk_state, query[rows]), exact.merge).average
    state.average.put(rows, better)
    return state


@dataclass(frozen=True, eq=False)
class LinearAverages:
    """Degree 1: the columns that a chunk averages, how it averages them, and the line from merged averages."""

    frame: Frame
    width: Float[Tensor, " dim"]  # bandwidth in units of the frame
    scale: Float[Tensor, " columns"]  # unit of the errors of each column; as seen from a query no v is large

    @staticmethod
    def of(summary: Summary, bandwidth: Float[Tensor, " dim"]) -> LinearAverages:
        x = summary.x
        # Rounding may leave a small deviation of a constant feature.
        deviation = torch.where(x.high > x.low, x.deviation(), 0.0)
        frame = Frame.around(x.mean, deviation, bandwidth.to(x.mean), summary.y.mean)
        ones = torch.ones_like(x.mean).unsqueeze(0)
        return LinearAverages(
            frame, bandwidth.to(x.mean) / frame.unit, moment_columns(ones, summary.y_scale().unsqueeze(0))[0]
        )

    @property
    def dim(self) -> int:
        return len(self.frame.centre)

    @property
    def outputs(self) -> slice:
        """Position of y among the columns."""
        return slice(self.dim, self.dim + len(self.frame.level))

    # Averages of one chunk

    def average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled:
        """Averages by the Fourier sum where the lines of these rows alone are accurate to `tol`, else exact ones."""
        pooled = self.fourier_average(sample, query, tol, plan)
        if pooled is None:
            return exact_average(sample, query, plan)
        rows = self.uncertain(query, pooled, tol).nonzero().squeeze(1)
        if len(rows):
            pooled.put(rows, exact_average(sample, query[rows], plan))
        return pooled

    def fourier_average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled | None:
        """Averages by the Fourier sum; None where another plan is better. A query without an answer has error inf."""
        if not tol or not bool(torch.isfinite(self.width).all()):
            return None
        of_y = replace(sample, values=sample.values[:, self.outputs])
        if plan_for(of_y, query, tol=tol, forced=plan).name != "fast":
            return None
        known = linear_fourier.sums(of_y, query, tol)
        if known is None:
            return None
        state = empty(len(query), len(self.scale), query)
        state.error.fill_(math.inf)
        state.put(known.rows, self._seen_from_origin(known, self.frame.place(query[known.rows])))
        return state

    def _seen_from_origin(self, known: Sums, at: Float[Tensor, "some dim"]) -> Pooled:
        """Turn averages of u = v - at, seen from queries `at` these places of the frame, into averages of v."""
        data, _, (matrix, right, off_matrix, off_right), log_unit = known
        off = off_matrix[0, 0]
        least = matrix[0, 0] - off
        total = torch.where(least > 0, matrix[0, 0], 1.0)
        matrix, right = (matrix / total).permute(2, 0, 1), (right / total).permute(2, 0, 1)  # (some, k, ...)
        u, y = matrix[:, 0, 1:] * self.width, right[:, 0] * data.scale + data.mean
        uu = matrix[:, 1:, 1:] * self.width * self.width.unsqueeze(1)
        uy = right[:, 1:] * self.width.unsqueeze(1) * data.scale + u.unsqueeze(2) * data.mean
        a, b = at.unsqueeze(2), u.unsqueeze(2)
        vv = uu + a * b.mT + b * a.mT + a * a.mT
        rows, cols = torch.triu_indices(self.dim, self.dim)
        mean = torch.cat([at + u, y, (uy + a * y.unsqueeze(1)).flatten(1), vv[:, rows, cols]], 1)
        largest = torch.maximum(matrix.abs().amax((1, 2)), right.abs().amax((1, 2)))
        wide, high = self.width.max().clamp_min(1.0), (data.scale / self.scale[self.outputs]).max().clamp_min(1.0)
        error = wide**2 * high * (torch.maximum(off_matrix.max(), off_right.max()) + off * largest) / least
        return Pooled(total.log() + log_unit, mean, torch.where(least > 0, error, math.inf))

    # Lines from merged averages

    def values(self, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"]) -> Float[Tensor, "q outputs"]:
        """Value of the line at each query, from averages of the columns."""
        moments = self._moments(query, mean)
        return self.frame.level + moments.value(moments.solve(moments.vy))

    def uncertain(self, query: Float[Tensor, "q dim"], pooled: Pooled, tol: float) -> Bool[Tensor, " q"]:
        """Queries where errors of the averages may move the line by more than `tol`: few points, or little spread."""
        moments = self._moments(query, pooled.mean)
        # Errors are stated as seen from the query.
        errors = MomentErrors.of(moments, pooled.error.unsqueeze(1) * self.scale, moments.away)
        return ~(moments.line(errors)[1] <= tol * self.scale[self.outputs]).all(1)

    def _moments(self, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"]) -> Moments:
        return Moments.of(self.frame.place(query), mean, len(self.frame.level))


def exact_average(sample: Sample, query: Float[Tensor, "q dim"], plan: str) -> Pooled:
    """Averages without an error."""
    pooled = engine.pool(sample, query, tol=0.0, plan="auto" if plan == "fast" else plan)
    return pooled._replace(error=torch.zeros_like(pooled.error))
