"""What was recorded, by layer and by step, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import ChoiceError, RecordError
from regard.recording._call import Call
from regard.recording._call_index import Loaded, Shelf
from regard.recording._codec import StoredCall, pack_about, pack_call, pack_inputs
from regard.recording._reader import Reader
from regard.recording._tokens import Texts, texts_of
from regard.recording._writer import replacing
from regard.weights import Weights

Kept = Call | StoredCall
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Layer:
    """One attention layer of a recording."""

    name: str
    steps: tuple[int, ...]
    shape: tuple[int, ...]  # (batch, heads, queries, keys) of its first step
    cross: bool
    mask: str
    heads: tuple[int, ...] | None = None  # which of its heads were kept; None: all
    bytes: int = 0  # of all its steps


class Recording:
    r"""Attention of a model's layers, in the order in which they were called.

    recording[name] are the weights (batch, heads, n, m) of a layer, recording[name, step] those of one forward pass,
    recording[name, step, head] those of one head (batch, 1, n, m), for which a file reads that head alone.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 2)
    >>> with rg.record(layer) as recording:
    ...     _ = layer(torch.randn(1, 5, 8))
    >>> recording.save("run.regard")
    >>> rg.open("run.regard").layers[0].shape
    (1, 2, 5, 5)
    """

    def __init__(
        self,
        calls: Iterable[Call] = (),
        inputs: Mapping[int, Inputs] | None = None,
        *,
        tokenizer: Any = None,
        about: Mapping[str, str] | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._about = dict(about or {})
        self._calls = list(calls)
        self._inputs = dict(inputs or {})
        self._shelf = None if reader is None else Shelf(reader)

    # What there is

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return None if self._shelf is None else self._shelf.reader.path

    @property
    def closed(self) -> bool:
        """False for a file that is still being written, or whose writer was killed."""
        return self._shelf is None or self._shelf.reader.closed

    @property
    def entries(self) -> Sequence[Kept]:
        """Every call with its name, step and shape; `load()` gives its tensors."""
        return self._calls if self._shelf is None else self._shelf.calls

    @property
    def calls(self) -> Sequence[Call]:
        """Every call with its tensors; from a file they are loaded one by one."""
        return self._calls if self._shelf is None else Loaded(self._shelf.calls)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Layers in the order of their first call."""
        found: dict[str, list[Kept]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return tuple(_layer(name, calls) for name, calls in found.items())

    @property
    def steps(self) -> tuple[int, ...]:
        """Forward passes of which something was kept."""
        return tuple(dict.fromkeys(entry.step for entry in self.entries))

    @property
    def inputs(self) -> dict[int, Inputs]:
        """Token ids that the model was given: inputs[step]["input_ids"] is (batch, tokens)."""
        return self._inputs if self._shelf is None else self._shelf.inputs

    @property
    def tokens(self) -> dict[int, Texts]:
        """Their texts, if a tokenizer was given: tokens[step]["input_ids"][row] is a list of strings."""
        if self._shelf is not None:
            return self._shelf.tokens
        return {step: texts_of(ids, self.tokenizer) for step, ids in self._inputs.items() if self.tokenizer is not None}

    @property
    def about(self) -> dict[str, str]:
        """The class of the model, as "model", and what else the caller of `record` said about it."""
        return self._about if self._shelf is None else self._shelf.about

    @property
    def bytes(self) -> int:
        """The size of all tensors that are kept."""
        if self._shelf is not None:
            return sum(entry.bytes for entry in self.entries)
        tensors = (tensor for call in self._calls for tensor in call.tensors)
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())  # masks may be shared

    @property
    def damage(self) -> list[str]:
        """What of a file is not as it was written, chunk by chunk; tensors are checked when they are asked for."""
        return [] if self._shelf is None else self._shelf.damage(every_byte=False)

    def verify(self) -> list[str]:
        """The same with every byte of every tensor checked."""
        return [] if self._shelf is None else self._shelf.damage(every_byte=True)

    def __repr__(self) -> str:
        names = {entry.name for entry in self.entries}
        where = "in memory" if self.path is None else f"in {self.path}"
        lost = f", {_count(self._lost, 'call')} lost to damage" if self._lost else ""
        return (
            f"Recording({_count(len(self.entries), 'call')} of {_count(len(names), 'layer')}, "
            f"{_count(len(self.steps), 'step')}, {self.bytes:,} bytes {where}{lost})"
        )

    # Questions

    def __getitem__(self, which: str | tuple[str, int | None] | tuple[str, int | None, int]) -> Weights:
        """The weights of a layer, of one of its steps, of one of its heads."""
        asked: tuple[Any, ...] = which if isinstance(which, tuple) else (which,)
        name, step, head = (*asked, None, None, None)[:3]
        if len(asked) > 3 or not isinstance(name, str):
            raise ChoiceError(f"ask for recording[name], [name, step] or [name, step, head], not for {which!r}")
        return self._find(name, step).load(head).weights()

    def _find(self, name: str, step: int | None) -> Kept:
        calls = {entry.step: entry for entry in self.entries if entry.name == name}
        if not calls:
            raise ChoiceError(f"no layer {name!r} was recorded; there are: {self._names()}")
        if step is None and len(calls) > 1:
            raise ChoiceError(f"{name!r} was recorded in steps {_listed(calls)}: say which, recording[{name!r}, step]")
        if step is not None and step not in calls:
            raise ChoiceError(f"{name!r} has no step {step}; it was recorded in steps {_listed(calls)}")
        return next(iter(calls.values())) if step is None else calls[step]

    def _names(self) -> str:
        names = ", ".join(dict.fromkeys(entry.name for entry in self.entries)) or "none"
        return f"{names}; {_count(self._lost, 'call')} lost to damage, see recording.damage" if self._lost else names

    @property
    def _lost(self) -> int:
        return 0 if self._shelf is None else len(self._shelf.broken)

    def view(self) -> Any:
        """A widget of a notebook: every head, to look at in any depth."""
        from regard.web.notebook.display import view

        return view(self)

    # Coming and going

    def take(self, call: Call) -> None:
        """Keep one more call."""
        self._calls.append(named_apart(call, self._calls))

    def given(self, step: int, tensors: Inputs) -> None:
        """What the model was given; more of the same step comes behind it."""
        grow(self._inputs.setdefault(step, {}), tensors)

    def refresh(self) -> int:
        """Look whether the file that somebody writes has more; returns how many calls are new."""
        return 0 if self._shelf is None else self._shelf.refresh()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file. It takes the place of one that is there once it is complete, not before."""
        if not self.entries:
            raise RecordError("there is nothing to save: the recording has no calls")
        texts = self.tokens
        with replacing(Path(path)) as writer:
            if self.about:
                writer.append(*pack_about(self.about))
            for step, ids in self.inputs.items():
                writer.append(*pack_inputs(step, ids, texts.get(step, {})))
            for entry in self.entries:
                writer.append(*pack_call(entry.load()))


def open(path: str | os.PathLike[str]) -> Recording:  # noqa: A001  it is rg.open
    """A recording in a file, also one that is still being written: nothing is read but what is asked for."""
    return Recording(reader=Reader(path))


def grow(known: Inputs, tensors: Inputs) -> None:
    for name, tensor in tensors.items():
        same = name in known and known[name].shape[0] == tensor.shape[0]
        known[name] = torch.cat([known[name], tensor], 1) if same else tensor.clone()


def named_apart(call: Call, known: Sequence[Kept]) -> Call:
    """A module that runs again within a step is told apart: name, name#2, name#3."""
    taken = {entry.name for entry in takewhile(lambda entry: entry.step == call.step, reversed(known))}
    count = 1
    while (name := call.name if count == 1 else f"{call.name}#{count}") in taken:
        count += 1
    return call if count == 1 else replace(call, name=name)


def _layer(name: str, calls: Sequence[Kept]) -> Layer:
    first = calls[0]
    steps = tuple(dict.fromkeys(call.step for call in calls))
    return Layer(name, steps, first.shape, first.cross, first.mask, first.heads, sum(call.bytes for call in calls))


def _listed(calls: Iterable[int]) -> str:
    return ", ".join(str(step) for step in calls)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
