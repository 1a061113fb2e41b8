"""The base class of scores: functions s(q_i, k_j) that can compute any block of the n x m matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from regard.errors import DtypeError, ShapeError
from regard.operands import Axis, Operand, Size, Span, Tile
from regard.term import Term


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """A score in the form that a fused kernel can run: scale * query . key + key_bias + rest + row.

    `rest` are scores without gradient, which the kernel gets block by block as a bias. `row` is constant along a row,
    so weights do not depend on it, but their log-sum-exp does.
    """

    query: Tensor | None = None  # (..., n, features)
    key: Tensor | None = None  # (..., m, features)
    scale: float = 1.0
    key_bias: Tensor | None = None  # (..., 1, m)
    row: Tensor | None = None  # (..., n)
    rest: tuple[Score, ...] = ()


class Score(Term["Score"], abstract=True):
    """A function s(q_i, k_j) of one query and one key.

    A subclass must have `operands` and `tile`. With `obstacle` and `features` it also runs on torch's fused kernel, and
    with `magnitude` large scores are noticed that float32 would round too much.
    """

    @property
    def hides_keys(self) -> bool:
        """True if the score can be -inf by itself, which hides a key."""
        return any(part.hides_keys for part in self.parts)

    @property
    def positional(self) -> bool:
        """True if the score depends on the positions i and j alone, neither on the query nor on the key."""
        return bool(self.parts) and all(part.positional for part in self.parts)

    @property
    def relative(self) -> bool:
        """True if the score depends on j - i alone."""
        return bool(self.parts) and all(part.relative for part in self.parts)

    @property
    def is_pairwise(self) -> bool:
        """True if a part without features varies by query and key: a fused kernel gets it block by block as a bias."""
        return any(part.is_pairwise for part in self.parts)

    def __add__(self, other: Score) -> Score:
        if not isinstance(other, Score):
            msg = f"a score is added to another of regard.scores, not to {type(other).__name__}: wrap it in scores.bias"
            raise DtypeError(msg)
        return Sum(self, other)

    def leading_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Leading shapes of tensors, by label, which must broadcast to that of the weights."""
        return tuple([shape for part in self.parts for shape in part.leading_shapes()])

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        """Raise an error where the tensors do not fit n queries of width d_q and m keys of width d_k."""
        for part in self.parts:
            part.check(n, m, d_q, d_k)

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        """Tensors from which tiles are cut, as many as `arity` says."""
        return tuple([operand for part in self.parts for operand in part.operands(query, key)])

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        """Scores (..., rows, cols) of a tile; `tensors` are the operands, cut to it. `out` may take the result."""
        raise NotImplementedError

    def rowwise(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch queries d_k"]
    ) -> Float[Tensor, "*batch queries"]:
        """s(q_i, k_i) of each query with the key in the same row."""
        raise NotImplementedError

    def obstacle(self, *, grad: bool) -> str | None:
        """The reason, in words, why a fused kernel cannot compute this score; None if it can."""
        del grad
        return f"{self} is not an inner product of features"

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        """The score as an inner product; asked for only where `obstacle` is None."""
        raise NotImplementedError

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        """The score on the rectangle of these rows and columns, counted from 0, of a matrix of this size.

        Its queries and keys are those of the rectangle alone.
        """
        return ScorePart(self, rows, cols, size)

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        """An upper bound on |score|: where it is large, float32 rounds scores too much and float64 is used."""
        return sum([part.magnitude(query, key) for part in self.parts], start=query.new_zeros(()))


def same_width(score: Score, d_q: int, d_k: int) -> None:
    """Raise an error if query and key differ in width."""
    if d_q != d_k:
        msg = (
            f"{score} compares a query with a key feature by feature, so both need the same width: "
            f"query has {d_q}, key has {d_k} (general, additive and concat take different widths)"
        )
        raise ShapeError(msg)


def norm_product(
    query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
) -> Float[Tensor, ""]:
    """Largest |q| times largest |k|, an upper bound on |q . k|."""
    if query.numel() == 0 or key.numel() == 0:
        return query.new_zeros(())
    return query.norm(dim=-1).amax() * key.norm(dim=-1).amax()


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Score):
    """first + second."""

    first: Score
    second: Score

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del out
        one, two = self.split_operands(tensors)
        return self.first.tile(one, rows, cols) + self.second.tile(two, rows, cols)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return Sum(self.first.part(rows, cols, size), self.second.part(rows, cols, size))

    def obstacle(self, *, grad: bool) -> str | None:
        obstacle = self.first.obstacle(grad=grad) or self.second.obstacle(grad=grad)
        if obstacle is None and not (self.first.positional or self.second.positional):
            return f"{self} is a sum of two inner products"
        return obstacle

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        one, two = self.first.features(query, key), self.second.features(query, key)
        main, extra = (one, two) if two.query is None else (two, one)
        biases = [bias for bias in (one.key_bias, two.key_bias) if bias is not None]
        key_bias = biases[0] + biases[1] if len(biases) == 2 else next(iter(biases), None)
        return replace(main, key_bias=key_bias, rest=main.rest + extra.rest)

    def __repr__(self) -> str:
        return f"{self.first} + {self.second}".replace("+ -", "- ")


@dataclass(frozen=True, eq=False, repr=False)
class ScorePart(Score, abstract=True):
    """A rectangle of another score: rows and columns are counted from 0, and the score applies where they lie.

    Operands that the score has along all queries or keys are cut; those made of the rectangle's own are as they are.
    """

    inner: Score
    rows: Span
    cols: Span
    size: Size  # of the whole matrix

    @property
    def signature(self) -> object:
        return object()  # a plan for it is not remembered

    @property
    def relative(self) -> bool:
        return False

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        return tuple([self._cut(operand) for operand in self.inner.operands(query, key)])

    def _cut(self, operand: Operand) -> Operand:
        """The operand on the rectangle."""
        tensor, axis = operand
        if axis is Axis.QUERY and tensor.shape[-2] != self.size.n:
            return operand
        if axis is Axis.KEY and tensor.shape[-2] != self.size.m:
            return operand
        return Operand(Tile((), self.rows, self.cols).cut(operand), axis)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        return self.inner.tile(tensors, self.rows.pick(rows), self.cols.pick(cols), out)

    def __repr__(self) -> str:
        return repr(self.inner)
