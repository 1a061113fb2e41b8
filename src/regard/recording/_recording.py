"""Recordings: the attention of a model's layers, by layer and step, in memory or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard, overload

import torch
from torch import Tensor

from regard.display.labels import BatchLabels, Labels
from regard.errors import ChoiceError, PositionError, RecordError
from regard.recording._call import Call
from regard.recording._call_index import CallIndex
from regard.recording._codec import StoredCall, pack_about, pack_call, pack_inputs, pack_missing
from regard.recording._html import recording_html
from regard.recording._layer import Layer
from regard.recording._reader import Reader
from regard.recording._tokens import ModelInputs, Texts, TokenAxis
from regard.recording._writer import replacing
from regard.weights import Weights

Entry = Call | StoredCall
Inputs = dict[str, Tensor]
Which = str | int  # a layer: its name, or its place in `Recording.layers`


class Recording:
    r"""The attention of a model's layers during one or more forward passes, in memory or in a file.

    `regard.record` makes one, `save` writes it, `regard.open` opens it. It keeps queries, keys and the formula of every
    call, O(n d) numbers for n tokens, and gives their weights as lazy `regard.Weights`:

    - ``recording[name]``: a layer that ran once, (batch, heads, queries, keys);
    - ``recording[name, step]``: that layer in one forward pass, or one `generate()`; steps count from 0;
    - ``recording[name, step, head]``: one head, (batch, 1, queries, keys); from a file only that head is read.

    A number stands for the layer at that place in `layers`: ``recording[0]``, ``recording[-1, step]``. By name it is a
    mapping: `len`, `in`, iteration and `keys` are those of the names of its layers.

    `layers` lists names, shapes and masks; `tokens` and `inputs` are what the model read; `missing` names the layers
    that ran but were left out, with the reason.

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
        missing: Iterable[tuple[str, str]] = (),
        reader: Reader | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._about = dict(about or {})
        self._calls = list(calls)
        self._inputs = dict(inputs or {})
        self._missing = dict.fromkeys(missing)
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
        """Every call, in order: name, step, shape, cross, `weights()`; from a file each is loaded when it is taken."""
        return Calls(self.entries, self._load)

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
        return ModelInputs(self._inputs, self.tokenizer).tokens if self._index is None else self._index.tokens

    @property
    def about(self) -> dict[str, str]:
        """Notes: the class of the model as "model", and what the caller of `record` passed as `about`."""
        return self._about if self._index is None else self._index.about

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """(name, reason) of attention that ran but was left out, in the order in which it was noticed."""
        return tuple(self._missing) if self._index is None else self._index.missing

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
        absent = f", {_count(len({name for name, _ in self.missing}), 'layer')} missing" if self.missing else ""
        return (
            f"Recording({_count(len(self.entries), 'call')} of {_count(len(names), 'layer')}, "
            f"{_count(len(self.steps), 'step')}, {self.bytes:,} bytes {where}{absent}{lost})"
        )

    # Weights

    def __getitem__(self, which: Which | tuple[Which, int | None] | tuple[Which, int | None, int]) -> Weights:
        """Lazy weights of a layer, of one of its steps, or of one head in one step. A layer is a name or a place.

        Numbers may be negative: recording[-1] is the last layer, recording[0, -1] the first in its last step.
        """
        index: tuple[Any, ...] = which if isinstance(which, tuple) else (which,)
        layer, step, head = (*index, None, None, None)[:3]
        numbers = [number for number in (step, head) if number is not None]
        if not 1 <= len(index) <= 3 or not all(_is_number(number) for number in numbers):
            raise ChoiceError(f"ask for recording[layer], [layer, step] or [layer, step, head], not for {which!r:.80}")
        entry = self._find(self._name_of(layer), step)
        if head is not None and head < 0 and len(entry.shape) == 4:
            head += entry.shape[1]
        return self._load(entry, head).weights()

    def __len__(self) -> int:
        """Number of layers."""
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        """Names of the layers, in the order of first calls."""
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        """True for the name of a layer."""
        return name in self.keys()

    def keys(self) -> tuple[str, ...]:
        """Names of the layers, in the order of first calls: recording[3] is the fourth of them."""
        return tuple(dict.fromkeys(entry.name for entry in self.entries))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.keys())

    def words(self, row: int = 0, step: int | None = None) -> list[str]:
        """The tokens that the model read in one sequence of a batch: their texts, or their ids without a tokenizer.

        step: which forward pass; it may be left out if there was one. An encoder-decoder has the words of its encoder
        here; `tokens` has all.
        """
        steps = self.inputs
        if not steps:
            raise ChoiceError("the model read no token ids that were recorded (input_ids), so there are no words")
        if step is None and len(steps) > 1:
            raise ChoiceError(f"token ids were recorded in steps {_listed(steps)}: say which, words(row, step)")
        number = next(iter(steps)) if step is None else step
        if number < 0:
            number = list(steps)[number] if -number <= len(steps) else number
        if number not in steps:
            raise ChoiceError(f"no token ids were recorded in step {step}; there are steps {_listed(steps)}")
        ids = steps[number]
        name = "input_ids" if "input_ids" in ids else next(iter(ids))
        rows = self.tokens.get(number, {}).get(name)
        if not -len(ids[name]) <= row < len(ids[name]):
            raise PositionError(f"there is no row {row} in a batch of {len(ids[name])}, counted from 0")
        return [str(token) for token in (ids[name].tolist() if rows is None else rows)[row]]

    def _name_of(self, layer: object) -> str:
        """The name of a layer that is given by name, or by its place in `layers`."""
        if isinstance(layer, str):
            return layer
        if not _is_number(layer):
            raise ChoiceError(f"a layer is a name, or a place in recording.layers, not {layer!r:.40}")
        names = self.keys()
        if not -len(names) <= layer < len(names):
            raise PositionError(
                f"there is no layer {layer} among {_count(len(names), 'layer')}, counted from 0: {self._names()}"
            )
        return names[layer]

    def _load(self, entry: Entry, head: int | None = None) -> Call:
        """The call of an entry, or one head of it, with its tensors and with the texts of its tokens."""
        # Not the recording itself: weights that outlive it would keep the tensors of all layers.
        known = ModelInputs({entry.step: self._inputs.get(entry.step, {})}, self.tokenizer)
        read = partial(labels_of_call, known if self._index is None else self._index, _token_axes(entry))
        return replace(entry.load(head), labels=BatchLabels(entry.shape[0] if len(entry.shape) > 2 else 1, read))

    def _find(self, name: str, step: int | None) -> Entry:
        calls = {entry.step: entry for entry in self.entries if entry.name == name}
        if not calls:
            reason = "".join(f" ({why})" for missing, why in self.missing if missing == name)
            raise ChoiceError(f"no layer {name!r} was recorded{reason}; there are: {self._names()}")
        if step is None and len(calls) > 1:
            raise ChoiceError(f"{name!r} was recorded in steps {_listed(calls)}: say which, recording[{name!r}, step]")
        if step is not None and -len(calls) <= step < 0:
            step = list(calls)[step]
        if step is not None and step not in calls:
            raise ChoiceError(f"{name!r} has no step {step}; it was recorded in steps {_listed(calls)}")
        return next(iter(calls.values())) if step is None else calls[step]

    def _names(self) -> str:
        names = ", ".join(self.keys()) or "none"
        return f"{names}; {_count(self._lost, 'call')} lost to damage, see recording.damage" if self._lost else names

    @property
    def _lost(self) -> int:
        return 0 if self._index is None else len(self._index.broken)

    def _repr_html_(self) -> str:
        """Some layers and heads as small pictures, for a notebook: at most 50 kB."""
        return recording_html(repr(self), self.layers, lambda layer, *head: self[layer.name, layer.steps[0], *head])

    def view(self) -> Any:
        """A notebook widget that shows every head and zooms into its weights."""
        from regard.web.notebook.display import view

        return view(self)

    # Growing and saving

    def take(self, call: Call) -> None:
        """Append one call."""
        self._calls.append(with_unique_name(call, self._calls))

    def add_inputs(self, step: int, tensors: Inputs) -> None:
        """Append token ids that the model read in a step."""
        append_inputs(self._inputs.setdefault(step, {}), tensors)

    def miss(self, name: str, reason: str) -> None:
        """Note that a layer ran but was left out; the same pair is kept once."""
        self._missing[name, reason] = None

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
            for name, reason in self.missing:
                writer.append(*pack_missing(name, reason))
            for step, ids in self.inputs.items():
                writer.append(*pack_inputs(step, ids, texts.get(step, {})))
            for entry in self.entries:
                writer.append(*pack_call(entry.load()))


