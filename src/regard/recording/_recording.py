"""Recordings: the attention of a model's layers, by layer and step, in memory or in a file."""

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
from regard.recording._call_index import CallIndex, LoadedCalls
from regard.recording._codec import StoredCall, pack_about, pack_call, pack_inputs
from regard.recording._reader import Reader
from regard.recording._tokens import Texts, texts_of
from regard.recording._writer import replacing
from regard.weights import Weights

Entry = Call | StoredCall
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Layer:
    """Summary of one attention layer in a recording."""

    name: str
    steps: tuple[int, ...]
    shape: tuple[int, ...]  # (batch, heads, queries, keys) of its first step
    cross: bool  # True if queries and keys come from two sequences
    mask: str  # in words: "causal('top-left')", "padding", "everything", ...
    heads: tuple[int, ...] | None = None  # which of its heads were kept; None: all
    bytes: int = 0  # of all its steps


class Recording:
    r"""The attention of a model's layers during one or more forward passes, in memory or in a file.

    `regard.record` makes one, `save` writes it, `regard.open` opens it. It keeps queries, keys and the formula of every
    call, O(n d) numbers for n tokens, and gives their weights as lazy `regard.Weights`:

    - ``recording[name]``: a layer that ran once, (batch, heads, queries, keys);
    - ``recording[name, step]``: that layer in one forward pass, or one `generate()`; steps count from 0;
    - ``recording[name, step, head]``: one head, (batch, 1, queries, keys); from a file only that head is read.

    `layers` lists names, shapes and masks; `tokens` and `inputs` are what the model read.

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
        self._index = None if reader is None else CallIndex(reader)

    # Contents

    @property
    def path(self) -> Path | None:
        """The file, or None for a recording in memory."""
        return None if self._index is None else self._index.reader.path

    @property
    def closed(self) -> bool:
        """False for a file that is still being written or whose writer was killed."""
        return self._index is None or self._index.reader.closed

    @property
    def entries(self) -> Sequence[Entry]:
        """Every call, in order, with its name, step and shape; `load()` gives the call with its tensors."""
        return self._calls if self._index is None else self._index.calls

    @property
    def calls(self) -> Sequence[Call]:
        """Every call, in order, with its tensors; from a file each is loaded when it is taken."""
        return self._calls if self._index is None else LoadedCalls(self._index.calls)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer, in the order of first calls: name, steps, shape, mask, heads, bytes."""
        by_name: dict[str, list[Entry]] = {}
        for entry in self.entries:
            by_name.setdefault(entry.name, []).append(entry)
        return tuple(_layer(name, calls) for name, calls in by_name.items())

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of the forward passes that were recorded; one `generate()` with a cache is one step."""
        return tuple(dict.fromkeys(entry.step for entry in self.entries))

    @property
    def inputs(self) -> dict[int, Inputs]:
        """Token ids that the model read: inputs[step]["input_ids"] is (batch, tokens)."""
        return self._inputs if self._index is None else self._index.inputs

    @property
    def tokens(self) -> dict[int, Texts]:
        """Texts of the tokens, if a tokenizer was given: tokens[step]["input_ids"][sequence] is a list of strings."""
        if self._index is not None:
            return self._index.tokens
        return {step: texts_of(ids, self.tokenizer) for step, ids in self._inputs.items() if self.tokenizer is not None}

    @property
    def about(self) -> dict[str, str]:
        """Notes: the class of the model as "model", and what the caller of `record` passed as `about`."""
        return self._about if self._index is None else self._index.about

    @property
    def bytes(self) -> int:
        """Size of all tensors that the recording holds."""
        if self._index is not None:
            return sum(entry.bytes for entry in self.entries)
        tensors = (tensor for call in self._calls for tensor in call.tensors)
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())  # masks may be shared

    @property
    def damage(self) -> list[str]:
        """A sentence for each damaged chunk of a file; tensors are checked when they are loaded, or by `verify`."""
        return [] if self._index is None else self._index.damage(every_byte=False)

    def verify(self) -> list[str]:
        """Check every byte of the file, also of tensors, and return a sentence for each damaged chunk."""
        return [] if self._index is None else self._index.damage(every_byte=True)

    def __repr__(self) -> str:
        names = {entry.name for entry in self.entries}
        where = "in memory" if self.path is None else f"in {self.path}"
        lost = f", {_count(self._lost, 'call')} lost to damage" if self._lost else ""
        return (
            f"Recording({_count(len(self.entries), 'call')} of {_count(len(names), 'layer')}, "
            f"{_count(len(self.steps), 'step')}, {self.bytes:,} bytes {where}{lost})"
        )

    # Weights

    def __getitem__(self, which: str | tuple[str, int | None] | tuple[str, int | None, int]) -> Weights:
        """Lazy weights of a layer, of one of its steps, or of one head in one step."""
        index: tuple[Any, ...] = which if isinstance(which, tuple) else (which,)
        name, step, head = (*index, None, None, None)[:3]
        if len(index) > 3 or not isinstance(name, str):
            raise ChoiceError(f"ask for recording[name], [name, step] or [name, step, head], not for {which!r}")
        return self._find(name, step).load(head).weights()

    def _find(self, name: str, step: int | None) -> Entry:
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
        return 0 if self._index is None else len(self._index.broken)

    def view(self) -> Any:
        """A notebook widget that shows every head and zooms into its weights."""
        from regard.web.notebook.display import view

        return view(self)

    # Growing and saving

    def take(self, call: Call) -> None:
        """Append one call."""
        self._calls.append(with_unique_name(call, self._calls))

    def given(self, step: int, tensors: Inputs) -> None:
        """Append token ids that the model read in a step."""
        append_inputs(self._inputs.setdefault(step, {}), tensors)

    def refresh(self) -> int:
        """Read on in a file that is still being written, and return the number of new calls."""
        return 0 if self._index is None else self._index.refresh()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file. An existing file is replaced when the new one is complete, not before."""
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
    """Open a recording in a file, also one that is still being written; tensors are read when they are used.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 2)
    >>> with rg.record(layer, path="live.regard") as recording:
    ...     _ = layer(torch.randn(1, 5, 8))
    >>> rg.open("live.regard")["SelfAttention"].shape
    torch.Size([1, 2, 5, 5])
    """
    return Recording(reader=Reader(path))


def append_inputs(known: Inputs, tensors: Inputs) -> None:
    """Append token ids (batch, tokens) to those of the same step; another batch size replaces them."""
    for name, tensor in tensors.items():
        same = name in known and known[name].shape[0] == tensor.shape[0]
        known[name] = torch.cat([known[name], tensor], 1) if same else tensor.clone()


def with_unique_name(call: Call, known: Sequence[Entry]) -> Call:
    """The call under a name that its step does not have yet: name, name#2, name#3."""
    taken = {entry.name for entry in takewhile(lambda entry: entry.step == call.step, reversed(known))}
    count = 1
    while (name := call.name if count == 1 else f"{call.name}#{count}") in taken:
        count += 1
    return call if count == 1 else replace(call, name=name)


def _layer(name: str, calls: Sequence[Entry]) -> Layer:
    first = calls[0]
    steps = tuple(dict.fromkeys(call.step for call in calls))
    return Layer(name, steps, first.shape, first.cross, first.mask, first.heads, sum(call.bytes for call in calls))


def _listed(calls: Iterable[int]) -> str:
    return ", ".join(str(step) for step in calls)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
