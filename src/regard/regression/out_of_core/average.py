"""The kernel average of data in blocks: the engine's answer for each block, merged."""

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
from regard.regression.local.linear_fourier import Sums
from regard.regression.local.moments import Frame, Moments, Off, columns_of
from regard.regression.out_of_core.source import Block, Blocks, Progress
from regard.regression.out_of_core.summary import Summary

Columns = Callable[[Block], Float[Tensor, "rows columns"]]
Average = Callable[[Sample, Float[Tensor, "q dim"], float, str], Pooled]
Doubt = Callable[[Float[Tensor, "q dim"], Pooled], Bool[Tensor, " q"]]


def outputs(block: Block) -> Float[Tensor, "rows outputs"]:
    """The numbers that are averaged if nothing else is said: y itself."""
    return block.y


class Reached(NamedTuple):
    """What is known of a query after some blocks: the average, and whom it is nearest to while it reaches nobody."""

    pooled: Pooled
    nearest: Nearest | None

    def answer(self) -> Float[Tensor, "q columns"]:
        """The average; where no point is in reach the nearest points' mean, or NaN if these were not asked for."""
        instead = math.nan if self.nearest is None else self.nearest.mean
        return torch.where(self.pooled.lse.unsqueeze(1) == NEVER, instead, self.pooled.mean)


@dataclass(frozen=True, eq=False)
class Recipe:
    """How any block is averaged. `scale` is the unit of each column over *all* data, as `scale_of` gives it."""

    bandwidth: Float[Tensor, " dim"]
    scale: Float[Tensor, " columns"]
    kernel: str = "gaussian"
    tol: float = 1e-6
    plan: str = "auto"
    columns: Columns = outputs
    look_for_nearest: bool = False
    average: Average | None = None  # another way to it than the engine's, which tells errors in units of `scale`

    def reach(self, query: Float[Tensor, "q dim"], block: Block) -> Reached:
        """What one block knows, its error in units of the whole data."""
        sample = self._sample(block, query.device)
        if not len(sample.x):
            columns = sample.values.shape[1]
            return Reached(empty(len(query), columns, query), self._none(len(query), columns, query))
        pooled = (self.average or self._average)(sample, query, self.tol, self.plan)
        if not self.look_for_nearest:
            return Reached(pooled, None)
        # A query that another block reaches will not ask who is nearest, and one that no block reaches asks all.
        return Reached(pooled, nearest_points(sample, query, (pooled.lse == NEVER).nonzero().squeeze(1)))

    def _average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled:
        # A block may vary more than the whole. Where it varies less, its total weight still wants the same precision.
        units = float((scale_of(sample.values) / self.scale).max().clamp_min(1.0))
        found = engine.pool(sample, query, tol=tol / units, plan=plan)
        return found._replace(error=found.error * units)

    def merge(self, one: Reached, two: Reached) -> Reached:
        known = None if one.nearest is None or two.nearest is None else one.nearest.merge(two.nearest)
        return Reached(merge(one.pooled, two.pooled, self.scale), known)

    def _sample(self, block: Block, device: torch.device) -> Sample:
        weight = block.log_weight
        return Sample(
            block.x.to(device),
            self.columns(block).to(device),
            self.bandwidth,
            self.kernel,
            None if weight is None else weight.to(device),
        )

    def _none(self, queries: int, columns: int, like: Tensor) -> Nearest | None:
        return Nearest.empty(queries, columns, like) if self.look_for_nearest else None


def pool(
    blocks: Blocks,
    query: Float[Tensor, "q dim"],
    recipe: Recipe,
    *,
    doubtful: Doubt | None = None,
    progress: Progress | None = None,
) -> Reached:
    """The average at each query over all blocks, with an error of at most `recipe.tol`.

    `doubtful` names queries for which that is too much: they are asked again, exactly.
    """
    # Half for the blocks: the rest is for what blocks that disagree add to it.
    state = blocks.fold(_step, recipe.merge, (replace(recipe, tol=recipe.tol / 2), query), progress)
    again = state.pooled.error > recipe.tol
    loose = (again if doubtful is None else again | doubtful(query, state.pooled)).nonzero().squeeze(1)
    if not len(loose):
        return state
    # Exact in float64, so that however far blocks disagree, nothing is left to add: the engine leaves out only what is
    # below rounding.
    careful = replace(recipe, tol=0.0, look_for_nearest=False)
    exact = blocks.fold(_step, careful.merge, (careful, query[loose])).pooled
    better = (part.index_copy(0, loose, new) for part, new in zip(state.pooled, exact, strict=True))
    return Reached(Pooled(*better), state.nearest)


