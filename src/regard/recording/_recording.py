"""What was recorded, by layer and by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.errors import ChoiceError
from regard.recording._call import Call
from regard.weights import Weights


@dataclass(frozen=True)
class Layer:
    """One attention layer of a recording."""

    name: str
    steps: tuple[int, ...]
    shape: tuple[int, ...]  # (batch, heads, queries, keys) of its first step
    cross: bool
    mask: str


@dataclass
class Recording:
    """Attention of a model's layers, in the order in which they were called."""

    calls: list[Call] = field(default_factory=list)
    inputs: dict[int, dict[str, Tensor]] = field(default_factory=dict)  # what the model was given, by step

    def given(self, step: int, tensors: dict[str, Tensor]) -> None:
        """What the model was given; more of the same step comes behind it."""
        known = self.inputs.setdefault(step, {})
        for name, tensor in tensors.items():
            same = name in known and known[name].shape[0] == tensor.shape[0]
            known[name] = torch.cat([known[name], tensor], 1) if same else tensor.clone()

    @property
    def layers(self) -> tuple[Layer, ...]:
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.name, []).append(call)
        return tuple(
            Layer(name, tuple(call.step for call in calls), calls[0].shape, calls[0].cross, str(calls[0].spec.mask))
            for name, calls in found.items()
        )

    def __getitem__(self, which: str | tuple[str, int]) -> Weights:
        name, step = which if isinstance(which, tuple) else (which, None)
        calls = {call.step: call for call in self.calls if call.name == name}
        if not calls:
            raise ChoiceError(f"no layer {name!r} was recorded; there are: {', '.join(_names(self.calls))}")
        if step is None and len(calls) > 1:
            raise ChoiceError(f"{name!r} was recorded in steps {_listed(calls)}: say which, recording[{name!r}, step]")
        if step is not None and step not in calls:
            raise ChoiceError(f"{name!r} has no step {step}; it was recorded in steps {_listed(calls)}")
        return (next(iter(calls.values())) if step is None else calls[step]).weights()


def _names(calls: Iterable[Call]) -> list[str]:
    return list(dict.fromkeys(call.name for call in calls))


def _listed(calls: Iterable[int]) -> str:
    return ", ".join(str(step) for step in calls)
