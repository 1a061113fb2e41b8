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
from regard.regression.kernel_sums.nearest import Nearest, nearest
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled, empty, merge
from regard.regression.out_of_core.source import Block, Blocks, Progress

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
        return Reached(pooled, nearest(sample, query, (pooled.lse == NEVER).nonzero().squeeze(1)))

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
        return Nearest.nobody(queries, columns, like) if self.look_for_nearest else None


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
