"""Entropy and log-sum-exp of each row with a gradient, by torch's fused kernel instead of tiles.

With s_j = scale q . k_j and the weights p, the mean score is attention with the keys as values: E[s] = scale q . E[k].
The kernel also returns the log-sum-exp, without a gradient. Then

    entropy = lse - E[s],  d entropy / d s_j = -p_j (s_j - E[s]),  d lse / d s_j = p_j

For the first derivative, E[s] is differentiated with the averaged scores held fixed; for the second, with the weights
held fixed.

Saturation and distance stay with tiles. Each would take two calls of the kernel forward and two backward, which is no
faster. Under a causal mask one call would do for distance, but i - E[j] loses the digits of heads that look nearby.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.engine import questions
from regard.engine.fused import forms
from regard.engine.tiles import Problem, all_finite
from regard.normalisers import softmax
from regard.operands import NEVER, Tile
from regard.scores import Dot
from regard.spec import Spec
from regard.tracing import without_autocast

QUESTIONS = ("entropy", "logsumexp")
SHARP_ROUNDINGS = 3e4  # an entropy below so many roundings of a score has cancelled: its gradient lacks four digits


@dataclass(frozen=True, slots=True, eq=False)
class KernelQuestion:
    """A question about softmax(scale q . k), and the size of tiles for the kernel and for the loop over tiles."""

    name: str
    spec: Spec
    scale: float
    lead: tuple[int, ...]
    kernel_tile_scores: int
    tile_scores: int

    def problem(self, q: Float[Tensor, "... queries dim"], k: Float[Tensor, "... keys dim"]) -> Problem:
        """The problem for the loop over tiles."""
        return Problem.build(self.spec, q, k, self.lead)

    def by_tiles(
        self, q: Float[Tensor, "... queries dim"], k: Float[Tensor, "... keys dim"]
    ) -> Float[Tensor, "*batch queries"]:
        """The answer from the loop over tiles; it can be differentiated twice."""
        return questions.row_question_with_graph(self.problem(q, k), self.name, self.tile_scores)

    def pool(
        self,
        q: Float[Tensor, "... queries dim"],
        k: Float[Tensor, "... keys dim"],
        v: Float[Tensor, "... keys dim"],
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*batch queries"]]:
        """Weights @ v and the log-sum-exp, from the kernel."""
        form = forms.form(self.spec, self.lead, q.shape[-2], k.shape[-2], self.kernel_tile_scores)
        return forms.pool(self.spec, q, k, v, self.lead, form, self.kernel_tile_scores)


def row_question_with_graph(
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    lead: tuple[int, ...],
    name: str,
    kernel_tile_scores: int,
    tile_scores: int,
) -> Float[Tensor, "*batch queries"] | None:
    """The differentiable answer to a row question, or None if it has to come from tiles. The plan must be fused."""
    if name not in QUESTIONS:
        return None
    features = spec.score.features(query, key)
    if features.query is None or features.rest or (features.key_bias is not None and features.row is None):
        return None  # a bias would have a mean of its own
    q, k, _, scale = forms.absorb_key_bias(features, query, key)
    if not all_finite(q, k):
        return None
    question = KernelQuestion(
        name, Spec(Dot(scale), spec.mask, softmax()), scale, lead, kernel_tile_scores, tile_scores
    )
    by_kernel = _entropy if name == "entropy" else _logsumexp
    answer: Any = SecondOrderFallback.apply(lambda *x: by_kernel(question, *x), question.by_tiles, q, k)
    return answer if features.row is None or name == "entropy" else answer + features.row


def _entropy(
    question: KernelQuestion, q: Float[Tensor, "... queries dim"], k: Float[Tensor, "... keys dim"]
) -> Float[Tensor, "*batch queries"]:
    """Entropy of each row as lse - E[score]; rows that lose digits by cancellation are computed by tiles."""
    mean, lse = question.pool(q, k, k.detach())
    difference = lse.detach() - question.scale * (q.detach() * mean).sum(-1)
    empty = lse == NEVER
    answer = torch.where(empty, 0.0, difference)
    sharp = (answer.detach() < _score_rounding(question, q, k) * SHARP_ROUNDINGS) & ~empty
    return _recompute_sharp_rows(question, q, k, answer, sharp) if bool(sharp.any()) else answer


def _logsumexp(
    question: KernelQuestion, q: Float[Tensor, "... queries dim"], k: Float[Tensor, "... keys dim"]
) -> Float[Tensor, "*batch queries"]:
    """Log-sum-exp of each row, with the gradient of E[score], which the kernel does not give."""
    mean, lse = question.pool(q.detach(), k.detach(), k)
    score = question.scale * (q * mean).sum(-1)
    return torch.where(lse == NEVER, NEVER, lse.detach() + (score - score.detach()))


@torch.no_grad()
def _score_rounding(
    question: KernelQuestion, q: Float[Tensor, "... queries dim"], k: Float[Tensor, "... keys dim"]
) -> Float[Tensor, "... queries"]:
    """A bound of the rounding error of the scores in each row."""
    longest = k.norm(dim=-1).amax(-1, keepdim=True)
    return q.norm(dim=-1) * longest * abs(question.scale) * torch.finfo(q.dtype).eps


def _recompute_sharp_rows(
    question: KernelQuestion,
    q: Float[Tensor, "... queries dim"],
    k: Float[Tensor, "... keys dim"],
    answer: Float[Tensor, "*batch queries"],
    sharp: Bool[Tensor, "*batch queries"],
) -> Float[Tensor, "*batch queries"]:
    """The answer with sharp rows computed by tiles; all rows, if tiles with a sharp row are more than half."""
    problem = question.problem(q, k)
    tiles = tuple(problem.tiles(question.tile_scores))
    hit = tuple(tile for tile in tiles if bool(tile.rows.take(tile.heads(sharp, trailing=1), -1).any()))
    if 2 * _n_scores(hit) > _n_scores(tiles):
        return questions.row_question_with_graph(problem, question.name, question.tile_scores)
    exact = questions.row_question_with_graph(problem, question.name, question.tile_scores, tiles=hit)
    return torch.where(sharp, exact, answer)


def _n_scores(tiles: tuple[Tile, ...]) -> int:
    """The number of scores in all tiles together."""
    return sum(math.prod(cut.stop - cut.start for cut in t.lead) * len(t.rows) * len(t.cols) for t in tiles)


def _keeps_graph() -> bool:
    """True if the running backward pass was called with `retain_graph`."""
    return torch._C._autograd._get_current_graph_task_keep_graph()  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


class SecondOrderFallback(torch.autograd.Function):
    """A fast function that can be differentiated once; a second derivative is taken of a slower equal one."""

    @staticmethod
    def forward(ctx: Any, fast: Callable[..., Tensor], slow: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        leaves = [
            t.detach().requires_grad_(needed) for t, needed in zip(tensors, ctx.needs_input_grad[2:], strict=True)
        ]
        with torch.enable_grad():
            answer = fast(*leaves)
        ctx.slow, ctx.leaves, ctx.answer = slow, leaves, answer
        ctx.save_for_backward(*tensors)
        return answer.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        tensors = ctx.saved_tensors
        second_order = torch.is_grad_enabled()
        keep = second_order or _keeps_graph()
        answer, leaves = ctx.answer, ctx.leaves
        if not keep:  # as torch does with its own: the loss may live until the next step, and that needs the memory
            ctx.answer = ctx.leaves = None
        with without_autocast():
            if second_order:
                answer, leaves = ctx.slow(*tensors), tensors
            wanted = [t for t, needed in zip(leaves, ctx.needs_input_grad[2:], strict=True) if needed]
            grads = iter(torch.autograd.grad(answer, wanted, grad, create_graph=second_order, retain_graph=keep))
        return (None, None, *(next(grads) if needed else None for needed in ctx.needs_input_grad[2:]))
