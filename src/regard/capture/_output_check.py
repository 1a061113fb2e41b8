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
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ChoiceError, RecordError
from regard.torch_compat.multihead import of_sequence, projected_rows

CHOICES = ("first", "all", "none")
ROWS, HEADS, FEATURES = 3, 2, 64  # at most this many are compared in one call; features: of a projected output
TOLERANCE, HALF_TOLERANCE = 1e-4, 2e-2  # of the size of what is averaged; for 16-bit types their rounding
DECISIVE = 10.0  # times the tolerance: values that differ by less are averaged to the same by any weights
TRIES = 8  # comparisons of one call until one of them has a row that sees something
DROPOUT, BY_TYPE, NOT_FIRST, PASSED, NONE = "dropout", "by type", "not first", "passed", "none"  # values of Call.check
UNDECIDED = "undecided"


class Comparison(NamedTuple):
    """The difference between weights @ values and the model's output in some rows, and how much it proves."""

    error: float  # in units of what is averaged
    keys: int  # that these rows see; 0: no row sees a key and has a finite output
    is_decisive: bool  # False: other weights of these keys would have given the same output

    @property
    def status(self) -> str:
        return PASSED if self.is_decisive or self.keys == 1 else UNDECIDED  # the weight of a single key is 1


class RowPicker(NamedTuple):
    """Random rows and heads of a call, in even steps: parts of a tensor in even steps are not copied.

    It draws no number of torch's generator, which the model may use.
    """

    random: Random
    edges: bool = False  # True for the first and the last row, one of which sees something in a padded sequence

    def below(self, length: int) -> int:
        return self.random.randrange(length)

    def row(self, length: int) -> int:
        return self.random.choice((0, length - 1)) if self.edges else self.below(length)

    def rows(self, length: int) -> slice:
        return slice(0, length, max(1, length - 1)) if self.edges else self._every(length, ROWS)

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

    def compare(self, call: Any, pick: RowPicker) -> Comparison:
        """The largest difference from weights @ values in some rows."""
        ...


@dataclass(frozen=True, eq=False)
class PooledOutput:
    """Values and output of every head, as an attention kernel takes and returns them."""

    value: Float[Tensor, "#batch value_heads keys dim_v"]
    output: Float[Tensor, "batch heads queries dim_v"]

    def compare(self, call: RowsOfWeights, pick: RowPicker) -> Comparison:
        batch, heads, n = self.output.shape[:3]
        b, rows = pick.below(batch), pick.rows(n)
        chosen = pick.heads(heads, call.key.shape[1])
        value = self.value[min(b, self.value.shape[0] - 1), shared_heads(chosen, heads, self.value.shape[1])]
        output = self.output[b, chosen, rows]
        return min(compare_pooled(weights, value, output) for weights in call.weight_rows(b, chosen, rows))

    def of_last_rows(self) -> PooledOutput:
        """The last row of every output, which the model cannot change any more, and the values."""
        return PooledOutput(self.value, self.output[..., -1:, :].detach().clone())

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
            errors.append(max(elsewhere, compare_pooled(weights[..., columns], value, output).error))
        return min(errors)


