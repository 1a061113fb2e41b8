"""Layers of regard.nn, and any other that returns its lazy weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import nn

from regard.capture._observer import Watch
from regard.weights import Weights


def returned_weights(watch: Watch) -> None:
    """Take the weights out of what modules return."""
    handed_on: list[Weights] = []  # a layer around another may return the same weights again

    def look(module: nn.Module, args: Any, options: Any, output: Any) -> None:
        del args, options
        if isinstance(module, nn.MultiheadAttention):  # seen already, whether it returns its weights or not
            handed_on.extend(weights_in(output))
            return
        for weights in weights_in(output):
            if not any(weights is other for other in handed_on):
                handed_on.append(weights)
                watch.saw_weights(watch.names[id(module)], weights)

    watch.listeners.append((nn.Module, look))


def weights_in(output: Any) -> Iterator[Weights]:
    """Every `Weights` in what a layer returned."""
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
        yield from weights_in(part)
