"""Questions about rows that carry a gradient, by torch's kernel: the mean score is attention with the keys as values.

With s = scale q . k, E[s] = scale q . E[k] and the log-sum-exp, which the kernel gives away without a gradient:

    entropy = lse - E[s],  d entropy / d s_j = -p_j (s_j - E[s]),  d lse / d s_j = p_j

The first derivative is that of E[s] while what is averaged stands still; the second lets the weights stand still.

Two questions stay with tiles. Saturation, exp(lse(2 s) - 2 lse(s)), and distance, from a full and a causal call,
take two calls of the kernel and two of its backward pass, which is no faster than tiles are. Under a causal mask one
call would do for distance, but i - E[j] loses the digits of heads that look nearby, and nothing tells which they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.engine import questions
from regard.engine.fused import kernel
from regard.engine.tiles import Problem, all_finite
from regard.normalisers import softmax
from regard.operands import NEVER, Tile
from regard.scores import Dot
from regard.spec import Spec
from regard.tracing import without_autocast

QUESTIONS = ("entropy", "logsumexp")
SHARP = 3e4  # an entropy below so many roundings of a score has cancelled: four digits of its gradient are not left


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question about softmax(scale q . k), and how to cut the matrix for the kernel and for tiles."""

    question: str
    spec: Spec
    scale: float
    lead: tuple[int, ...]
    kernel_tile: int
    cap: int

    def problem(self, q: Tensor, k: Tensor) -> Problem:
        return Problem.build(self.spec, q, k, self.lead)

    def by_tiles(self, q: Tensor, k: Tensor) -> Tensor:
        return questions.differentiable(self.problem(q, k), self.question, self.cap)

    def pool(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        form = kernel.form(self.spec, self.lead, q.shape[-2], k.shape[-2], self.kernel_tile)
        return kernel.pool(self.spec, q, k, v, self.lead, form, self.kernel_tile)


def differentiable(
    spec: Spec, query: Tensor, key: Tensor, lead: tuple[int, ...], question: str, kernel_tile: int, cap: int
) -> Tensor | None:
    """The answer (..., n) with a graph behind it, or None where it is for tiles. The plan must be fused."""
    if question not in QUESTIONS:
        return None
    features = spec.score.features(query, key)
    if features.query is None or features.rest or (features.key_bias is not None and features.row is None):
        return None  # a bias would have a mean of its own
    q, k, _, scale = kernel.absorb(features, query, key)
    if not all_finite(q, k):
        return None
    asked = Asked(question, Spec(Dot(scale), spec.mask, softmax()), scale, lead, kernel_tile, cap)
    fast = _entropy if question == "entropy" else _logsumexp
    answer: Any = Once.apply(lambda *x: fast(asked, *x), asked.by_tiles, q, k)
    return answer if features.row is None or question == "entropy" else answer + features.row


def _entropy(asked: Asked, q: Tensor, k: Tensor) -> Tensor:
    mean, lse = asked.pool(q, k, k.detach())
    gap = lse.detach() - asked.scale * (q.detach() * mean).sum(-1)
    empty = lse == NEVER
    answer = torch.where(empty, 0.0, gap)
    sharp = (answer.detach() < _rounding(asked, q, k) * SHARP) & ~empty
    return _redone(asked, q, k, answer, sharp) if bool(sharp.any()) else answer


def _logsumexp(asked: Asked, q: Tensor, k: Tensor) -> Tensor:
    mean, lse = asked.pool(q.detach(), k.detach(), k)
    score = asked.scale * (q * mean).sum(-1)
    return torch.where(lse == NEVER, NEVER, lse.detach() + (score - score.detach()))


@torch.no_grad()
def _rounding(asked: Asked, q: Tensor, k: Tensor) -> Tensor:
    """How far a score of each row may be off, (..., n)."""
    longest = k.norm(dim=-1).amax(-1, keepdim=True)
    return q.norm(dim=-1) * longest * abs(asked.scale) * torch.finfo(q.dtype).eps


def _redone(asked: Asked, q: Tensor, k: Tensor, answer: Tensor, sharp: Tensor) -> Tensor:
    """The same with tiles wherever a row is sharp; with tiles alone if there are many."""
    problem = asked.problem(q, k)
    tiles = tuple(problem.tiles(asked.cap))
    hit = tuple(tile for tile in tiles if bool(_rows(tile, sharp).any()))
    if 2 * _scores(hit) > _scores(tiles):
        return questions.differentiable(problem, asked.question, asked.cap)
    exact = questions.differentiable(problem, asked.question, asked.cap, tiles=hit)
    return torch.where(sharp, exact, answer)


def _rows(tile: Tile, found: Tensor) -> Tensor:
    return tile.rows.take(tile.heads(found, trailing=1), -1)


def _scores(tiles: tuple[Tile, ...]) -> int:
    return sum(math.prod(cut.stop - cut.start for cut in t.lead) * len(t.rows) * len(t.cols) for t in tiles)


def _graph_is_kept() -> bool:
    """Whether this backward pass was asked for with `retain_graph`."""
    return torch._C._autograd._get_current_graph_task_keep_graph()  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


class Once(torch.autograd.Function):
    """A function whose graph can be differentiated once; a second derivative goes by way of another function."""

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
        again = torch.is_grad_enabled()
        keep = again or _graph_is_kept()
        answer, leaves = ctx.answer, ctx.leaves
        if not keep:  # as torch does with its own: the loss may live until the next step, and that needs the memory
            ctx.answer = ctx.leaves = None
        with without_autocast():
            if again:
                answer, leaves = ctx.slow(*tensors), tensors
            wanted = [t for t, needed in zip(leaves, ctx.needs_input_grad[2:], strict=True) if needed]
            found = iter(torch.autograd.grad(answer, wanted, grad, create_graph=again, retain_graph=keep))
        return (None, None, *(next(found) if needed else None for needed in ctx.needs_input_grad[2:]))
