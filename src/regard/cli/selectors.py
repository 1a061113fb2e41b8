"""Options that select a part of a recording: layers, a step, a head, a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import typer

from regard.cli.console import join_names
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.recording import Layer, Recording
    from regard.weights import Weights


def parse_numbers(text: str | None, option: str) -> list[int] | None:
    """Parse "0,3,5" into numbers."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"numbers such as 0,3,5 are meant, not {text!r}", param_hint=option) from None


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a pattern, or whose first number it is: 3 is encoder.layer.3.attention.self.

    >>> matching("0", ["block.0.layer.0", "block.1.layer.0"]), matching("*.1.*", ["block.0.layer.0", "block.1.layer.0"])
    (['block.0.layer.0'], ['block.1.layer.0'])
    """
    if pattern.isdecimal():
        return [name for name in names if next((p for p in name.split(".") if p.isdecimal()), None) == pattern]
    return [name for name in names if name == pattern or fnmatchcase(name, pattern)]


def select_layers(patterns: Sequence[str], layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers that match one of the patterns or numbers; without patterns, all of them."""
    for pattern in patterns:
        if not matching(pattern, (layer.name for layer in layers)):
            raise ChoiceError(f"--layer {pattern} means none of the recorded layers; {_listed(layers)}")
    if not patterns:
        return list(layers)
    names = {name for pattern in patterns for name in matching(pattern, (layer.name for layer in layers))}
    return [layer for layer in layers if layer.name in names]


def select_layer(pattern: str | None, layers: Sequence[Layer]) -> Layer:
    """Return the one layer that matches; the pattern may be None if there is only one."""
    matches = select_layers([] if pattern is None else [pattern], layers)
    if len(matches) > 1:
        problem = "--layer is needed" if pattern is None else f"--layer {pattern} means {len(matches)} layers"
        if pattern is not None and pattern.isdecimal():
            problem += f" (a number is the first one in a name, not a place as in Python's recording[{pattern}])"
        raise ChoiceError(f"{problem}: say which, by its name or by the first number in it; {_listed(matches)}")
    return matches[0]


def select_step(step: int | None, layer: Layer) -> int:
    """Return the step of a layer; it may be None if the layer was recorded only once."""
    first, *others = layer.steps
    listed = ", ".join(map(str, layer.steps))
    if step is None and others:
        raise ChoiceError(f"{layer.name} was recorded in steps {listed}: say which, with --step")
    if step is not None and step not in layer.steps:
        raise ChoiceError(f"{layer.name} has no step {step}; it was recorded in {listed}")
    return first if step is None else step


def head_numbers(layer: Layer) -> list[int]:
    """Return the model's own numbers of the recorded heads; not all heads need be recorded."""
    if layer.heads is not None:
        return list(layer.heads)
    return list(range(layer.shape[1])) if len(layer.shape) == 4 else [0]


def select_head(head: int | None, layer: Layer) -> int:
    """Return the index of a head among the recorded ones."""
    numbers = head_numbers(layer)
    if head is None and len(numbers) > 1:
        raise ChoiceError(f"{layer.name} has heads {join_names(numbers)}: say which, with --head")
    if head is not None and head not in numbers:
        raise ChoiceError(f"{layer.name} has no head {head} in this recording; it has {join_names(numbers)}")
    return 0 if head is None else numbers.index(head)


def _listed(layers: Sequence[Layer]) -> str:
    return f"there are {join_names([layer.name for layer in layers])}" if layers else "there are none"


class SelectedHead(NamedTuple):
    """One attention matrix of a recording: a layer, a step, a head and a sequence of the batch."""

    recording: Recording
    layer: Layer
    step: int
    head: int | None  # the model's number; None if the layer has no heads
    sequence: int
    weights: Weights  # of this head, with all sequences
    batch_index: tuple[int, ...]  # index of the sequence in `weights`

    @property
    def shape(self) -> tuple[int, int]:
        return self.weights.shape[-2], self.weights.shape[-1]

    def tokens(self, *, keys: bool) -> list[str] | None:
        """Return the texts or ids of the keys or of the queries; None if the recording has none."""
        from regard.recording import TokenAxis

        axis = TokenAxis(self.layer.name, self.step, self.shape[1 if keys else 0], self.layer.cross, keys)
        tokens = axis.labels(self.recording, self.sequence)
        return tokens if any(tokens) else None


def select_matrix(
    recording: Recording, layer_pattern: str | None, head: int | None, step: int | None, sequence: int
) -> SelectedHead:
    """Return the one matrix that the options of a command mean, or say which option is missing or wrong."""
    layer = select_layer(layer_pattern, recording.layers)
    number = select_step(step, layer)
    head_index = select_head(head, layer)
    has_heads = len(layer.shape) == 4
    weights = recording[layer.name, number, head_index] if has_heads else recording[layer.name, number]
    batch = weights.shape[0] if weights.ndim > 2 else 1
    if sequence >= batch:
        raise ChoiceError(f"--sequence {sequence} is not in a batch of {batch}")
    batch_index = (sequence, *[0] * (weights.ndim - 3)) if weights.ndim > 2 else ()
    head_number = head_numbers(layer)[head_index] if has_heads else None
    return SelectedHead(recording, layer, number, head_number, sequence, weights, batch_index)
