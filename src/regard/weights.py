"""The n x m matrix of weights as an object that is never built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from regard.engine import index as index_module
from regard.engine import inputs, questions
from regard.engine.lazy_matrix import LazyMatrix
from regard.engine.plan import Plan
from regard.engine.reducers import Heatmap, MeanDistance, VisibleKeys
from regard.errors import ChoiceError, DeviceError, DtypeError, NotNormalisedError, ShapeError, TooLargeError
from regard.masks import Mask
from regard.normalisers import Normaliser, Softmax
from regard.operands import Axis, Operand
from regard.scores import Score
from regard.spec import Spec
from regard.term import type_name
from regard.tracing import is_tracing, without_autocast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DENSE_LIMIT = 2**28


class TopK(NamedTuple):
    """The largest weights of each row and the keys they are on; 0 and -1 where a query sees fewer keys."""

    values: Tensor
    indices: Tensor


class Weights:
    r"""The weights p_ij = normalise_j(score(q_i, k_j)), never built, yet exact.

    Shapes: query (..., n, d_q), key (..., m, d_k); the matrix is (..., n, m).

    >>> import torch, regard as rg
    >>> tokens = torch.eye(3)
    >>> weights = rg.Weights(tokens, tokens)
    >>> weights.shape
    torch.Size([3, 3])
    >>> weights[0].round(decimals=2)
    tensor([0.4700, 0.2600, 0.2600])
    """

    __slots__ = ("_matrix",)

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        score: Score | None = None,
        mask: Mask | None = None,
        normaliser: Normaliser | None = None,
        plan: str = "auto",
        budget: int | None = None,
    ) -> None:
        self._matrix = LazyMatrix.build(query, key, inputs.make_spec(score, mask, normaliser), plan, budget)

    # What it is

    @property
    def query(self) -> Tensor:
        """The queries (..., n, d_q), as they were given."""
        return self._matrix.query

    @property
    def key(self) -> Tensor:
        """The keys (..., m, d_k), as they were given."""
        return self._matrix.key

    @property
    def shape(self) -> torch.Size:
        shape = self._matrix.call.shape
        return torch.Size((*shape.lead, shape.n, shape.m))

    @property
    def ndim(self) -> int:
        return len(self._matrix.lead) + 2

    @property
    def dtype(self) -> torch.dtype:
        return self.query.dtype

    @property
    def device(self) -> torch.device:
        return self.query.device

    @property
    def plan(self) -> Plan:
        """Which executor, and why, in one printable line."""
        return self._matrix.plan

    @property
    def spec(self) -> Spec:
        """Score, mask and normaliser."""
        return self._matrix.spec

    @property
    def normalised(self) -> bool:
        """Whether a row that sees a key sums to 1."""
        return self.spec.normaliser.normalised

    def __repr__(self) -> str:
        sizes = " x ".join(str(length) for length in self.shape)
        sums = "" if self.normalised else "rows do not sum to 1, "
        return f"Weights({sizes}, {self.spec}, {self.dtype}, {sums}never built)"

    def __len__(self) -> int:
        return self.shape[0]

    # Products

    def __matmul__(self, x: Tensor) -> Tensor:
        """Pool: (..., n, m) @ (..., m, d) -> (..., n, d). Differentiable."""
        return self._product(x, self._matrix.size.m, "keys", self._matrix.pool)

    @property
    def mT(self) -> Transposed:  # noqa: N802
        """The transposed matrix, a lazy view."""
        return Transposed(self)

    def _product(self, x: Tensor, length: int, what: str, run: Callable[[Tensor], Tensor]) -> Tensor:
        self._matrix.check_fresh()
        if not isinstance(x, Tensor) or x.dtype != self.dtype:
            msg = f"weights @ x needs a tensor of {self.dtype}, but x is {type_name(x)}"
            raise DtypeError(msg)
        if x.device != self.device:
            msg = f"weights @ x needs x on the device of the weights, {self.device}, but it is on {x.device}"
            raise DeviceError(msg)
        matrix = x.unsqueeze(-1) if x.dim() == 1 else x
        if x.dim() == 0 or matrix.shape[-2] != length:
            msg = (
                f"weights @ x needs x with one row for each of {length} {what}: "
                f"weights {tuple(self.shape)}, x {tuple(x.shape)}"
            )
            raise ShapeError(msg)
        with without_autocast():
            out = run(inputs.working(matrix)).to(self.dtype)
        return out.squeeze(-1) if x.dim() == 1 else out

    # Blocks

    def __getitem__(self, index: Any) -> Tensor:
        """A dense block: ints, slices and index tensors mean what they mean for a tensor. Not differentiable."""
        return self._block(index_module.parse(index, tuple(self.shape), self.device), "this block", DENSE_LIMIT)

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole matrix, refused above `limit` bytes. Not differentiable: pool with ``@`` for that."""
        return self._block(index_module.parse(..., tuple(self.shape), self.device), "the whole matrix", limit)

    def _block(self, picked: index_module.Picked, what: str, limit: int, *, turned: bool = False) -> Tensor:
        self._matrix.check_fresh()
        size = picked.numel() * self.query.element_size()
        if size > limit:
            msg = (
                f"{what} of {tuple(self.shape)} weights would take {size:,} bytes, above the limit of {limit:,}: "
                f"ask for fewer rows, or for weights.heatmap(); dense(limit={size}) would build it"
            )
            raise TooLargeError(msg)
        with without_autocast():
            return self._matrix.block(picked, turned=turned).to(self.dtype)

    # Questions

    def logsumexp(self) -> Tensor:
        """log sum_j exp(s_ij), (..., n); softmax only. Differentiable."""
        if not isinstance(self.spec.normaliser, Softmax):
            msg = f"logsumexp is the row statistic of softmax, and these weights are {self.spec.normaliser}"
            raise NotNormalisedError(msg)
        known = self._matrix.logsumexp_of_kernel()
        return self._row_question("logsumexp") if known is None else known

    def entropy(self) -> Tensor:
        """-sum_j p_ij log p_ij in nats, (..., n). Differentiable."""
        return self._row_question("entropy")

    def saturation(self) -> Tensor:
        """sum_j p_ij²: 1 is one-hot, 1/m is uniform, (..., n). Differentiable."""
        return self._row_question("saturation")

    def distance(self, query_positions: Tensor | None = None) -> Tensor:
        """sum_j p_ij |i - j|, (..., n); with n != m say where the queries stand. Differentiable."""
        positions = questions.positions(query_positions, self._matrix.lead, self._matrix.size)
        if self._matrix.wants_gradient() or is_tracing():
            return self._row_question("distance", (Operand(positions.unsqueeze(-1), Axis.QUERY),))
        self._needs_distribution("distance")
        return self._matrix.survey([MeanDistance(positions)])[0].to(self._matrix.answer_dtype)

    def received(self) -> Tensor:
        """sum_i p_ij: what each key gets from all queries, (..., m). Not differentiable: use ``weights.mT @ ones``."""
        return self._matrix.overview("received")

    def mass(self, groups: Tensor) -> Tensor:
        """The weight on each group of keys, (..., n, groups): ids are (m,) or (B, m), -1 is none. Differentiable."""
        self._matrix.check_fresh()
        marks = questions.membership(groups, self._matrix.lead, self._matrix.size)
        with without_autocast():
            return self._matrix.pool_precisely(marks).to(self._matrix.answer_dtype)

    def top(self, k: int) -> TopK:
        """The k largest weights of each row, and where they are: (..., n, k) both. Not differentiable."""
        if not isinstance(k, int) or k < 1:
            msg = f"top(k) needs a whole number of keys, 1 or more, not {k!r}"
            raise ChoiceError(msg)
        if k <= questions.TOP:
            values, indices = self._matrix.overview("top")
        else:
            ((values, indices),) = self._matrix.survey([questions.top(self.spec.normaliser, k)])
        values = values[..., :k].to(self._matrix.answer_dtype, copy=True)
        return TopK(values, indices[..., :k].to(torch.int64, copy=True))

    def heatmap(self, bins: int = 256, pool: str = "mean") -> Tensor:
        """The matrix in bins x bins cells (fewer where it is smaller), pooled by "mean", "max" or "sum".

        Bin b holds rows floor(b n / bins) to floor((b + 1) n / bins), columns likewise; hidden cells count as 0.
        Not differentiable.
        """
        if not isinstance(bins, int) or bins < 1:
            msg = f"heatmap(bins) needs a whole number of bins, 1 or more, not {bins!r}"
            raise ChoiceError(msg)
        reducer = Heatmap(bins, pool, self._matrix.size)
        if bins == questions.BINS and pool != "max":
            return reducer.finish(self._matrix.overview("heatmap")).to(self._matrix.answer_dtype)
        return self._matrix.survey([reducer])[0].to(self._matrix.answer_dtype)

    def empty_rows(self) -> Tensor:
        """True for queries that see no key, (..., n)."""
        self._matrix.check_fresh()
        if not self.spec.hides_keys and self._matrix.size.m:
            return torch.zeros(self.shape[:-1], dtype=torch.bool, device=self.device)
        if not self.spec.score.hides_keys and not is_tracing():
            return questions.unseen(self._matrix.problem())
        return self._matrix.survey([VisibleKeys()])[0] == 0

    def snapshot(self) -> Weights:
        """A detached copy that no longer depends on the caller's tensors."""
        return weights_of(self._matrix.snapshot())

    # Pictures

    def plot(self, tokens: Sequence[object] | None = None, **options: Any) -> Axes:
        """A heatmap as matplotlib Axes, empty rows hatched; see `regard.plot.heatmap`."""
        from regard.plot import heatmap

        return heatmap(self, tokens, **options)

    def view(self, tokens: Sequence[object] | None = None, query_tokens: Sequence[object] | None = None) -> Any:
        """A widget of a notebook, to look at them in any depth; tokens: a label for each key, as for `plot`."""
        from regard.web.notebook.display import view_weights

        return view_weights(self, tokens, query_tokens)

    # Inside

    def _needs_distribution(self, question: str) -> None:
        if not self.spec.normaliser.normalised:
            msg = f"{question} needs rows that sum to 1, and rows of {self.spec.normaliser} do not"
            raise NotNormalisedError(msg)

    def _row_question(self, question: str, extra: tuple[Operand, ...] = ()) -> Tensor:
        self._needs_distribution(question)
        return self._matrix.row_question(question, extra)