@dataclass(frozen=True, eq=False)
class ProjectedOutput:
    """Input values and output of a multi-head layer of torch: out_proj of what its heads have pooled."""

    layer: Any
    value: Float[Tensor, "*key_lead vdim"]
    output: Float[Tensor, "*lead embed_dim"]

    def compare(self, call: RowsOfWeights, pick: RowPicker) -> Comparison:
        batch, heads, n = call.query.shape[:3]
        b, rows, features = pick.below(batch), pick.rows(n), pick.features(self.output.shape[-1])
        return min(
            self._compare(weights, b, rows, features) for weights in call.weight_rows(b, slice(0, heads, 1), rows)
        )

    def _compare(
        self, weights: Float[Tensor, "heads rows keys"], batch: int, rows: slice, features: slice
    ) -> Comparison:
        computed, scale = projected_rows(self.layer, weights, batch, self.value, features)
        wanted = of_sequence(self.layer, self.output, batch)[rows, features].to(computed.dtype)
        comparable = weights.sum(-1).ne(0).all(0) & wanted.isfinite().all(-1)
        error = _largest(((computed - wanted).abs() / scale)[comparable])
        outputs = (computed / scale)[comparable]
        if len(outputs) > 1 and _spread(outputs) > DECISIVE * tolerance(self.output.dtype):
            return Comparison(error, weights.shape[-1], is_decisive=True)
        seen = weights[:, comparable].sum((0, 1)).nonzero()[:, 0]
        return Comparison(error, len(seen), len(seen) > 1 and self._depends_on(seen, weights, batch, features))

    def _depends_on(
        self, seen: Int[Tensor, " seen"], weights: Float[Tensor, "heads rows keys"], batch: int, features: slice
    ) -> bool:
        """True if all weight on one of three keys, of those that are seen, gives different outputs."""
        one_hot = weights.new_zeros(len(weights), 3, weights.shape[-1])
        one_hot[:, torch.arange(3), seen[[0, len(seen) // 2, -1]]] = 1.0
        outputs, scale = projected_rows(self.layer, one_hot, batch, self.value, features)
        return _spread(outputs) > DECISIVE * tolerance(self.output.dtype) * float(scale.max())


@dataclass(frozen=True, eq=False)
class KnownByType:
    """A whole layer of torch's own type that ran as one kernel: its attention has no output to compare with."""


def compare_pooled(
    weights: Float[Tensor, "heads rows keys"],
    value: Float[Tensor, "#heads keys dim_v"],
    output: Float[Tensor, "heads rows dim_v"],
) -> Comparison:
    """Largest |weights @ value - output|, in units of weights @ |value|; rows that see nothing are left out.

    A key of weight 0 may have any value, NaN too. A row whose output is not finite cannot be compared.
    """
    limit = tolerance(value.dtype)
    value, output = value.to(weights.dtype), output.to(weights.dtype)
    # |weights @ value| is a smaller unit, and does not need to go through all values once more.
    pooled = weights @ value
    differences, units = _largest_of_rows(pooled - output), _largest_of_rows(pooled)
    if all(difference <= limit * unit for difference, unit in zip(differences, units, strict=True)):
        error = max(difference / (unit or 1.0) for difference, unit in zip(differences, units, strict=True))
        least = DECISIVE * limit * max(units)
        if min(units) > 0 and _spread(pooled) > least:  # rows differ, so values do
            return Comparison(error, weights.shape[-1], is_decisive=True)
        return Comparison(error, *_seen_values(weights, value, least))
    value = value.nan_to_num(0.0, 0.0, 0.0)
    comparable = weights.sum(-1).ne(0) & output.isfinite().all(-1)
    scale = (weights @ value.abs()).amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    error = _largest(((weights @ value - output).abs() / scale)[comparable])
    if not bool(comparable.any()):
        return Comparison(error, 0, is_decisive=False)
    return Comparison(error, *_seen_values(weights, value, DECISIVE * limit * float(scale.max())))


def _seen_values(
    weights: Float[Tensor, "heads rows keys"], value: Float[Tensor, "#heads keys dim_v"], least: float
) -> tuple[int, bool]:
    """The number of keys that some row sees, and True if their values differ by more than `least`."""
    seen = weights.amax((0, 1)).nonzero()[:, 0]
    return len(seen), len(seen) > 1 and _spread(value[:, seen]) > least


def _spread(vectors: Float[Tensor, "... vectors dim"]) -> float:
    """The largest difference between the first of some vectors and another one."""
    return _largest((vectors[..., 1:, :] - vectors[..., :1, :]).abs())


def shared_heads(heads: slice, count: int, have: int) -> slice | list[int]:
    """Heads of keys or values, of `have`, that serve these query heads, of `count`: each serves a group of them."""
    group = count // have
    own = [head // group for head in range(heads.start, heads.stop, heads.step)]
    step = max(1, heads.step // group)
    even = slice(own[0], own[-1] + 1, step)  # a part of a tensor in even steps is not copied
    return even if own == list(range(own[0], own[-1] + 1, step)) else own


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
        comparison = self._compare(call)
        if comparison.is_decisive:
            self._passed.add(kind)
        return comparison.status

    def _compare(self, call: Any) -> Comparison:
        """Compare some rows; then others, as long as none of them sees anything."""
        comparison = Comparison(0.0, 0, is_decisive=False)
        if not call.query.numel() or not call.watched.output.numel():
            return comparison
        for attempt in range(TRIES):
            with torch._C.DisableTorchFunction(), torch.inference_mode():  # noqa: SLF001  no mode needs to see it
                comparison = call.watched.compare(call, self.pick._replace(edges=attempt > 0))
            require_equal(comparison.error, call.query.dtype)
            if comparison.keys:
                break
        return comparison


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