class Calls(Sequence[Call]):
    """The calls of a recording as a sequence that loads each when it is taken."""

    def __init__(self, entries: Sequence[Entry], load: Callable[[Entry], Call]) -> None:
        self._entries, self._load = entries, load

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | Sequence[Call]:
        if isinstance(index, slice):
            return Calls(self._entries[index], self._load)
        return self._load(self._entries[index])


def labels_of_call(known: ModelInputs | CallIndex, axes: tuple[TokenAxis, TokenAxis], sequence: int) -> Labels:
    """The texts of the queries and of the keys of one sequence, as far as they are known."""

    def texts(axis: TokenAxis) -> tuple[str, ...] | None:
        rows = axis.rows(known)
        which = 0 if len(rows) == 1 else sequence  # weights without a batch axis are of the one sequence
        return tuple(rows[which]) if which < len(rows) else None

    return Labels(*map(texts, axes))


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


def _token_axes(entry: Entry) -> tuple[TokenAxis, TokenAxis]:
    n, m = entry.shape[-2:]
    return (
        TokenAxis(entry.name, entry.step, n, entry.cross, keys=False),
        TokenAxis(entry.name, entry.step, m, entry.cross, keys=True),
    )


def _is_number(value: object) -> TypeGuard[int]:
    """True for a whole number, also one of numpy, but not for True and False."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool | Tensor)


def _listed(calls: Iterable[int]) -> str:
    return ", ".join(str(step) for step in calls)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
