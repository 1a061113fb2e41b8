"""The check of a recording: weights @ values must be what the model itself computed.

Whatever route observed a call, it also saw the values and an output that the model made of them. A few random rows of
the weights that will be recorded are multiplied by the values and compared with that output.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ChoiceError, RecordError
from regard.torch_compat.multihead import output_rows

CHOICES = ("first", "all", "none")
ROWS, HEADS, FEATURES = 3, 2, 64  # at most this many are compared in one call; features: of a projected output
TOLERANCE, HALF_TOLERANCE = 1e-4, 2e-2  # of the size of what is averaged; for 16-bit types their rounding
DROPOUT, BY_TYPE, NOT_FIRST, PASSED, NONE = "dropout", "by type", "not first", "passed", "none"  # values of Call.check


class RowPicker(NamedTuple):
    """Random rows and heads of a call, in even steps: parts of a tensor in even steps are not copied.

    It draws no number of torch's generator, which the model may use.
    """

    random: Random

    def below(self, length: int) -> int:
        return self.random.randrange(length)

    def rows(self, length: int) -> slice:
        return self._every(length, ROWS)

    def features(self, length: int) -> slice:
        return self._every(length, FEATURES)

    def heads(self, heads: int, key_heads: int) -> slice:
        """Heads that have keys of their own."""
        group = heads // key_heads
        chosen = self._every(key_heads, HEADS)
        return slice(chosen.start * group + self.below(group), heads, chosen.step * group)

    def _every(self, length: int, count: int) -> slice:
        step = max(1, -(-length // count))
        return slice(self.below(min(step, length)), length, step)


@runtime_checkable  # shapes and types are checked at run time in tests
class RowsOfWeights(Protocol):
    """A call that computes some rows of its weights from what will be recorded.

    Several weights differ by where scores are rounded; the model's output has to follow from one of them.
    """

    @property
    def query(self) -> Float[Tensor, "batch heads queries dim"]: ...

    @property
    def key(self) -> Float[Tensor, "batch key_heads keys dim"]: ...

    def weight_rows(self, batch: int, heads: slice, rows: slice) -> Iterator[Float[Tensor, "some_heads rows keys"]]: ...


@runtime_checkable
class WatchedOutput(Protocol):
    """An output that the model computed with the weights of a call."""

    def error(self, call: Any, pick: RowPicker) -> float:
        """The largest difference from weights @ values in some rows, in units of what is averaged."""
        ...


@dataclass(frozen=True, eq=False)
class PooledOutput:
    """Values and output of every head, as an attention kernel takes and returns them."""

    value: Float[Tensor, "#batch value_heads keys dim_v"]
    output: Float[Tensor, "batch heads queries dim_v"]

    def error(self, call: RowsOfWeights, pick: RowPicker) -> float:
        batch, heads, n = self.output.shape[:3]
        b, rows = pick.below(batch), pick.rows(n)
        chosen = pick.heads(heads, call.key.shape[1])
        value = self.value[min(b, self.value.shape[0] - 1), shared_heads(chosen, heads, self.value.shape[1])]
        output = self.output[b, chosen, rows]
        return min(pooling_error(weights, value, output) for weights in call.weight_rows(b, chosen, rows))

    def last_row_error(self, joined: RowsOfWeights, sequence: tuple[int, int], head: int, columns: slice) -> float:
        """The error of the last row of joined calls, of which the last one has these values.

        sequence: its number in the joined calls and in the last one. head: that of the joined calls' first head.
        columns: the keys of the last call among all keys.
        """
        own = slice(head, head + 1, 1)
        of_batch = min(sequence[1], self.value.shape[0] - 1)
        value = self.value[of_batch, shared_heads(own, self.output.shape[1], self.value.shape[1])]
        output = self.output[sequence[1], own, -1:]
        n = joined.query.shape[-2]
        errors: list[float] = []
        for weights in joined.weight_rows(sequence[0], slice(0, 1, 1), slice(n - 1, n, 1)):
            elsewhere = float(weights.sum() - weights[..., columns].sum())
            errors.append(max(elsewhere, pooling_error(weights[..., columns], value, output)))
        return min(errors)


@dataclass(frozen=True, eq=False)
class ProjectedOutput:
    """Input values and output of a multi-head layer of torch: out_proj of what its heads have pooled."""

    layer: Any
    value: Float[Tensor, "*key_lead vdim"]
    output: Float[Tensor, "*lead embed_dim"]

    def error(self, call: RowsOfWeights, pick: RowPicker) -> float:
        batch, heads, n = call.query.shape[:3]
        b, rows, features = pick.below(batch), pick.rows(n), pick.features(self.output.shape[-1])
        return min(self._error(weights, b, rows, features) for weights in call.weight_rows(b, slice(0, heads, 1), rows))

    def _error(self, weights: Float[Tensor, "heads rows keys"], batch: int, rows: slice, features: slice) -> float:
        computed, wanted, scale = output_rows(self.layer, weights, batch, rows, self.value, self.output, features)
        comparable = weights.sum(-1).ne(0).all(0) & wanted.isfinite().all(-1)
        return _largest(((computed - wanted).abs() / scale)[comparable])


@dataclass(frozen=True, eq=False)
class KnownByType:
    """A whole layer of torch's own type that ran as one kernel: its attention has no output to compare with."""


