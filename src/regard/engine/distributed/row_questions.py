"""Gradients of questions with one number for each query: entropy, saturation, logsumexp and distance.

The answer F of a row is a sum over its weights, sum_j f(p_j). With g of the normaliser's Jacobian, the gradient of a
score is g (f' - mean), where the mean of f' over the row is weighted by g. It takes one trip of the keys for the mean,
and one for the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine.distributed import ring
from regard.engine.distributed.plan import Rectangle
from regard.engine.distributed.rectangle import (
    Formula,
    Operands,
    TiledRectangle,
    TileGradient,
    tile_gradients,
    weights_of,
)
from regard.errors import ChoiceError
from regard.operands import NEVER, Operand, Tile
from regard.spec import Spec


@dataclass(frozen=True, slots=True, eq=False)
class RowQuestion:
    """A question, the job of its trips, the row statistic, and the positions of the queries for distances."""

    name: str
    job: ring.Job
    statistic: Float[Tensor, "*batch rows"]
    positions: Operand | None

    def terms(self, rectangle: TiledRectangle, tile: Tile, scores: Tensor) -> tuple[Tensor, Tensor]:
        """g and f' of each weight of a tile."""
        normaliser = rectangle.problem.spec.normaliser
        weights = weights_of(normaliser, scores, ring.rows_of(self.statistic, rectangle, tile), rectangle.places(tile))
        return normaliser.jacobian_diagonal(weights), self._derivative(weights, rectangle, tile)

    def _derivative(self, weights: Tensor, rectangle: TiledRectangle, tile: Tile) -> Tensor:
        """f' of each weight, but for a constant, which the mean takes away."""
        if self.name == "entropy":
            return -weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
        if self.name == "saturation":
            return 2 * weights
        if self.name == "distance" and self.positions is not None:
            at = rectangle.at
            placed = Tile(tile.lead, at.at_rows.pick(tile.rows), at.at_cols.pick(tile.cols))
            return (placed.cut(self.positions) - placed.cols.positions(weights.device)).abs().to(weights.dtype)
        if self.name == "logsumexp":
            return torch.ones_like(weights)
        raise ChoiceError(f"{self.name} is no question with a gradient over several processes")

    def means(self, q: Tensor, k: Tensor) -> Float[Tensor, "*batch rows"]:
        """The mean of f' over each row, weighted by g."""
        total, weighted = torch.zeros_like(self.statistic), torch.zeros_like(self.statistic)
        if self.name == "logsumexp":  # the gradient of a score is p itself
            return total

        def visit(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
            del tensors
            slope, derivative = self.terms(rectangle, tile, scores)
            ring.rows_of(total, rectangle, tile).add_(slope.sum(-1))
            ring.rows_of(weighted, rectangle, tile).add_((slope * derivative).sum(-1))

        ring.visit_tiles(self.job, q, k, "backward: questions", visit)
        total, weighted = (self.job.over_ranks(t, "backward: questions") for t in (total, weighted))
        return torch.where(total == 0, 0.0, weighted / total)

    def gradient_of(self, means: Tensor, grad: Tensor) -> TileGradient:
        """The gradient of the scores of a tile."""

        def gradient(rectangle: TiledRectangle, tile: Tile, scores: Tensor) -> tuple[Tensor, None]:
            slope, derivative = self.terms(rectangle, tile, scores)
            mean, given = (ring.rows_of(t, rectangle, tile).unsqueeze(-1) for t in (means, grad))
            return (given * slope * (derivative - mean)).masked_fill(scores == NEVER, 0), None

        return gradient


class RowAnswer(torch.autograd.Function):
    """The answer to a row question, which is known, with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, asked: RowQuestion, answer: Tensor, q: Tensor, k: Tensor, *params: Tensor
    ) -> Float[Tensor, "*batch rows"]:
        ctx.asked = asked
        ctx.save_for_backward(q, k, *params)
        return answer.clone()

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "*batch rows"]) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        ring.refuse_second_derivative()
        asked: RowQuestion = ctx.asked
        q, k, *params = ctx.saved_tensors
        wide, given = q.to(asked.statistic.dtype), grad.to(asked.statistic.dtype)
        tile_gradient = asked.gradient_of(asked.means(wide, k), given)

        def gradient(
            formula: Formula, spec: Spec, at: Rectangle, part: Operands, wanted: Sequence[Tensor]
        ) -> list[Tensor | None]:
            return tile_gradients(formula, spec, at, part, tile_gradient, wanted)

        grads = ring.backward_trip(asked.job, wide, [k], params, gradient)
        needs = ctx.needs_input_grad[2:]
        inputs = (q, k, *params)
        return None, None, *(g.to(t.dtype) if n else None for g, t, n in zip(grads, inputs, needs, strict=True))


def ask(asked: RowQuestion, answer: Tensor, q: Tensor, k: Tensor, params: Sequence[Tensor]) -> Tensor:
    """The answer with a graph, for this rank's queries. Differentiable once."""
    return RowAnswer.apply(asked, answer, q, k, *params)  # pyright: ignore[reportReturnType]
