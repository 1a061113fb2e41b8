"""The part of `Weights` that a user of tensors expects: sizes, products, blocks, sums, and conversion to arrays."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.display.tensor_habits import advice
from regard.engine import index as index_module
from regard.engine import inputs, questions
from regard.engine.lazy_matrix import LazyMatrix, MatrixParts
from regard.engine.reducers import LargestWeight
from regard.errors import (
    AxisError,
    ChoiceError,
    DeviceError,
    DtypeError,
    NoSuchAttributeError,
    ShapeError,
    TooLargeError,
)
from regard.term import type_name
from regard.tracing import without_autocast

DENSE_LIMIT = 2**28  # bytes of a block that is built without being asked twice


class Largest(NamedTuple):
    """The largest weight of each row and its key; weight 0 and key 0 where a query sees no key."""

    values: Float[Tensor, "..."]
    indices: Int[Tensor, "..."]


class TensorInterface:
    """A matrix (..., n, m) that is computed part by part on demand, with the methods of a tensor that it can answer.

    Reductions over keys are lazy. What needs the whole matrix builds it up to 256 MiB and refuses above, naming the
    question to ask instead; so does every other method of a tensor.
    """

    __slots__ = ("_parts_or_matrix",)
    _parts_or_matrix: MatrixParts | LazyMatrix

    @property
    def _matrix(self) -> LazyMatrix:
        lazy = self._parts_or_matrix
        if isinstance(lazy, tuple):  # from the fast path of `attend`, whose callers mostly never ask
            self._parts_or_matrix = lazy = LazyMatrix(*lazy)
        return lazy

    # Sizes

    @property
    def shape(self) -> torch.Size:
        """The shape (..., n, m): leading dimensions, queries, keys."""
        shape = self._matrix.call.shape
        return torch.Size((*shape.lead, shape.n, shape.m))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._matrix.lead) + 2

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the inputs, and of products and blocks."""
        return self._matrix.query.dtype

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        return self._matrix.query.device

    def __len__(self) -> int:
        return self.shape[0]

    # Products

    def __matmul__(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """sum_j p_ij x_j: (..., n, m) @ (..., m, d) -> (..., n, d), or @ (m,) -> (..., n). Differentiable."""
        return self._product(x, self._matrix.size.m, "keys", self._matrix.pool)

    def _product(
        self, x: Float[Tensor, "..."], length: int, rows: str, product: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "..."]:
        """product(x), after a check that x has `length` rows, one for each of `rows` ("keys" or "queries")."""
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
                f"weights @ x needs x with one row for each of {length} {rows}: "
                f"weights {tuple(self.shape)}, x {tuple(x.shape)}"
            )
            raise ShapeError(msg)
        with without_autocast():
            out = product(inputs.upcast(matrix)).to(self.dtype)
        return out.squeeze(-1) if x.dim() == 1 else out

    # Blocks

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """A block as a tensor: ints, slices and index tensors mean what they mean for a tensor. Not differentiable.

        A block above 256 MiB is refused with TooLargeError.
        """
        return self._block(index_module.parse(index, tuple(self.shape), self.device), "this block", DENSE_LIMIT)

    def dense(self, limit: int = DENSE_LIMIT) -> Float[Tensor, "*batch queries keys"]:
        """The whole matrix as a tensor, refused above `limit` bytes. Not differentiable; the product ``@`` is."""
        return self._block(index_module.parse(..., tuple(self.shape), self.device), "the whole matrix", limit)

    def _block(
        self, picked: index_module.ParsedIndex, what: str, limit: int, *, transposed: bool = False
    ) -> Float[Tensor, "..."]:
        """The weights that an index picks; `what` names them in the error if they are above `limit` bytes."""
        self._matrix.check_fresh()
        if not isinstance(limit, Real):
            msg = f"limit is the most bytes that may be built, a number, not {limit!r:.40}"
            raise ChoiceError(msg)
        size = picked.numel() * self._matrix.query.element_size()
        if size > limit:
            msg = (
                f"{what} of {tuple(self.shape)} weights would take {size:,} bytes, above the limit of {limit:,}: "
                f"ask for fewer rows, or for weights.heatmap(); dense(limit={size}) would build it"
            )
            raise TooLargeError(msg)
        with without_autocast():
            return self._matrix.block(picked, transposed=transposed).to(self.dtype)

    # Reductions

    def sum(self, dim: int | None = None, keepdim: bool = False) -> Float[Tensor, "..."]:
        """sum_j p_ij for dim=-1, which is 1 unless the query sees no key or rows are not normalised. Differentiable.

        dim=-2 is `received`, and None is the sum of all weights. Other axes would build (..., n, m).
        """
        if dim is None:
            return self._matrix.whole(self.sum(-1)).sum()
        if self._axis(dim, "sum") == "queries":
            answer = self._matrix.overview("received")
        else:
            self._matrix.check_fresh()
            ones = torch.ones(self.shape[-1], 1, dtype=self._matrix.answer_dtype, device=self.device)
            with without_autocast():
                answer = self._matrix.pool_precisely(ones).squeeze(-1).to(self._matrix.answer_dtype)
        return answer.unsqueeze(dim) if keepdim else answer

    @overload
    def max(self, dim: None = None, keepdim: bool = False) -> Float[Tensor, ""]: ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> Largest: ...
    def max(self, dim: int | None = None, keepdim: bool = False) -> Largest | Float[Tensor, ""]:
        """The largest weight of each row and its key for dim=-1; without dim the largest weight. Not differentiable.

        Among equal weights the first key counts. A query that sees no key has weight 0 and key 0.
        """
        if dim is None:
            return self._matrix.whole(self._largest("max").values).max()
        if self._axis(dim, "max") == "queries":
            msg = "max over queries is not answered: ask weights.heatmap(pool='max').amax(-2), in bins of keys"
            raise ChoiceError(msg)
        largest = self._largest("max")
        return Largest(*(part.unsqueeze(-1) for part in largest)) if keepdim else largest

    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Int[Tensor, "..."]:
        """The key of the largest weight of each row for dim=-1; without dim its index in the flattened weights.

        Among equal weights the first key counts. A query that sees no key has key 0.
        """
        if dim is None:
            values, indices = (self._matrix.whole(part).flatten() for part in self._largest("argmax"))
            row = values.argmax()
            return row * self.shape[-1] + indices[row]
        if self._axis(dim, "argmax") == "queries":
            msg = "argmax over queries is not answered: ask weights.heatmap(pool='max').argmax(-2), in bins"
            raise ChoiceError(msg)
        indices = self._largest("argmax").indices
        return indices.unsqueeze(-1) if keepdim else indices

    def _largest(self, asked: str) -> Largest:
        if not self.shape[-1]:
            msg = f"{asked} needs keys, but the weights are {tuple(self.shape)}"
            raise ShapeError(msg)
        ((values, keys),) = self._matrix.fold([LargestWeight()])
        return Largest(values.to(self._matrix.answer_dtype), keys)

    def _axis(self, dim: int, asked: str) -> str:
        """The name of an axis, "keys" for the last and "queries" for the one before; others are refused."""
        number = questions.whole_number(dim, "dim")
        if not -self.ndim <= number < self.ndim:
            msg = f"{asked}(dim) needs an axis of weights {tuple(self.shape)}, but dim is {dim}"
            raise AxisError(msg)
        if number % self.ndim < self.ndim - 2:
            msg = (
                f"{asked}({dim}) would build {' x '.join(map(str, self.shape[-2:]))} numbers: ask one head, "
                f"weights.head(0).{asked}(-1), or the picture, weights.heatmap().{asked}({dim})"
            )
            raise ChoiceError(msg)
        return "keys" if number % self.ndim == self.ndim - 1 else "queries"

    # Conversion

    def numpy(self) -> np.ndarray:
        """The whole matrix as an array, refused above 256 MiB; bfloat16 becomes float32."""
        return self._whole("weights.numpy()").numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The whole matrix for ``np.asarray(weights)``, refused above 256 MiB."""
        if copy is False:
            msg = "weights are never stored, so an array of them is always a new one: leave out copy=False"
            raise ChoiceError(msg)
        return self._whole("np.asarray(weights)").numpy().astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """The whole matrix for ``torch.as_tensor(weights)``, refused above 256 MiB."""
        return self._checked_dense("torch.as_tensor(weights)").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._matrix.query.new_empty(0).__dlpack_device__()

    def _whole(self, asked: str) -> Float[Tensor, "*batch queries keys"]:
        """The whole matrix on the CPU, of numbers that numpy has."""
        whole = self._checked_dense(asked).cpu()
        return whole.float() if whole.dtype == torch.bfloat16 else whole

    def _checked_dense(self, asked: str) -> Float[Tensor, "*batch queries keys"]:
        size = self.shape.numel() * self._matrix.query.element_size()
        if size > DENSE_LIMIT:
            msg = (
                f"{asked} would build {tuple(self.shape)} weights, {size:,} bytes, above the limit of {DENSE_LIMIT:,}: "
                f"ask weights.heatmap() for a picture, weights.top(k) for the largest of each query, "
                f"weights.received() for sums, weights[..., :10, :] for rows; weights.dense(limit={size}) builds it"
            )
            raise TooLargeError(msg)
        return self.dense()

    if not TYPE_CHECKING:  # a type checker would take every name for one of these

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that names the question to ask instead of a tensor's method."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise NoSuchAttributeError(advice(name, dir(type(self))))


Matrix = TypeVar("Matrix", bound=TensorInterface)


class Transposed(Generic[Matrix]):
    """The transpose of a lazy matrix of weights, (..., m, n): a lazy view."""

    __slots__ = ("mT",)

    def __init__(self, matrix: Matrix) -> None:
        self.mT: Matrix = matrix

    @property
    def shape(self) -> torch.Size:
        """The shape (..., m, n)."""
        return torch.Size((*self.mT.shape[:-2], self.mT.shape[-1], self.mT.shape[-2]))

    def __matmul__(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """sum_i p_ij x_i: (..., m, n) @ (..., n, d) -> (..., m, d), or @ (n,) -> (..., m). Differentiable."""
        return self.mT._product(x, self.mT.shape[-2], "queries", self.mT._matrix.spread)

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """A block as a tensor, by an index into the transposed matrix. Not differentiable."""
        picked = index_module.parse(index, tuple(self.shape), self.mT.device)
        return self.mT._block(picked, "this block", DENSE_LIMIT, transposed=True)  # noqa: SLF001

    def dense(self, limit: int = DENSE_LIMIT) -> Float[Tensor, "*batch keys queries"]:
        """The whole transposed matrix as a tensor, refused above `limit` bytes. Not differentiable."""
        return self.mT.dense(limit).mT

    def __repr__(self) -> str:
        return f"{self.mT!r}.mT"
