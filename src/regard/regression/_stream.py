"""The kernel average of data in blocks: the engine's answer for each block, merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from regard.regression import _engine
from regard.regression._blocks import Block, Blocks, Progress
from regard.regression._sample import Sample, scale_of
from regard.regression._state import Pooled, empty, merge

Columns = Callable[[Block], Float[Tensor, "rows columns"]]


def outputs(block: Block) -> Float[Tensor, "rows outputs"]:
    """The numbers that are averaged if nothing else is said: y itself."""
    return block.y


@dataclass(frozen=True, eq=False)
class Recipe:
    """How any block is averaged. `scale` is the unit of each column over *all* data, as `scale_of` gives it."""

    bandwidth: Float[Tensor, " dim"]
    scale: Float[Tensor, " columns"]
    kernel: str = "gaussian"
    tol: float = 1e-6
    plan: str = "auto"
    columns: Columns = outputs

    def pool(self, query: Float[Tensor, "q dim"], block: Block) -> Pooled:
        """What one block knows, its error in units of the whole data."""
        values = self.columns(block).to(query.device)
        if not len(values):
            return empty(len(query), values.shape[1], query)
        weight = block.log_weight
        sample = Sample(
            block.x.to(query.device),
            values,
            self.bandwidth,
            self.kernel,
            None if weight is None else weight.to(query.device),
        )
        # A block may vary more than the whole. Where it varies less, its total weight still wants the same precision.
        units = float((scale_of(values) / self.scale).max().clamp_min(1.0))
        state = _engine.pool(sample, query, tol=self.tol / units, plan=self.plan)
        return state._replace(error=state.error * units)

    def merge(self, one: Pooled, two: Pooled) -> Pooled:
        return merge(one, two, self.scale)


def pool(blocks: Blocks, query: Float[Tensor, "q dim"], recipe: Recipe, *, progress: Progress | None = None) -> Pooled:
    """The average at each query over all blocks, with an error of at most `recipe.tol`."""
    state = blocks.fold(step, recipe.merge, (careful(recipe), query), progress)
    return state if _kept(state, recipe) else _again(blocks, query, recipe, state)


def careful(recipe: Recipe) -> Recipe:
    """Half the error for each block: the rest is left for what blocks that disagree add to it."""
    return replace(recipe, tol=recipe.tol / 2)


def step(given: tuple[Recipe, Tensor], block: Block) -> Pooled:
    recipe, query = given
    return recipe.pool(query, block)


def _kept(state: Pooled, recipe: Recipe) -> bool:
    return bool((state.error <= recipe.tol).all())


def _again(blocks: Blocks, query: Tensor, recipe: Recipe, state: Pooled) -> Pooled:
    """The queries whose blocks disagree too much, with nothing but rounding."""
    loose = (state.error > recipe.tol).nonzero().squeeze(1)
    exact = blocks.fold(step, recipe.merge, (replace(recipe, tol=0.0), query[loose]))
    return Pooled(*(part.index_copy(0, loose, better) for part, better in zip(state, exact, strict=True)))
