"""Saturation of softmax with growing d_k: why scores are divided by sqrt(d_k)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import scores
from regard.analysis._table import Formats, Table, Titles
from regard.attention import attend
from regard.display.progress import progress
from regard.errors import ChoiceError

POWERS_OF_TWO = tuple(2**i for i in range(11))


class SaturationRow(NamedTuple):
    """Measurements for one length d_k of queries and keys; the last four are means over all rows of weights."""

    d_k: int
    scaled: bool
    mean: float  # of the scores
    variance: float  # of the scores
    error: float  # standard error of that variance
    entropy: float  # in nats: log(keys) = uniform, 0 = one-hot
    saturation: float  # sum of p^2: 1 / keys = uniform, 1 = one-hot
    jacobian: float  # Frobenius norm of d weights / d scores; at 0 no gradient passes
    gradient: float  # norm of d output / d scores for one row


@dataclass(frozen=True, repr=False)
class SaturationTable(Table[SaturationRow]):
    """Saturation by d_k: iterate over rows, take a column, sort, print, or make a data frame."""

    keys: int

    columns: ClassVar[tuple[str, ...]] = SaturationRow._fields
    _titles: ClassVar[Titles] = {"scaled": "score"}
    _formats: ClassVar[Formats] = {"scaled": lambda scaled: "q.k/sqrt(d_k)" if scaled else "q.k"}

    @property
    def scaled(self) -> "SaturationTable":
        """The rows with scores divided by sqrt(d_k)."""
        return self._with_rows([row for row in self.rows if row.scaled])

    @property
    def unscaled(self) -> "SaturationTable":
        """The rows with plain dot products."""
        return self._with_rows([row for row in self.rows if not row.scaled])


def saturation(
    d_k: Sequence[int] = POWERS_OF_TWO, *, keys: int = 64, queries: int = 64, trials: int = 64, seed: int = 0
) -> SaturationTable:
    """Measure how softmax saturates as queries and keys get longer, with and without the division by sqrt(d_k).

    The entries of queries and keys are independent N(0, 1), so q.k has mean 0 and variance d_k. Softmax of such scores
    approaches one-hot, where its Jacobian dp_k / dx_i = p_k (delta_ki - p_i) vanishes: no gradient passes.
    Divided by sqrt(d_k), the scores have variance 1 at every length.

    d_k: lengths to measure. keys, queries: how many in a trial. trials: independent draws. seed: of the draws.

    >>> table = saturation([1, 256], trials=16)
    >>> [round(row.entropy, 1) for row in table.scaled], [round(row.entropy, 1) for row in table.unscaled]
    ([3.7, 3.7], [3.7, 0.3])
    """
    for name, count, least in (("keys", keys, 1), ("queries", queries, 1), ("trials", trials, 2)):
        if count < least:
            raise ChoiceError(f"{name} must be at least {least} to measure anything, {count} came")
    if not d_k or min(d_k) < 1:
        raise ChoiceError(f"d_k must hold lengths of at least 1, {d_k} came")
    generator = torch.Generator().manual_seed(seed)
    rows: list[SaturationRow] = []
    with progress("measuring saturation", len(d_k)) as advance:
        for size in d_k:
            shapes = (queries, size), (keys, size), (keys, 1)
            q, k, v = (torch.randn(trials, *shape, generator=generator, dtype=torch.float64) for shape in shapes)
            rows += [_measure(q, k, v, scaled=False), _measure(q, k, v, scaled=True)]
            advance()
    return SaturationTable(tuple(rows), keys)


def _measure(
    q: Float[Tensor, "trials queries dim"],
    k: Float[Tensor, "trials keys dim"],
    v: Float[Tensor, "trials keys 1"],
    *,
    scaled: bool,
) -> SaturationRow:
    score = scores.scaled_dot() if scaled else scores.dot()
    # A bias of zeros changes nothing, and its gradient is the gradient of the scores themselves.
    zeros = torch.zeros(*q.shape[:-1], k.shape[-2], dtype=q.dtype, requires_grad=True)
    output, weights = attend(q, k, v, score=score + scores.bias(zeros))
    (gradient,) = torch.autograd.grad(output.sum(), zeros)
    with torch.no_grad():
        dots = q @ k.mT * (q.shape[-1] ** -0.5 if scaled else 1.0)
        by_trial = dots.square().mean((-2, -1))  # the true mean is 0
        squares, cubes = weights.saturation(), weights.dense().pow(3).sum(-1)
        return SaturationRow(
            d_k=q.shape[-1],
            scaled=scaled,
            mean=dots.mean().item(),
            variance=by_trial.mean().item(),
            error=(by_trial.std() / len(by_trial) ** 0.5).item(),
            entropy=weights.entropy().mean().item(),
            saturation=squares.mean().item(),
            jacobian=jacobian_norm(squares, cubes).mean().item(),
            gradient=gradient.norm(dim=-1).mean().item(),
        )


def jacobian_norm(squares: Float[Tensor, "*rows"], cubes: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """Frobenius norm of the softmax Jacobian diag(p) - p p^T, from sum_j p_j² and sum_j p_j³.

    >>> import torch
    >>> p = torch.tensor([0.5, 0.5])
    >>> jacobian_norm(p.square().sum(), p.pow(3).sum())
    tensor(0.5000)
    """
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()
