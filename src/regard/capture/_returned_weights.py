"""Route: layers that return their lazy weights, such as those of regard.nn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import nn

from regard.capture._observer import Observer
from regard.weights import Weights


def observe_returned_weights(observer: Observer) -> None:
    """Record every `Weights` that a module of the observed model returns."""
    known: list[Weights] = []  # a layer around another may return the same weights again

    def listen(module: nn.Module, args: Any, options: Any, output: Any) -> None:
        del args, options
        if isinstance(module, nn.MultiheadAttention):  # its own route records it
            known.extend(returned_weights(output))
            return
        for weights in returned_weights(output):
            if not any(weights is other for other in known):
                known.append(weights)
                observer.observe_weights(observer.names[id(module)], weights)

    observer.listeners.append((nn.Module, listen))


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
