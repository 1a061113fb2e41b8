"""What every score is: a function of one query and one key that can fill in any block of the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from regard.errors import DtypeError, ShapeError
from regard.operands import Operand, Span
from regard.term import Term


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


class Score(Term["Score"], abstract=True):
    """A function of one query and one key. Subclasses fill in `operands` and `tile`."""

    @property
    def hides_keys(self) -> bool:
        """Whether the score can be -inf by itself."""
        return any(part.hides_keys for part in self.parts)

    @property
    def positional(self) -> bool:
        """Whether the score looks at positions alone, neither at the query nor at the key."""
        return bool(self.parts) and all(part.positional for part in self.parts)

    @property
    def is_pairwise(self) -> bool:
        """Whether something without features varies by query and key: a fused kernel is handed it block by block."""
        return any(part.is_pairwise for part in self.parts)

    def __add__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            msg = f"a score is added to another of regard.scores, not to {type(other).__name__}: wrap it in scores.bias"
            raise DtypeError(msg)
        return Sum(self, other)

    def leading_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Leading shapes, by name, that must broadcast to the one of the weights."""
        return tuple([lead for part in self.parts for lead in part.leading_shapes()])

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        """Raise where sizes do not fit."""
        for part in self.parts:
            part.check(n, m, d_q, d_k)

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        """What tiles are cut from."""
        return tuple([operand for part in self.parts for operand in part.operands(query, key)])

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def rowwise(self, query: Tensor, key: Tensor) -> Tensor:
        """s(q_i, k_i), each query with the key in its own row: (..., n, d_q), (..., n, d_k) -> (..., n)."""
        raise NotImplementedError

    def obstacle(self, *, grad: bool) -> str | None:
        """Why a fused kernel cannot compute this score, or None if it can."""
        del grad
        return f"{self} is not an inner product of features"

    def features(self, query: Tensor, key: Tensor) -> Features:
        raise NotImplementedError

    def magnitude(self, query: Tensor, key: Tensor) -> Tensor:
        """A bound on |score|, from which follows how many digits float32 leaves."""
        return sum([part.magnitude(query, key) for part in self.parts], start=query.new_zeros(()))


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

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del out
        one, two = self.split_operands(tensors)
        return self.first.tile(one, rows, cols) + self.second.tile(two, rows, cols)

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

    def __repr__(self) -> str:
        return f"{self.first} + {self.second}".replace("+ -", "- ")