def pooling_error(
    weights: Float[Tensor, "heads rows keys"],
    value: Float[Tensor, "#heads keys dim_v"],
    output: Float[Tensor, "heads rows dim_v"],
) -> float:
    """Largest |weights @ value - output|, in units of weights @ |value|; rows that see nothing are left out.

    A key of weight 0 may have any value, NaN too. A row whose output is not finite cannot be compared.
    """
    limit = tolerance(value.dtype)
    value, output = value.to(weights.dtype), output.to(weights.dtype)
    # |weights @ value| is a smaller unit, and does not need to go through all values once more.
    pooled = weights @ value
    differences, units = _largest_of_rows(pooled - output), _largest_of_rows(pooled)
    if all(difference <= limit * unit for difference, unit in zip(differences, units, strict=True)):
        return max(difference / (unit or 1.0) for difference, unit in zip(differences, units, strict=True))
    value = value.nan_to_num(0.0, 0.0, 0.0)
    comparable = weights.sum(-1).ne(0) & output.isfinite().all(-1)
    scale = (weights @ value.abs()).amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    return _largest(((weights @ value - output).abs() / scale)[comparable])


def shared_heads(heads: slice, count: int, have: int) -> slice:
    """Heads of keys or values, of `have`, that serve these query heads, of `count`: each serves a group of them."""
    group = count // have
    start = heads.start // group
    if heads.step % group:
        return slice(start, start + 1)
    return slice(start, -(-heads.stop // group), heads.step // group)


def _largest_of_rows(numbers: Float[Tensor, "... dim_v"]) -> list[float]:
    """Largest absolute number of each row, as floats of Python, which compares a few of them faster than torch."""
    return torch.linalg.vector_norm(numbers, torch.inf, -1).flatten().tolist()


def _largest(errors: Float[Tensor, "..."]) -> float:
    largest = float(errors.max()) if errors.numel() else 0.0
    return largest if largest == largest else float("inf")  # noqa: PLR0124  NaN is never right


class OutputCheck:
    """Compares calls with the model's own output: the first of each layer and kind, all or none."""

    def __init__(self, which: str) -> None:
        if which not in CHOICES:
            raise ChoiceError(f"check={which!r} is not one of {', '.join(map(repr, CHOICES))}")
        self.which = which
        self.pick = RowPicker(Random(0))
        self._passed: set[Hashable] = set()

    def status(self, name: str, call: Any) -> str:
        """Result of the check, for `Call.check`; raises RecordError if the weights do not give the output."""
        if self.which == "none":
            return NONE
        if call.watched is None:
            raise RecordError("no output was seen that its weights could be compared with")
        if isinstance(call.watched, KnownByType):
            return BY_TYPE
        if call.dropout:
            return DROPOUT
        kind = (name, call.kind)
        if self.which == "first" and kind in self._passed:
            return NOT_FIRST
        if call.query.numel():  # else there is no row
            with torch._C.DisableTorchFunction(), torch.inference_mode():  # noqa: SLF001  no mode needs to see it
                error = call.watched.error(call, self.pick)
            require_equal(error, call.query.dtype)
        self._passed.add(kind)
        return PASSED


def tolerance(dtype: torch.dtype) -> float:
    """The difference that rounding in this dtype explains, in units of what is averaged."""
    return TOLERANCE if dtype.itemsize >= 4 else HALF_TOLERANCE


def require_equal(error: float, dtype: torch.dtype) -> None:
    """Raise RecordError if weights @ values is not what the model computed."""
    limit = tolerance(dtype)
    if not error <= limit:
        raise RecordError(
            f"its weights do not give its output: weights @ values differs by {error:.2g} of the values, above "
            f"{limit:g}, so it computes attention in a way that was not understood"
        )
