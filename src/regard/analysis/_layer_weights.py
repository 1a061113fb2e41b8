"""What is asked of a recording: its layers by name and step, and the tokens that it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.errors import ChoiceError
from regard.weights import Weights

Patterns = str | Sequence[str] | None


@runtime_checkable
class Recorded(Protocol):
    """A `regard.Recording`, or anything with layers that gives their weights."""

    @property
    def layers(self) -> Sequence[Any]: ...

    def __getitem__(self, which: tuple[str, int], /) -> Weights: ...


class Matrix(NamedTuple):
    """The weights of one layer in one step."""

    layer: str
    step: int
    weights: Weights
    cross: bool


def matrices(recording: Recorded, layers: Patterns = None, step: int | None = None) -> Iterator[Matrix]:
    """The wanted layers, one after the other in the order in which they were called."""
    chosen = [layer for layer in recording.layers if _wanted(layer.name, layers)]
    if not chosen:
        names = ", ".join(layer.name for layer in recording.layers) or "none"
        raise ChoiceError(f"layers={layers!r} chooses none of the recorded layers; they are {names}")
    steps = sorted({number for layer in chosen for number in layer.steps})
    if step is not None and step not in steps:
        raise ChoiceError(f"step={step} was not recorded; the steps are {', '.join(map(str, steps))}")
    for number in steps if step is None else (step,):
        for layer in chosen:
            if number in layer.steps:
                yield Matrix(layer.name, number, recording[layer.name, number], bool(layer.cross))


def one_step(recording: Recorded, layers: Patterns, step: int | None) -> Iterator[Matrix]:
    """The same of one step, which must be named where there are several."""
    steps = sorted({number for layer in recording.layers for number in layer.steps})
    if step is None and len(steps) > 1:
        raise ChoiceError(f"the recording has steps {', '.join(map(str, steps))}: say which, step={steps[0]}")
    return matrices(recording, layers, step)


def _wanted(name: str, patterns: Patterns) -> bool:
    if patterns is None:
        return True
    return any(fnmatchcase(name, pattern) for pattern in ((patterns,) if isinstance(patterns, str) else patterns))


def token_ids(recording: Any, matrix: Matrix, count: int, *, keys: bool = True) -> Tensor | None:
    """The ids (batch, count) of the tokens that a layer's keys or queries stand for, where the recording has them."""
    known = getattr(recording, "inputs", {}).get(matrix.step, {})
    found = (known[name] for name in _sequences(matrix, keys) if name in known)
    return next((ids for ids in found if ids.shape[-1] == count), None)


def token_texts(recording: Any, matrix: Matrix, count: int, *, keys: bool = True) -> list[list[str]] | None:
    """The same in words: for each sequence of the batch a list of `count` texts."""
    known = (getattr(recording, "tokens", None) or {}).get(matrix.step, {})
    found = (known[name] for name in _sequences(matrix, keys) if name in known)
    return next((rows for rows in found if all(len(row) == count for row in rows)), None)


def _sequences(matrix: Matrix, keys: bool) -> tuple[str, str]:
    """What Hugging Face calls the tokens that a layer looks at, or looks from; the likelier first."""
    decoder = "decoder" in matrix.layer and not (keys and matrix.cross)
    return ("decoder_input_ids", "input_ids") if decoder else ("input_ids", "decoder_input_ids")


def texts(recording: Any, matrix: Matrix, count: int, sequence: int, *, keys: bool = True) -> list[str]:
    """The tokens of one sequence in words: its texts, else its ids, else nothing."""
    rows = token_texts(recording, matrix, count, keys=keys)
    if rows is not None and sequence < len(rows):
        return rows[sequence]
    ids = token_ids(recording, matrix, count, keys=keys)
    if ids is None or sequence >= len(ids):
        return [""] * count
    return [str(number) for number in ids[sequence].tolist()]


def by_head(tensor: Tensor, lead: Sequence[int]) -> Tensor:
    """(..., more) as (heads, batch, more): axis -3 of a matrix is its heads where it has four dimensions or more."""
    more = tensor.shape[len(lead) :]
    whole = tensor.expand(*lead, *more)
    return whole.reshape(-1, lead[-1] if len(lead) > 1 else 1, *more).transpose(0, 1)


def heads_in(weights: Weights) -> int:
    return weights.shape[-3] if weights.ndim > 3 else 1


def over_batch(tensor: Tensor, lead: Sequence[int]) -> Tensor:
    """(batch, ...) made to stand before the heads of a matrix: (batch, 1, ...)."""
    return tensor.reshape(*tensor.shape[:1], *[1] * (len(lead) - 1), *tensor.shape[1:])


def marked(recording: Any, matrix: Matrix, chosen: Any) -> Tensor | None:
    """Keys that are separators as 1, others as 0: (m, 1) or (batch, 1, m, 1)."""
    if chosen is None:
        return None
    m, lead = matrix.weights.shape[-1], matrix.weights.shape[:-2]
    if isinstance(chosen, Tensor) and chosen.dtype == torch.bool:
        flags = chosen.to(matrix.weights.device)
    elif all(isinstance(item, str) for item in chosen):
        rows = token_texts(recording, matrix, m)
        if rows is None:
            raise ChoiceError(
                f"separators={chosen!r} are texts, and the recording knows no texts for the {m} keys of "
                f"{matrix.layer!r}: give token ids, or a bool tensor (keys,) or (batch, keys)"
            )
        flags = torch.tensor([[token in chosen for token in row] for row in rows], device=matrix.weights.device)
    else:
        ids = token_ids(recording, matrix, m)
        if ids is None:
            raise ChoiceError(
                f"separators={chosen!r} are token ids, and the recording knows none for the {m} keys of "
                f"{matrix.layer!r}: give a bool tensor (keys,) or (batch, keys)"
            )
        flags = torch.isin(ids, torch.tensor(list(chosen), device=ids.device))
    if flags.shape[-1] != m:
        raise ChoiceError(f"separators mark {flags.shape[-1]} keys, and {matrix.layer!r} has {m}")
    flags = flags if flags.dim() == 1 or not lead else over_batch(flags, lead)
    return flags.unsqueeze(-1)
