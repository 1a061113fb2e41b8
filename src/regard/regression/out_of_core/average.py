"""Kernel averages of out-of-core data: each chunk is averaged on its own, and partial averages merge.

For local linear fits a chunk averages v, y, v y and v v (`local.least_squares`) in a frame of the summary that all
chunks share; lines are solved from the merged averages. Far from the frame's origin v v is large, and the Fourier sum,
whose error is a part of the whole, would leave few digits for a line. So it measures from the query itself, its result
is moved to the frame, and its error is stated as seen from the query. All other plans are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from regard.regression.local.least_squares import FIRST_ORDER_MARGIN, Frame, MomentErrors, Moments, moment_columns
from regard.regression.local.linear_fourier import Sums
from regard.regression.out_of_core.source import Chunk, Source
from regard.regression.out_of_core.summary import Summary

ToColumns = Callable[[Chunk], Float[Tensor, "rows columns"]]
AverageSample = Callable[[Sample, Float[Tensor, "q dim"], float, str], Pooled]
Uncertain = Callable[[Float[Tensor, "q dim"], Pooled], Bool[Tensor, " q"]]


def outputs(chunk: Chunk) -> Float[Tensor, "rows outputs"]:
    """Columns that degree 0 averages: y itself."""
    return chunk.y


class PartialAverage(NamedTuple):
    """Average over some chunks at each query, and the nearest points for queries that no point reaches."""

    pooled: Pooled
    nearest: Nearest | None

    def answer(self) -> Float[Tensor, "q columns"]:
        """The average; where no point is in reach, the mean of the nearest points, or NaN if these are not known."""
        instead = math.nan if self.nearest is None else self.nearest.mean
        return torch.where(self.pooled.lse.unsqueeze(1) == NEVER, instead, self.pooled.mean)


@dataclass(frozen=True, eq=False)
class ChunkAverage:
    """Settings of the average of one chunk. `scale` is the unit of each column over *all* data (see `scale_of`)."""

    bandwidth: Float[Tensor, " dim"]
    scale: Float[Tensor, " columns"]
    kernel: str = "gaussian"
    tol: float = 1e-6
    plan: str = "auto"
    columns: ToColumns = outputs
    find_nearest: bool = False
    average: AverageSample | None = None  # replaces the engine's; its errors are in units of `scale`

    def chunk_state(self, query: Float[Tensor, "q dim"], chunk: Chunk) -> PartialAverage:
        """Average of one chunk at each query, with an error in units of the whole data."""
        sample = self.sample(chunk, query.device)
        if not len(sample.x):
            n, columns = len(query), sample.values.shape[1]
            return PartialAverage(
                empty(n, columns, query), Nearest.empty(n, columns, query) if self.find_nearest else None
            )
        pooled = (self.average or self._average)(sample, query, self.tol, self.plan)
        if not self.find_nearest:
            return PartialAverage(pooled, None)
        # A query that another chunk reaches needs no nearest points; one that no chunk reaches gets them from all.
        return PartialAverage(pooled, nearest_points(sample, query, (pooled.lse == NEVER).nonzero().squeeze(1)))

    def _average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled:
        # A chunk may vary more than the whole. Where it varies less, its total weight still needs the same precision.
        units = float((scale_of(sample.values) / self.scale).max().clamp_min(1.0))
        pooled = engine.pool(sample, query, tol=tol / units, plan=plan)
        return pooled._replace(error=pooled.error * units)

    def merge(self, one: PartialAverage, two: PartialAverage) -> PartialAverage:
        known = None if one.nearest is None or two.nearest is None else one.nearest.merge(two.nearest)
        return PartialAverage(merge(one.pooled, two.pooled, self.scale), known)

    def sample(self, chunk: Chunk, device: torch.device) -> Sample:
        """Rows of a chunk, with the columns to average as values."""
        weight = None if chunk.log_weight is None else chunk.log_weight.to(device)
        return Sample(chunk.x.to(device), self.columns(chunk).to(device), self.bandwidth, self.kernel, weight)


def average(
    source: Source, query: Float[Tensor, "q dim"], settings: ChunkAverage, *, uncertain: Uncertain | None = None
) -> PartialAverage:
    """Average of all chunks at each query, with an error of at most `settings.tol`.

    `uncertain` marks queries for which that error is too large: they are computed again, exactly.
    """
    # Half of the tolerance is for the chunks; merging chunks that differ adds to their errors.
    state = source.fold(_chunk_state, settings.merge, (replace(settings, tol=settings.tol / 2), query))
    inaccurate = state.pooled.error > settings.tol
    if uncertain is not None:
        inaccurate = inaccurate | uncertain(query, state.pooled)
    rows = inaccurate.nonzero().squeeze(1)
    if not len(rows):
        return state
    # With tol = 0 only weights below rounding are left out: merging adds no error, however much chunks differ.
    exact = replace(settings, tol=0.0, find_nearest=False)
    better = source.fold(_chunk_state, exact.merge, (exact, query[rows])).pooled
    pooled = Pooled(*(part.index_copy(0, rows, new) for part, new in zip(state.pooled, better, strict=True)))
    return PartialAverage(pooled, state.nearest)


def _chunk_state(shared: tuple[ChunkAverage, Tensor], chunk: Chunk) -> PartialAverage:
    settings, query = shared
    return settings.chunk_state(query, chunk)


LINES_RANGE = 25.0  # largest difference of two chunks' averages, as seen from a query that the Fourier sum answers


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

    def columns(self, chunk: Chunk) -> Float[Tensor, "rows columns"]:
        return self.frame.columns(chunk.x, chunk.y)

    # Averages of one chunk

    def average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled:
        """Averages by the Fourier sum where the lines of these rows alone are accurate to `tol`, else exact ones."""
        pooled = self.fourier_average(sample, query, tol, plan)
        if pooled is None:
            return exact_average(sample, query, plan)
        rows = self.uncertain(query, pooled, tol).nonzero().squeeze(1)
        if not len(rows):
            return pooled
        exact = exact_average(sample, query[rows], plan)
        return Pooled(*(part.index_copy(0, rows, better) for part, better in zip(pooled, exact, strict=True)))

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
        some = self._moved(known, self.frame.place(query[known.rows]))
        lse = query.new_full((len(query),), NEVER)
        whole = Pooled(lse, lse.new_zeros(len(query), len(self.scale)), torch.full_like(lse, math.inf))
        return Pooled(*(part.index_copy(0, known.rows, new) for part, new in zip(whole, some, strict=True)))

    def _moved(self, known: Sums, at: Float[Tensor, "some dim"]) -> Pooled:
        """Averages as seen from the queries, which are `at` these places of the frame, as seen from its origin."""
        data, _, (matrix, right, off_matrix, off_right), log_unit = known
        off = off_matrix[0, 0]
        least = matrix[0, 0] - off
        total = torch.where(least > 0, matrix[0, 0], 1.0)
        matrix, right = (matrix / total).permute(2, 0, 1), (right / total).permute(2, 0, 1)  # (some, k, ...)
        u, y = matrix[:, 0, 1:] * self.width, right[:, 0] * data.scale + data.mean
        uu = matrix[:, 1:, 1:] * self.width * self.width.unsqueeze(1)
        uy = right[:, 1:] * self.width.unsqueeze(1) * data.scale + u.unsqueeze(2) * data.mean
        here, there = at.unsqueeze(2), u.unsqueeze(2)
        vv = uu + here * there.mT + there * here.mT + here * here.mT
        rows, cols = torch.triu_indices(self.dim, self.dim)
        mean = torch.cat([at + u, y, (uy + here * y.unsqueeze(1)).flatten(1), vv[:, rows, cols]], 1)
        largest = torch.maximum(matrix.abs().amax((1, 2)), right.abs().amax((1, 2)))
        wide, high = self.width.max().clamp_min(1.0), (data.scale / self.scale[self.outputs]).max().clamp_min(1.0)
        error = wide**2 * high * (torch.maximum(off_matrix.max(), off_right.max()) + off * largest) / least
        return Pooled(total.log() + log_unit, mean, torch.where(least > 0, error, math.inf))

    # Lines from merged averages

    def values(self, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"]) -> Float[Tensor, "q outputs"]:
        """Value of the line at each query, from averages of the columns."""
        moments = self._moments(query, mean)
        return self.frame.level + moments.value(moments.solve(moments.vy))

    def answer(self, query: Float[Tensor, "q dim"], state: PartialAverage) -> Float[Tensor, "q outputs"]:
        """Value of the line; where no point is in reach, the mean of the nearest points, or NaN if not known."""
        instead = math.nan if state.nearest is None else self.frame.level + state.nearest.mean[:, self.outputs]
        unreached = state.pooled.lse.unsqueeze(1) == NEVER
        return torch.where(unreached, instead, self.values(query, state.pooled.mean))

    def uncertain(self, query: Float[Tensor, "q dim"], pooled: Pooled, tol: float) -> Bool[Tensor, " q"]:
        """Queries where errors of the averages may move the line by more than `tol`: few points, or little spread."""
        moments = self._moments(query, pooled.mean)
        errors = MomentErrors.of(
            moments, pooled.error.unsqueeze(1) * self.scale, moments.away
        )  # errors are as seen from the query
        tilt = moments.solve(moments.away.unsqueeze(2)).squeeze(2)
        error = FIRST_ORDER_MARGIN * moments.value_error(errors, tilt, moments.solve(moments.vy))
        return ~(error <= tol * self.scale[self.outputs]).all(1)

    def _moments(self, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"]) -> Moments:
        return Moments.of(self.frame.place(query), mean, len(self.frame.level))


def exact_average(sample: Sample, query: Float[Tensor, "q dim"], plan: str) -> Pooled:
    """Averages without an error."""
    pooled = engine.pool(sample, query, tol=0.0, plan="auto" if plan == "fast" else plan)
    return pooled._replace(error=torch.zeros_like(pooled.error))