def weights_of(matrix: LazyMatrix) -> Weights:
    """The public face of a lazy matrix that the engine has made. Internal: users call `Weights(query, key, ...)`."""
    weights: Weights = object.__new__(Weights)
    weights._matrix = matrix  # noqa: SLF001  this function and `matrix_of` are the only ones who do
    return weights


def matrix_of(weights: Weights) -> LazyMatrix:
    """The engine's view of some weights: formula, size, tiles and passes over them. Internal."""
    return weights._matrix  # noqa: SLF001  see `weights_of`


class Transposed:
    """The transpose of a lazy matrix: a lazy view."""

    __slots__ = ("mT",)

    def __init__(self, weights: Weights) -> None:
        self.mT = weights

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self.mT.shape[:-2], self.mT.shape[-1], self.mT.shape[-2]))

    def __matmul__(self, x: Tensor) -> Tensor:
        """(..., m, n) @ (..., n, d) -> (..., m, d). Differentiable."""
        return self.mT._product(x, self.mT.shape[-2], "queries", matrix_of(self.mT).spread)

    def __getitem__(self, index: Any) -> Tensor:
        picked = index_module.parse(index, tuple(self.shape), self.mT.device)
        return self.mT._block(picked, "this block", DENSE_LIMIT, turned=True)  # noqa: SLF001

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole transposed matrix, refused above `limit` bytes."""
        return self.mT.dense(limit).mT

    def __repr__(self) -> str:
        return f"{self.mT!r}.mT"