def _step(given: tuple[Recipe, Tensor], block: Block) -> Reached:
    recipe, query = given
    return recipe.reach(query, block)


CAREFUL = 2.0  # times what the averages do to a line at first order, which is nearly all where that is small
SPAN = 25.0  # how far apart averages of two blocks may be, as seen from a query that a fast sum can answer


@dataclass(frozen=True, eq=False)
class Lines:
    """What is averaged in every block, how, and the line that all blocks together make."""

    frame: Frame
    width: Float[Tensor, " dim"]  # of the kernel, in units of the frame
    scale: Float[Tensor, " columns"]  # in which errors are told: as seen from a query no v is large

    @staticmethod
    def of(summary: Summary, bandwidth: Float[Tensor, " dim"]) -> Lines:
        x = summary.x
        # Of a feature that never changes rounding may leave a deviation.
        deviation = torch.where(x.high > x.low, x.deviation(), 0.0)
        frame = Frame.around(x.mean, deviation, bandwidth.to(x.mean), summary.y.mean)
        ones = torch.ones_like(x.mean).unsqueeze(0)
        return Lines(frame, bandwidth.to(x.mean) / frame.unit, columns_of(ones, summary.scale().unsqueeze(0))[0])

    @property
    def dim(self) -> int:
        return len(self.frame.centre)

    @property
    def outputs(self) -> slice:
        """Where the columns have y."""
        return slice(self.dim, self.dim + len(self.frame.level))

    def columns(self, block: Block) -> Float[Tensor, "rows columns"]:
        return self.frame.columns(block.x, block.y)

    # Averages of the columns of some rows

    def average(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled:
        """By the fast sum where the lines of these rows alone are certain to `tol`, else exactly."""
        found = self._fast(sample, query, tol, plan)
        if found is None:
            return _exact(sample, query, plan)
        redo = self.doubtful(query, found, tol).nonzero().squeeze(1)
        if not len(redo):
            return found
        again = _exact(sample, query[redo], plan)
        return Pooled(*(part.index_copy(0, redo, better) for part, better in zip(found, again, strict=True)))

    def _fast(self, sample: Sample, query: Float[Tensor, "q dim"], tol: float, plan: str) -> Pooled | None:
        """None where another way is better; a query of which nothing is known has an infinite error."""
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

    # What averages of all rows make

    def drawn(self, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"]) -> Float[Tensor, "q outputs"]:
        """The line at each query."""
        return Moments.of(self.frame, query, torch.zeros_like(mean[:, 0]), mean).value()

    def answer(self, query: Float[Tensor, "q dim"], found: Reached) -> Float[Tensor, "q outputs"]:
        """The line; where no point is in reach the nearest points' mean, or NaN if these were not asked for."""
        instead = math.nan if found.nearest is None else self.frame.level + found.nearest.mean[:, self.outputs]
        far = found.pooled.lse.unsqueeze(1) == NEVER
        return torch.where(far, instead, self.drawn(query, found.pooled.mean))

    def doubtful(self, query: Float[Tensor, "q dim"], found: Pooled, tol: float) -> Bool[Tensor, " q"]:
        """Where errors of averages may move a line by more than `tol`: little is near, or it is hardly spread."""
        line = Moments.of(self.frame, query, found.lse, found.mean)
        off = Off.of(line, found.error.unsqueeze(1) * self.scale, line.away)  # told as seen from the query
        tilt = line.solved(line.away.unsqueeze(2)).squeeze(2)
        return ~(CAREFUL * line.moved(off, tilt, line.solved(line.vy)) <= tol * self.scale[self.outputs]).all(1)


def _exact(sample: Sample, query: Float[Tensor, "q dim"], plan: str) -> Pooled:
    found = engine.pool(sample, query, tol=0.0, plan="auto" if plan == "fast" else plan)
    return found._replace(error=torch.zeros_like(found.error))
