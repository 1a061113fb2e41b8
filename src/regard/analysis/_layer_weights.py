"""Weights of a recording, layer by layer: which layers and steps are chosen, their heads, and marked tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.errors import ChoiceError
from regard.recording import TokenAxis
from regard.weights import Weights

Patterns = str | Sequence[str] | None  # names of layers, or patterns with * and ?; None: all


@runtime_checkable
class Recorded(Protocol):
    """A `regard.Recording`, or any object with `layers` that gives their weights by name and step."""

    @property
    def layers(self) -> Sequence[Any]: ...

    def __getitem__(self, which: tuple[str, int], /) -> Weights: ...


class LayerWeights(NamedTuple):
    """The weights of one layer in one step."""

    layer: str
    step: int
    weights: Weights
    cross: bool

    @property
    def key_tokens(self) -> TokenAxis:
        """The tokens that the keys are."""
        return TokenAxis(self.layer, self.step, self.weights.shape[-1], self.cross)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return head_count(self.weights)

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return self.weights.shape[:-2].numel() // self.heads


@dataclass(frozen=True)
class ChosenLayers:
    """Layers of a recording in some steps; the weights of each are loaded when the iteration reaches it."""

    recording: Recorded
    calls: tuple[tuple[Any, int], ...]  # layer and step

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[LayerWeights]:
        for layer, step in self.calls:
            yield LayerWeights(layer.name, step, self.recording[layer.name, step], bool(layer.cross))


def layer_weights(recording: Recorded, layers: Patterns = None, step: int | None = None) -> ChosenLayers:
    """Weights of the chosen layers, in the order in which they were called."""
    chosen = [layer for layer in recording.layers if _matches(layer.name, layers)]
    if not chosen:
        names = ", ".join(layer.name for layer in recording.layers) or "none"
        raise ChoiceError(f"layers={layers!r} chooses none of the recorded layers; they are {names}")
    steps = sorted({number for layer in chosen for number in layer.steps})
    if step is not None and step not in steps:
        raise ChoiceError(f"step={step} was not recorded; the steps are {', '.join(map(str, steps))}")
    numbers = steps if step is None else (step,)
    calls = tuple((layer, number) for number in numbers for layer in chosen if number in layer.steps)
    return ChosenLayers(recording, calls)


def one_step(recording: Recorded, layers: Patterns, step: int | None) -> ChosenLayers:
    """Weights of the chosen layers in one step, which must be named if the recording has several."""
    steps = sorted({number for layer in recording.layers for number in layer.steps})
    if step is None and len(steps) > 1:
        raise ChoiceError(f"the recording has steps {', '.join(map(str, steps))}: say which, step={steps[0]}")
    return layer_weights(recording, layers, step)


def _matches(name: str, patterns: Patterns) -> bool:
    if patterns is None:
        return True
    return any(fnmatchcase(name, pattern) for pattern in ((patterns,) if isinstance(patterns, str) else patterns))


# Heads: axis -3 of weights with four dimensions or more


def head_count(weights: Weights) -> int:
    """Number of heads: the length of axis -3 if there are four dimensions or more, else 1."""
    return weights.shape[-3] if weights.ndim > 3 else 1


def by_head(tensor: Tensor, lead: Sequence[int]) -> Tensor:
    """(*lead, ...) -> (heads, batch, ...), where `lead` are the leading dimensions of the weights."""
    rest = tensor.shape[len(lead) :]
    whole = tensor.expand(*lead, *rest)
    return whole.reshape(-1, lead[-1] if len(lead) > 1 else 1, *rest).transpose(0, 1)


# Tokens that are marked


def separator_flags(
    recording: Any, layer: LayerWeights, separators: Any
) -> Bool[Tensor, "keys 1"] | Bool[Tensor, "batch *ones keys 1"] | None:
    """True for the keys that are separators, given as a bool tensor, as token texts or as token ids; None for none."""
    if separators is None:
        return None
    m, lead = layer.weights.shape[-1], layer.weights.shape[:-2]
    if isinstance(separators, Tensor) and separators.dtype == torch.bool:
        flags = separators.to(layer.weights.device)
    elif all(isinstance(item, str) for item in separators):
        rows = layer.key_tokens.texts(recording)
        if rows is None:
            raise ChoiceError(
                f"separators={separators!r} are texts, and the recording knows no texts for the {m} keys of "
                f"{layer.layer!r}: give token ids, or a bool tensor (keys,) or (batch, keys)"
            )
        flags = torch.tensor([[token in separators for token in row] for row in rows], device=layer.weights.device)
    else:
        ids = layer.key_tokens.ids(recording)
        if ids is None:
            raise ChoiceError(
                f"separators={separators!r} are token ids, and the recording knows none for the {m} keys of "
                f"{layer.layer!r}: give a bool tensor (keys,) or (batch, keys)"
            )
        flags = torch.isin(ids, torch.tensor(list(separators), device=ids.device))
    if flags.shape[-1] != m:
        raise ChoiceError(f"separators mark {flags.shape[-1]} keys, and {layer.layer!r} has {m}")
    if flags.dim() > 1 and lead:  # (batch, keys) -> (batch, 1, ..., keys), to stand before the heads
        flags = flags.reshape(*flags.shape[:1], *[1] * (len(lead) - 1), *flags.shape[1:])
    return flags.unsqueeze(-1)
