"""What every score is: a function of one query and one key that can fill in any block of the matrix."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from regard._operands import Operand, Span, joined
from regard.errors import DtypeError, ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """score = scale * query . key + key_bias + rest + row: the form that a fused kernel can run.

    `rest` are scores without gradient that are handed to the kernel as a bias block by block; `row` is
    constant along a row, so it matters to the log-sum-exp alone.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    scale: float = 1.0
    key_bias: Tensor | None = None  # (..., 1, m)
    row: Tensor | None = None  # (..., n)
    rest: tuple[Score, ...] = ()


class Score:
    """A function of one query and one key. Subclasses fill in `operands` and `tile`."""

    @property
    def compact(self) -> bool:
        """Whether the score can be -inf by itself."""
        return False

    @property
    def arity(self) -> int:
        """How many operands this score makes."""
        return 2

    @property
    def positional(self) -> bool:
        """Whether it looks at positions alone, never at a query or a key."""
        return False

    def __add__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            msg = f"a score is added to another of regard.scores, not to {type(other).__name__}: wrap it in scores.bias"
            raise DtypeError(msg)
        return Sum(self, other)

    @property
    def signature(self) -> Hashable:
        """All that a plan may depend on: the class and the sizes, never the numbers in tensors."""
        return (
            type(self).__name__,
            tuple((name, tuple(t.shape), t.dtype, t.device, t.requires_grad) for name, t in self.tensors().items()),
        )

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors that belong to the caller, by name."""
        return {}

    def leads(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Leading shapes, by name, that must broadcast to the one of the weights."""
        return ()

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        """Raise where sizes do not fit."""
        same_width(self, d_q, d_k)

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        raise NotImplementedError

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def obstacle(self, *, grad: bool) -> str | None:
        """Why a fused kernel cannot compute this score, or None if it can."""
        del grad
        return f"{self} is not an inner product of features"

    def features(self, query: Tensor, key: Tensor) -> Features:
        raise NotImplementedError

    def magnitude(self, query: Tensor, key: Tensor) -> Tensor:
        """A bound on |score|, from which follows how many digits float32 leaves."""
        del key
        return query.new_zeros(())

    def __str__(self) -> str:
        return repr(self)


def same_width(score: Score, d_q: int, d_k: int) -> None:
    if d_q != d_k:
        msg = (
            f"{score} compares a query with a key feature by feature, so both need the same width: "
            f"query has {d_q}, key has {d_k} (general, additive and concat take different widths)"
        )
        raise ShapeError(msg)


def norm_product(query: Tensor, key: Tensor) -> Tensor:
    if query.numel() == 0 or key.numel() == 0:
        return query.new_zeros(())
    return query.norm(dim=-1).amax() * key.norm(dim=-1).amax()


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Score):
    first: Score
    second: Score

    @property
    def compact(self) -> bool:
        return self.first.compact or self.second.compact

    @property
    def arity(self) -> int:
        return self.first.arity + self.second.arity

    @property
    def positional(self) -> bool:
        return self.first.positional and self.second.positional

    @property
    def signature(self) -> Hashable:
        return ("Sum", self.first.signature, self.second.signature)

    def tensors(self) -> Mapping[str, Tensor]:
        return joined(self.first.tensors(), self.second.tensors())

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        self.first.check(n, m, d_q, d_k)
        self.second.check(n, m, d_q, d_k)

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        return self.first.operands(query, key) + self.second.operands(query, key)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del out
        split = self.first.arity
        return self.first.tile(tensors[:split], rows, cols) + self.second.tile(tensors[split:], rows, cols)

    def obstacle(self, *, grad: bool) -> str | None:
        obstacle = self.first.obstacle(grad=grad) or self.second.obstacle(grad=grad)
        if obstacle is None and not (self.first.positional or self.second.positional):
            return f"{self} is a sum of two inner products"
        return obstacle

    def features(self, query: Tensor, key: Tensor) -> Features:
        one, two = self.first.features(query, key), self.second.features(query, key)
        main, extra = (one, two) if two.query is None else (two, one)
        both = [bias for bias in (one.key_bias, two.key_bias) if bias is not None]
        key_bias = both[0] + both[1] if len(both) == 2 else next(iter(both), None)
        return replace(main, key_bias=key_bias, rest=main.rest + extra.rest)

    def leads(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return self.first.leads() + self.second.leads()

    def magnitude(self, query: Tensor, key: Tensor) -> Tensor:
        return self.first.magnitude(query, key) + self.second.magnitude(query, key)

    def __repr__(self) -> str:
        return f"{self.first} + {self.second}".replace("+ -", "- ")
