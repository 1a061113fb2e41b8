"""Normalisers turn scores into weights: the third of the four steps score -> mask -> normalise -> pool.

A normaliser sees whole rows of scores, in which hidden keys are -inf. What it needs to know of a row fits into one
number, the row statistic (for softmax the log-sum-exp): with it, each weight follows from its own score.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import ChoiceError
from regard.operands import NEVER, Axis, Operand, Span
from regard.term import Term, as_float
from regard.tracing import is_tracing

__all__ = ["Normaliser", "entmax15", "hard", "sigmoid", "softmax", "sparsemax"]

NEWTON_STEPS = 60  # at most: the loop ends when steps are within rounding, but under tracing it cannot see that


class Normaliser(Term["Normaliser"], abstract=True):
    """A map from scores to weights, row by row.

    A subclass must have `weights`. One that is `pointwise` has `from_statistic` and `statistic_from_weight` too, one
    that is `mergeable` also `statistic`, and one that `chooses` also `chosen`.
    """

    normalised = True  # a row sums to 1
    mergeable = False  # the log-sum-exp of the statistics of parts of a row is the statistic of the row
    monotone = True  # a better score never has a smaller weight
    chooses = False  # a row has all its weight on one key, which is chosen once
    pointwise = False  # a weight follows from its score and the row statistic

    def operands(self, lead: tuple[int, ...], n: int, like: Float[Tensor, "..."]) -> tuple[Operand, ...]:
        """Tensors from which tiles are cut, as many as `arity` says, such as random draws; made once, like `like`."""
        del lead, n, like
        return ()

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        """Weights (..., rows, cols) of whole rows of scores.

        `tensors` are the operands, cut to the rows. `gaps` says that a score may be -inf. Where `out` is given it may
        be used for the result, and no gradient is wanted.
        """
        raise NotImplementedError

    def statistic(self, scores: Float[Tensor, "*batch rows cols"], cols: Span) -> Float[Tensor, "*batch rows"]:
        """The statistic (..., rows) of a part of each row, for those that are mergeable."""
        raise NotImplementedError

    def from_statistic(
        self,
        scores: Float[Tensor, "... rows cols"],
        statistic: Float[Tensor, "... rows"],
        cols: Span,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        """Weights of any block from its scores and the statistic (..., rows) of whole rows, if they are pointwise.

        `out`, which may be the scores themselves, may be used for the result; then no gradient is wanted.
        """
        raise NotImplementedError

    def jacobian_diagonal(self, weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """g of each weight, where weights change with scores by dp = g (ds - sum g ds / sum g).

        Where rows do not sum to 1 it is dp = g ds.
        """
        raise NotImplementedError

    def statistic_from_weight(
        self, score: Float[Tensor, "*batch rows"], weight: Float[Tensor, "*batch rows"]
    ) -> Float[Tensor, "*batch rows"]:
        """The statistic of rows, from one score of each row and its weight, for those that are pointwise."""
        raise NotImplementedError

    def chosen(
        self, scores: Float[Tensor, "... rows cols"], cols: Span, tensors: Sequence[Tensor] = ()
    ) -> Int[Tensor, "... rows 1"]:
        """The key that each of these whole rows chooses, (..., rows, 1); -1 in a row that sees none."""
        raise NotImplementedError


def _empty(scores: Float[Tensor, "*batch rows cols"]) -> Bool[Tensor, "*batch rows 1"]:
    """True for rows in which no key is visible. NaN counts as visible, so that it is seen in the result."""
    return (scores.detach() == NEVER).all(-1, keepdim=True)


@dataclass(frozen=True, repr=False)
class Softmax(Normaliser):
    """exp(s) / sum exp(s); the row statistic is the log-sum-exp."""

    mergeable = True
    pointwise = True

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del tensors
        if not gaps:
            return torch.softmax(scores, -1, out=out)
        if out is not None or not (is_tracing() or (torch.is_grad_enabled() and scores.requires_grad)):
            weights = torch.softmax(scores, -1, out=out)
            # A row that is empty or has NaN is NaN everywhere, also at hidden keys: one column is enough to notice.
            return weights.masked_fill_(scores == NEVER, 0) if bool(weights[..., 0].isnan().any()) else weights
        empty = _empty(scores)
        # Filled before the softmax, not after: there the gradient would be NaN already.
        return torch.softmax(scores.masked_fill(empty, 0), -1).masked_fill(scores.detach() == NEVER, 0)

    def statistic(self, scores: Float[Tensor, "*batch rows cols"], cols: Span) -> Float[Tensor, "*batch rows"]:
        del cols
        return torch.logsumexp(scores, -1)

    def from_statistic(
        self,
        scores: Float[Tensor, "... rows cols"],
        statistic: Float[Tensor, "... rows"],
        cols: Span,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del cols
        safe = torch.where(statistic == NEVER, 0.0, statistic).unsqueeze(-1)
        return torch.exp(scores - safe) if out is None else torch.sub(scores, safe, out=out).exp_()

    def jacobian_diagonal(self, weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return weights

    def statistic_from_weight(
        self, score: Float[Tensor, "*batch rows"], weight: Float[Tensor, "*batch rows"]
    ) -> Float[Tensor, "*batch rows"]:
        return score - weight.log()

    def __repr__(self) -> str:
        return "softmax"


class Threshold(Normaliser, abstract=True):
    """max(x - tau, 0)^power with x = slope * score; the threshold tau, the row statistic, makes a row sum to 1."""

    power: ClassVar[int] = 1
    slope: ClassVar[float] = 1.0
    pointwise = True

    def closed_form(
        self, x: Float[Tensor, "*batch rows cols"], support: Bool[Tensor, "*batch rows cols"]
    ) -> Float[Tensor, "*batch rows 1"]:
        """tau as a differentiable function of x on its support, the keys with positive weight."""
        raise NotImplementedError

    def tau(self, x: Float[Tensor, "*batch rows cols"]) -> Float[Tensor, "*batch rows 1"]:
        """The threshold, by Newton's method."""
        with torch.no_grad():
            tau = x.amax(-1, keepdim=True) - 1  # the sum is at least 1 here, and Newton's steps stay below the root
            for _ in range(NEWTON_STEPS):
                excess = (x - tau).clamp_min(0)
                slope = excess if self.power == 2 else (excess > 0).to(x.dtype)
                step = (excess.pow(self.power).sum(-1, keepdim=True) - 1) / (self.power * slope.sum(-1, keepdim=True))
                tau = tau + step.clamp_min(0)
                if not is_tracing() and not bool((step > 4 * torch.finfo(x.dtype).eps * tau.abs()).any()):
                    break
            support = x > tau
        return self.closed_form(x, support)

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del tensors, out
        empty = _empty(scores) if gaps else None
        x = self.slope * (scores if empty is None else scores.masked_fill(empty, 0))
        weights = (x - self.tau(x)).clamp_min(0).pow(self.power)
        weights = weights if empty is None else weights.masked_fill(empty, 0)
        # A row that has NaN or +inf has no threshold: as with softmax, its weights are NaN.
        lost = ~(x.detach().amax(-1, keepdim=True) < math.inf)
        if not is_tracing() and not bool(lost.any()):
            return weights
        return weights.masked_fill(lost & (scores.detach() != NEVER), math.nan)

    def from_statistic(
        self,
        scores: Float[Tensor, "... rows cols"],
        statistic: Float[Tensor, "... rows"],
        cols: Span,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del cols, out
        safe = torch.where(statistic == NEVER, 0.0, statistic)
        return (self.slope * scores - safe.unsqueeze(-1)).clamp_min(0).pow(self.power)

    def jacobian_diagonal(self, weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return weights.sqrt() if self.power == 2 else (weights > 0).to(weights.dtype) + 0 * weights  # NaN stays NaN

    def statistic_from_weight(
        self, score: Float[Tensor, "*batch rows"], weight: Float[Tensor, "*batch rows"]
    ) -> Float[Tensor, "*batch rows"]:
        return self.slope * score - weight.pow(1 / self.power)


@dataclass(frozen=True, repr=False)
class Sparsemax(Threshold):
    """max(s - tau, 0)."""

    def closed_form(
        self, x: Float[Tensor, "*batch rows cols"], support: Bool[Tensor, "*batch rows cols"]
    ) -> Float[Tensor, "*batch rows 1"]:
        inside = torch.where(support, x, 0.0)
        return (inside.sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True).clamp_min(1)

    def __repr__(self) -> str:
        return "sparsemax"


@dataclass(frozen=True, repr=False)
class Entmax15(Threshold):
    """max(s / 2 - tau, 0)^2."""

    power: ClassVar[int] = 2
    slope: ClassVar[float] = 0.5

    def closed_form(
        self, x: Float[Tensor, "*batch rows cols"], support: Bool[Tensor, "*batch rows cols"]
    ) -> Float[Tensor, "*batch rows 1"]:
        count = support.sum(-1, keepdim=True).clamp_min(1)
        mean = torch.where(support, x, 0.0).sum(-1, keepdim=True) / count
        spread = torch.where(support, x - mean, 0.0).square().sum(-1, keepdim=True)
        return mean - ((1 - spread) / count).clamp_min(torch.finfo(x.dtype).tiny).sqrt()

    def __repr__(self) -> str:
        return "entmax15"


@dataclass(frozen=True, repr=False)
class Sigmoid(Normaliser):
    """1 / (1 + exp(-s - bias)); the row statistic says only whether a row is empty."""

    bias: float

    normalised = False
    mergeable = True
    pointwise = True

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del tensors, gaps, out
        return torch.sigmoid(scores + self.bias)

    def statistic(self, scores: Float[Tensor, "*batch rows cols"], cols: Span) -> Float[Tensor, "*batch rows"]:
        del cols
        return torch.where(_empty(scores).squeeze(-1), NEVER, torch.zeros_like(scores[..., 0]))

    def from_statistic(
        self,
        scores: Float[Tensor, "... rows cols"],
        statistic: Float[Tensor, "... rows"],
        cols: Span,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del statistic, cols, out
        return self.weights(scores)

    def statistic_from_weight(
        self, score: Float[Tensor, "*batch rows"], weight: Float[Tensor, "*batch rows"]
    ) -> Float[Tensor, "*batch rows"]:
        del weight
        return torch.zeros_like(score)

    def jacobian_diagonal(self, weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return weights * (1 - weights)

    def __repr__(self) -> str:
        return "sigmoid" if self.bias == 0 else f"sigmoid(bias={self.bias:g})"


@dataclass(frozen=True, eq=False, repr=False)
class Tapered(Normaliser):
    """softmax times exp(-(j - p_i)² / 2σ²), a Gaussian around the centre p_i of each query: rows sum to less than 1.

    This is the alignment of Luong's local-p attention. It is differentiable in the centres, which can be learned so.
    """

    centres: Tensor  # (..., n)
    keys: int
    sigma: float

    n_operands = 2
    head_axes: ClassVar[Mapping[str, int]] = {"centres": -2}
    normalised = False
    monotone = False  # a better score far from the centre may weigh less

    def operands(self, lead: tuple[int, ...], n: int, like: Float[Tensor, "..."]) -> tuple[Operand, ...]:
        del lead, n
        places = torch.arange(self.keys, dtype=self.centres.dtype, device=like.device)
        return Operand(self.centres.unsqueeze(-1), Axis.QUERY), Operand(places.unsqueeze(-1), Axis.KEY)

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        del out
        centres, places = tensors
        near = torch.exp((places.mT - centres).square() * (-0.5 / self.sigma**2))
        return softmax().weights(scores, gaps=gaps) * near.to(scores.dtype)

    def __repr__(self) -> str:
        return f"exp(-(j - p)² / {2 * self.sigma**2:g}) softmax"


@dataclass(frozen=True, eq=False, repr=False)
class Hard(Normaliser):
    """All the weight on one key: the first of those with the best score, or one drawn from the softmax."""

    sample: bool
    generator: torch.Generator | None

    monotone = False  # a draw need not take the best, and of equals only the first is taken
    chooses = True

    @property
    def signature(self) -> Hashable:
        return (type(self), self.sample)  # no plan depends on a generator

    @property
    def arity(self) -> int:
        return int(self.sample)

    def operands(self, lead: tuple[int, ...], n: int, like: Float[Tensor, "..."]) -> tuple[Operand, ...]:
        if not self.sample:
            return ()
        draw = torch.rand((*lead, n, 1), generator=self.generator, dtype=like.dtype, device=like.device)
        return (Operand(draw, Axis.QUERY),)

    def jacobian_diagonal(self, weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return 0 * weights  # a choice does not change with the scores

    def choice(self, scores: Float[Tensor, "... rows cols"], tensors: Sequence[Tensor]) -> Int[Tensor, "... rows 1"]:
        """The column that is chosen in each row, (..., rows, 1)."""
        scores = scores.detach()
        if not tensors:
            best = scores.amax(-1, keepdim=True)
            return (scores == best).to(torch.uint8).argmax(-1, keepdim=True)
        below = torch.softmax(scores.masked_fill(_empty(scores), 0), -1).cumsum(-1)
        return (below <= tensors[0] * below[..., -1:]).sum(-1, keepdim=True).clamp_max(scores.shape[-1] - 1)

    def chosen(
        self, scores: Float[Tensor, "... rows cols"], cols: Span, tensors: Sequence[Tensor] = ()
    ) -> Int[Tensor, "... rows 1"]:
        return cols.positions(scores.device)[self.choice(scores, tensors)].masked_fill(_empty(scores), -1)

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor] = (),
        *,
        gaps: bool = True,
        out: Float[Tensor, "... rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        """One-hot rows; `tensors` are empty, or draws from 0 to 1, or chosen keys and positions of the columns."""
        del gaps, out
        broken = scores.isnan().any(-1, keepdim=True)
        if len(tensors) == 2:
            chosen, positions = tensors
            return (positions.mT == chosen).to(scores.dtype).masked_fill(broken, math.nan)
        choice = self.choice(scores, tensors)
        weights = torch.zeros_like(scores.expand(*choice.shape[:-1], -1)).scatter(-1, choice, 1.0)
        return weights.masked_fill(_empty(scores), 0).masked_fill(broken, math.nan)

    def __repr__(self) -> str:
        return "hard(sample=True)" if self.sample else "hard"


def softmax() -> Normaliser:
    """exp(s) / sum exp(s)."""
    return Softmax()


def sparsemax() -> Normaliser:
    """max(s - tau, 0): the nearest point of the simplex, with true zeros (Martins and Astudillo 2016)."""
    return Sparsemax()


def entmax15() -> Normaliser:
    """max(s / 2 - tau, 0)²: half way between softmax and sparsemax (Peters, Niculae and Martins 2019)."""
    return Entmax15()


def sigmoid(bias: float = 0.0) -> Normaliser:
    """1 / (1 + exp(-s - bias)), each key for itself: rows do not sum to 1."""
    added = as_float(bias, "sigmoid(bias)")
    if not math.isfinite(added):
        msg = f"sigmoid(bias) needs a finite number, but bias is {bias}"
        raise ChoiceError(msg)
    return Sigmoid(added)


def hard(sample: bool = False, generator: torch.Generator | None = None) -> Normaliser:
    """All the weight on one key: the first of the best, or with `sample` one drawn from the softmax, once."""
    return Hard(sample, generator)
