"""`Weights`: questions to the matrix of attention weights, its transpose, its parts and its pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.display.labels import Labels, WeightLabels
from regard.display.notebook_html import weights_html
from regard.display.tensor_habits import advice
from regard.engine import inputs, questions
from regard.engine.lazy_matrix import LazyMatrix, MatrixParts
from regard.engine.plan import Plan
from regard.engine.reducers import Heatmap, MeanDistance
from regard.errors import (
    ChoiceError,
    NoSuchAttributeError,
    NotNormalisedError,
    PositionError,
    ShapeError,
    TooLargeError,
)
from regard.masks import Mask
from regard.normalisers import Normaliser, Softmax
from regard.operands import Axis, Operand, is_sharded
from regard.scores import Score
from regard.spec import Spec
from regard.tracing import is_tracing, without_autocast
from regard.weights._tensor_interface import DENSE_LIMIT, TensorInterface, Transposed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOP_BYTES = 12  # of a weight and the number of its key


class TopK(NamedTuple):
    """The largest weights of each row and their keys; weight 0 and key -1 where a query sees fewer keys."""

    values: Float[Tensor, "*batch queries k"]
    indices: Int[Tensor, "*batch queries k"]


class Weights(TensorInterface):
    r"""The matrix of attention weights p_ij = normalise_j(score(q_i, k_j) where mask), lazy and exact.

    Only the inputs are stored. Products, blocks and questions compute the parts that they need, tile by tile, within
    `budget` bytes of scratch memory.

    - Products: ``weights @ x`` pools rows of x, ``weights.mT @ x`` is the transposed product.
    - Blocks: ``weights[i]``, ``weights[..., 10:20, :]`` and ``weights.dense()`` give tensors.
    - Row questions, one number for each query: `entropy`, `saturation`, `logsumexp`, `distance`, `mass`, `empty_rows`.
    - Other questions: `top` (the largest weights), `received` (the sum for each key), `heatmap` (the matrix in bins).
    - As of a tensor: `sum`, `max`, `argmax`, `T`, `detach`, `cpu`; `numpy`, np.asarray and torch.as_tensor build it.
    - Lazy parts: ``weights.head(5)``, ``weights.select(batch=0, head=5)``.
    - Pictures: `plot`, `view`.

    The first call of `entropy`, `saturation`, `logsumexp`, `top` (k <= 8), `received` or `heatmap` (256 bins, mean or
    sum) makes one shared pass over the tiles that answers all of them; later calls read the answer. The pass is not
    differentiable. Where a gradient is wanted, a row question makes a differentiable pass of its own.

    Products and row questions are differentiable; blocks, `top`, `received` and `heatmap` are not. If a tensor behind
    the weights is changed in place, every question raises StaleWeightsError; `snapshot` is a copy that stays valid.

    query, key: tensors (..., n, d_q) and (..., m, d_k) of one dtype on one device; the matrix is (..., n, m).
    score, mask, normaliser, plan, budget: as for `regard.attend`.

    >>> import torch, regard as rg
    >>> tokens = torch.eye(3)
    >>> weights = rg.Weights(tokens, tokens)
    >>> weights.shape
    torch.Size([3, 3])
    >>> weights[0].round(decimals=2)
    tensor([0.4700, 0.2600, 0.2600])
    """

    __slots__ = ("_labels",)  # set only where they are known
    _labels: WeightLabels

    def __init__(
        self,
        query: Float[Tensor, "... queries dim_q"],
        key: Float[Tensor, "... keys dim_k"],
        score: Score | None = None,
        mask: Mask | None = None,
        normaliser: Normaliser | None = None,
        plan: str = "auto",
        budget: int | None = None,
    ) -> None:
        spec = inputs.make_spec(score, mask, normaliser)
        if is_sharded(query, key):
            from regard.engine.distributed.attention import weights

            self._parts_or_matrix = weights(query, key, spec, plan, budget)
        else:
            self._parts_or_matrix = LazyMatrix.build(query, key, spec, plan, budget)

    # Inputs

    @property
    def query(self) -> Float[Tensor, "... queries dim_q"]:
        """The queries, as they were given."""
        return self._matrix.query

    @property
    def key(self) -> Float[Tensor, "... keys dim_k"]:
        """The keys, as they were given; with grouped heads they have fewer heads than the queries."""
        return self._matrix.key

    @property
    def plan(self) -> Plan:
        """The plan for products: executor (fused, dense or tiled) and the reason, in one printable line."""
        return self._matrix.plan

    @property
    def spec(self) -> Spec:
        """Score, mask and normaliser; its repr is the formula."""
        return self._matrix.spec

    @property
    def normalised(self) -> bool:
        """True if every row that sees a key sums to 1."""
        return self.spec.normaliser.normalised

    @property
    def labels(self) -> Labels:
        """The texts (of queries, of keys) that a recording knows of these weights, each None if it knows none.

        Weights of a batch of several sequences have no texts of their own: ask ``weights.select(batch=0).labels``.
        """
        known = labels_of(self)
        return Labels() if known is None else known.of_shape(tuple(self.shape))

    def __repr__(self) -> str:
        sizes = " x ".join(str(length) for length in self.shape)
        sums = "" if self.normalised else "rows do not sum to 1, "
        return f"Weights({sizes}, {self.spec}, {self.dtype}, {sums}never built)"

    # The transpose

    @property
    def mT(self) -> Transposed[Weights]:  # noqa: N802
        """The transposed matrix (..., m, n), a lazy view."""
        return Transposed(self)

    @property
    def T(self) -> Transposed[Weights]:  # noqa: N802
        """The transpose (m, n) of one matrix, a lazy view; `mT` is that of weights with leading dimensions."""
        if self.ndim == 2:
            return self.mT
        raise NoSuchAttributeError(advice("T", ()))

    # Parts that stay lazy

    def head(self, index: int) -> Weights:
        """The weights of one head, lazy: (batch, heads, n, m) becomes (batch, n, m). The head axis is the third last.

        >>> import torch, regard as rg
        >>> weights = rg.Weights(torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8))
        >>> weights.head(-1).shape
        torch.Size([2, 5, 7])
        """
        return self.select(head=index)

    def select(self, *, batch: int | None = None, head: int | None = None) -> Weights:
        """The weights of one sequence of the batch (first axis), of one head (third last axis), or of both, lazy.

        The axes are dropped. Nothing is computed, and tensors are views: only where grouped heads share keys, the
        weights of all heads of one sequence have copies of the keys.

        >>> import torch, regard as rg
        >>> weights = rg.Weights(torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8))
        >>> weights.select(batch=0, head=3).shape
        torch.Size([5, 7])
        """
        lead = self.ndim - 2
        if batch is not None and head is not None and lead < 2:
            msg = f"select(batch, head) needs two axes before (queries, keys), but the weights are {tuple(self.shape)}"
            raise ShapeError(msg)
        chosen = self if head is None else self._at(lead - 1, head, "head")
        return chosen if batch is None else chosen._at(0, batch, "batch")  # noqa: SLF001  its own method

    def _at(self, axis: int, index: int, name: str) -> Weights:
        """The weights at one index of a leading axis, which is dropped."""
        if self.ndim < 3:
            msg = f"weights {tuple(self.shape)} are one matrix (queries, keys): there is no {name} to choose"
            raise ShapeError(msg)
        number, count = questions.whole_number(index, name), self.shape[axis]
        if not -count <= number < count:
            msg = f"{name} {number} is not there: weights {tuple(self.shape)} have {count}, counted from 0"
            raise PositionError(msg)
        labels = labels_of(self)
        number %= count
        return weights_of(self._matrix.at(axis, number), None if labels is None else labels.at(axis, number))

    # Questions

    def logsumexp(self) -> Float[Tensor, "*batch queries"]:
        """log sum_j exp(s_ij), the row statistic of softmax, and of softmax only. Differentiable.

        -inf for a query that sees no key. If the fused kernel returned it with the output, nothing is computed;
        otherwise it comes from the shared pass.
        """
        if not isinstance(self.spec.normaliser, Softmax):
            msg = f"logsumexp is the row statistic of softmax, and these weights are {self.spec.normaliser}"
            raise NotNormalisedError(msg)
        lse = self._matrix.logsumexp_of_kernel()
        return self._row_question("logsumexp") if lse is None else lse

    def entropy(self) -> Float[Tensor, "*batch queries"]:
        """-sum_j p_ij log p_ij in nats: 0 is one-hot, log m is uniform. Differentiable.

        Without a gradient it comes from the shared pass.
        """
        return self._row_question("entropy")

    def saturation(self) -> Float[Tensor, "*batch queries"]:
        """sum_j p_ij²: 1 is one-hot, 1/m is uniform. Differentiable.

        Without a gradient it comes from the shared pass.
        """
        return self._row_question("saturation")

    def distance(self, query_positions: Shaped[Tensor, "... queries"] | None = None) -> Float[Tensor, "*batch queries"]:
        """sum_j p_ij |i - j|, the mean distance from a query to the keys that it attends to. Differentiable.

        query_positions: the position of each query among the keys; needed if there are not as many queries as keys,
        else 0, 1, 2, ... It takes a pass of its own.
        """
        positions = questions.check_query_positions(query_positions, self._matrix.lead, self._matrix.size)
        if self._matrix.wants_gradient() or is_tracing():
            return self._row_question("distance", (Operand(positions.unsqueeze(-1), Axis.QUERY),))
        self._needs_distribution("distance")
        return self._matrix.fold([MeanDistance(positions)])[0].to(self._matrix.answer_dtype)

    def received(self) -> Float[Tensor, "*batch keys"]:
        """sum_i p_ij, the weight that each key receives from all queries. From the shared pass.

        Not differentiable: use ``weights.mT @ ones`` for that.
        """
        return self._matrix.overview("received")

    def mass(self, groups: Shaped[Tensor, "... keys"]) -> Float[Tensor, "*batch queries groups"]:
        """The weight of each query on each group of keys. Differentiable.

        groups: the group of each key, integers from 0 on, (m,) or (batch, m); a key with -1 is in no group. It takes a
        product of its own.
        """
        self._matrix.check_fresh()
        count = questions.check_groups(groups, self._matrix.lead, self._matrix.size)
        way = "number the groups that occur, with torch.unique(groups, return_inverse=True)[1]"
        self._check_answer(self.shape[:-1], count, self._matrix.answer_dtype.itemsize, f"mass of {count:,} groups", way)
        marks = questions.group_indicators(groups, count, self._matrix.lead)
        with without_autocast():
            return self._matrix.pool_precisely(marks).to(self._matrix.answer_dtype)

    def top(self, k: int) -> TopK:
        """The k largest weights of each row, in descending order, and their keys. Not differentiable.

        Equal weights are in the order of their keys; of more than k equal ones, any k may be given. A row that sees
        fewer keys is filled with weight 0 and key -1. Up to k = 8 it comes from the shared pass.
        """
        if not isinstance(k, int) or k < 1:
            msg = f"top(k) needs a whole number of keys, 1 or more, not {k!r}"
            raise ChoiceError(msg)
        self._check_answer(self.shape[:-1], k, TOP_BYTES, f"top({k}) of {self._matrix.size.m} keys", "ask for fewer")
        if k <= questions.TOP:
            values, indices = self._matrix.overview("top")
        else:
            ((values, indices),) = self._matrix.fold([questions.top_reducer(self.spec.normaliser, k)])
        values = values[..., :k].to(self._matrix.answer_dtype, copy=True)
        return TopK(values, indices[..., :k].to(torch.int64, copy=True))

    def heatmap(self, bins: int = 256, pool: str = "mean") -> Float[Tensor, "*batch row_bins col_bins"]:
        """The matrix pooled into bins x bins cells (fewer where it is smaller) by "mean", "max" or "sum".

        Bin b holds rows floor(b n / bins) to floor((b + 1) n / bins), columns likewise; hidden weights count as 0. With
        256 bins and mean or sum it comes from the shared pass. Not differentiable.
        """
        if not isinstance(bins, int) or bins < 1:
            msg = f"heatmap(bins) needs a whole number of bins, 1 or more, not {bins!r}"
            raise ChoiceError(msg)
        *lead, n, m = self.shape
        size = self._matrix.answer_dtype.itemsize
        self._check_answer((*lead, min(bins, n)), min(bins, m), size, f"heatmap({bins})", "ask for fewer bins")
        reducer = Heatmap(bins, pool, self._matrix.size)
        if bins == questions.BINS and pool != "max":
            return reducer.finish(self._matrix.overview("heatmap")).to(self._matrix.answer_dtype)
        return self._matrix.fold([reducer])[0].to(self._matrix.answer_dtype)

    def empty_rows(self) -> Bool[Tensor, "*batch queries"]:
        """True for queries that see no key. It looks at the mask alone where that is enough."""
        return self._matrix.empty_rows()

    def snapshot(self) -> Weights:
        """A detached copy, which stays valid when the caller changes the tensors in place."""
        return weights_of(self._matrix.snapshot(), labels_of(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Weights:
        return self.snapshot()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a snapshot: the numbers as they are, of which no more is stored than the weights need."""
        return weights_from, (self._matrix.snapshot().state(), labels_of(self))

    def __copy__(self) -> Weights:
        """A second name for the same matrix, which depends on the caller's tensors as the first one does."""
        return weights_of(self._parts_or_matrix, labels_of(self))

    def detach(self) -> Weights:
        """Weights of the same numbers, through which no gradient flows; lazy, without a copy."""
        return weights_of(self._matrix.moved(Tensor.detach), labels_of(self))

    def cpu(self) -> Weights:
        """Weights whose tensors are on the CPU; lazy, and the weights themselves if they are there already."""
        return self if self.device.type == "cpu" else weights_of(self._matrix.moved(Tensor.cpu), labels_of(self))

    # Pictures

    def _repr_html_(self) -> str:
        """Shape, formula, plan and a small heatmap, for a notebook."""
        return weights_html(self)

    def plot(self, tokens: Sequence[object] | None = None, **options: Any) -> Axes:
        """A heatmap as matplotlib Axes, empty rows hatched. tokens: a label for each key. See `regard.plot.heatmap`."""
        from regard.plot import heatmap

        return heatmap(self, tokens, **options)

    def view(self, tokens: Sequence[object] | None = None, query_tokens: Sequence[object] | None = None) -> Any:
        """A notebook widget to zoom into the matrix. tokens, query_tokens: a label for each key and each query.

        Without them, weights of a recording have its own: see `labels`.
        """
        from regard.web.notebook.display import view_weights

        return view_weights(self, tokens, query_tokens)

    # Inside

    def _check_answer(self, rows: Sequence[int], columns: int, itemsize: int, what: str, way: str) -> None:
        """Refuse an answer above the limit of `dense` that takes as much memory as the whole matrix would."""
        if is_tracing():
            return
        size = math.prod(rows) * columns * itemsize
        if size > DENSE_LIMIT and size >= math.prod(self.shape) * self._matrix.answer_dtype.itemsize:
            msg = f"{what} would take {size:,} bytes, above the limit of {DENSE_LIMIT:,}: {way}"
            raise TooLargeError(msg)

    def _needs_distribution(self, question: str) -> None:
        if not self.spec.normaliser.normalised:
            msg = f"{question} needs rows that sum to 1, and rows of {self.spec.normaliser} do not"
            raise NotNormalisedError(msg)

    def _row_question(self, question: str, extra: tuple[Operand, ...] = ()) -> Float[Tensor, "*batch queries"]:
        self._needs_distribution(question)
        return self._matrix.row_question(question, extra)


def weights_of(matrix: LazyMatrix | MatrixParts, labels: WeightLabels | None = None) -> Weights:
    """The public face of a lazy matrix that the engine has made. Internal: users call `Weights(query, key, ...)`."""
    weights: Weights = object.__new__(Weights)
    weights._parts_or_matrix = matrix  # noqa: SLF001  no other module touches the slots
    if labels is not None:
        weights._labels = labels  # noqa: SLF001
    return weights


def weights_from(state: tuple[Any, ...], labels: WeightLabels | None = None) -> Weights:
    """Weights that were pickled, as `LazyMatrix.state` gives them. Internal."""
    return weights_of(LazyMatrix.of_call(*state), labels)


def labels_of(weights: Weights) -> WeightLabels | None:
    """Labels that some weights know, of all sequences. Internal: users read `weights.labels`."""
    return getattr(weights, "_labels", None)


def matrix_of(weights: Weights) -> LazyMatrix:
    """The engine's view of some weights: formula, size, tiles and passes over them. Internal."""
    return weights._matrix  # noqa: SLF001  see `weights_of`
