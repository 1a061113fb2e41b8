"""Route: modules that call `regard.attend`, as the layers of `regard.nn` do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from threading import Lock, get_ident, local
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard import attention
from regard.attention import Attention
from regard.capture._observer import Observer, ignore
from regard.capture._output_check import Comparison, RowPicker, compare_pooled
from regard.recording import Call
from regard.weights import Weights

_lock = Lock()
_observers: list[Observer] = []  # of all recordings that are running, in any thread
_calling = local()  # .inside is True while a thread is inside of an observed call


@contextmanager
def observe_attend(observer: Observer) -> Iterator[None]:
    """Record every call of `attend` that a module of the observed model makes."""
    with _lock:
        _observers.append(observer)
        attention.around = _around
    try:
        yield
    finally:
        with _lock:
            _observers.remove(observer)
            if not _observers:
                attention.around = None


def _around(
    query: Any, key: Any, value: Any, score: Any, mask: Any, normaliser: Any, dropout_p: Any, *options: Any
) -> Attention | None:
    """Run `attend` and report it; None where no observed module has called it, and it shall just go on."""
    if getattr(_calling, "inside", False):
        return None
    here = [one for one in tuple(_observers) if one.thread == get_ident() and one.current is not None]
    observing = [one for one in here if not one.is_outside()]
    if not observing:
        return None
    _calling.inside = True
    try:
        with ExitStack() as stack:
            for observer in observing:
                stack.enter_context(observer.serving(observer.inner or ignore))
            result = attention.attend(query, key, value, score, mask, normaliser, dropout_p, *options)
    finally:
        _calling.inside = False
    for observer in observing:
        if observer.inner is None:  # else a route that observes the whole has called it
            _report(observer, result, value, float(dropout_p))
    return result


def _report(observer: Observer, result: Attention, value: Tensor, dropout_p: float) -> None:
    assert observer.current is not None  # noqa: S101  else `_around` would not be here
    watched = AttendOutput(result.weights, value.detach(), result.output.detach())
    observer.observe(observer.current, lambda: AttendCall(result.weights, watched, dropout_p > 0))


@dataclass(frozen=True, eq=False)
class AttendOutput:
    """Values and output of one call of `attend`."""

    weights: Weights
    value: Float[Tensor, "... keys dim_v"]
    output: Float[Tensor, "*batch queries dim_v"]

    def compare(self, call: AttendCall, pick: RowPicker) -> Comparison:
        """The difference of one random row from weights @ values."""
        del call
        *lead, n = self.output.shape[:-1]
        index = *(pick.below(length) for length in lead), pick.row(n)
        row = self.weights[index]
        row = row.to(torch.promote_types(row.dtype, torch.float32))
        value = self.value[_value_index(index[:-1], lead, self.value.shape[:-2])]
        return compare_pooled(row[None, None], value[None], self.output[index][None, None])


def _value_index(index: tuple[int, ...], lead: list[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The place of a head's values, whose leading dimensions broadcast or have fewer heads."""
    aligned = zip(reversed(index), reversed(lead), reversed(shape), strict=False)
    return tuple(reversed([i * have // whole for i, whole, have in aligned]))


@dataclass(frozen=True, eq=False)
class AttendCall:
    """One call of `attend`: lazy weights with any score, mask and normaliser, and what was made of them."""

    weights: Weights
    watched: AttendOutput | None
    dropout: bool
    heads: tuple[int, ...] | None = None  # those that are kept; None: all
    dtype: torch.dtype | None = None  # in which queries and keys are kept; None: their own

    joins: ClassVar[bool] = False

    @property
    def query(self) -> Float[Tensor, "... queries dim"]:
        """The queries, (batch, heads, queries, dim), or with other leading dimensions in a layer without heads."""
        return self.weights.query

    @property
    def kind(self) -> Hashable:
        """Calls of one layer that differ in this are computed in different ways, and checked each."""
        return self.weights.spec.signature, self.weights.dtype, self.weights.plan.executor

    def of_heads(self, heads: tuple[int, ...]) -> AttendCall:
        """The call, of which only these heads will be kept."""
        return replace(self, heads=heads)

    def copied(self, dtype: torch.dtype | None) -> AttendCall:
        """The call, whose queries and keys will be kept in this dtype; `to_call` copies them."""
        return replace(self, dtype=dtype, watched=None)

    def to_call(self, name: str, step: int, heads: tuple[int, ...] | None, check: str) -> Call:
        """The call as a recording keeps it, in memory of its own."""
        del heads
        call = replace(Call.of_weights(name, step, self.weights), check=check)
        if self.heads is not None:
            call = call.of_heads(self.heads)
        if self.dtype is not None:
            call = replace(call, query=call.query.to(self.dtype), key=call.key.to(self.dtype), lse=None)
        return call


def returned_weights(output: Any) -> Iterator[Weights]:
    """Every `Weights` in the output of a module: itself, or inside mappings, tuples, lists and dataclasses."""
    if isinstance(output, Weights):
        yield output
        return
    parts: Iterable[Any] = ()
    if isinstance(output, Mapping):
        parts = output.values()
    elif isinstance(output, tuple | list):
        parts = output
    elif is_dataclass(output) and not isinstance(output, type):
        parts = (getattr(output, field.name) for field in fields(output))
    for part in parts:
        yield from returned_weights(part)
