"""What a recording holds, as plain data: for a table, and for other programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from glob import escape
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from regard import analysis
from regard.cli import _choose
from regard.errors import ChoiceError, RecordingFileError

if TYPE_CHECKING:
    from regard.recording import Layer, Recording

size = decimal  # 1.2 MB


def of(recording: Recording, sections: list[dict[str, Any]], damage: list[str]) -> dict[str, Any]:
    """Everything that is printed. `sections` are the layers, step by step."""
    path = recording.path
    return {
        "file": str(path),
        "bytes": path.stat().st_size if path is not None else 0,
        "closed": recording.closed,
        "about": recording.about,
        "steps": list(recording.steps),
        "layers_in_file": len(recording.layers),
        "heads_in_file": sum(len(_choose.head_numbers(layer)) for layer in recording.layers),
        "tensor_bytes": recording.bytes,
        "tokens": _tokens(recording, damage),
        "layers": sections,
        "damage": damage,
    }


def _tokens(recording: Recording, damage: list[str]) -> list[dict[str, Any]]:
    """For each step and argument: how many sequences of how many tokens, and their texts."""
    found: list[dict[str, Any]] = []
    try:
        texts = recording.tokens
        for step, given in recording.inputs.items():
            for name, ids in given.items():
                rows = texts.get(step, {}).get(name)
                found.append(
                    {"step": step, "name": name, "sequences": ids.shape[0], "length": ids.shape[-1], "texts": rows}
                )
    except RecordingFileError as error:
        if str(error) not in damage:
            damage.append(str(error))
    return found


def check_separators(recording: Recording, asked: Sequence[str]) -> None:
    """A share of 0.000 on a token that is not there would be taken for an answer."""
    try:
        texts = {text for given in recording.tokens.values() for rows in given.values() for row in rows for text in row}
    except RecordingFileError:
        return  # damage is told later, with everything else
    for text in asked:
        if texts and text not in texts:
            near = sorted(repr(other) for other in texts if other.strip() == text.strip())
            hint = f"; there is {', '.join(near)}" if near else ""
            raise ChoiceError(f"--separator {text!r} is no token of this recording{hint}")


def sections(
    recording: Recording,
    chosen: Sequence[Layer],
    step: int | None,
    separators: Sequence[str] | None,
    *,
    profiles: bool,
    advance: Callable[[int], None],
) -> Iterator[dict[str, Any]]:
    """Each layer in each of its steps. One that is damaged says so, and the others go on."""
    for layer in chosen:
        for number in layer.steps if step is None else (step,):
            entry = next(e for e in recording.entries if (e.name, e.step) == (layer.name, number))
            *lead, queries, keys = entry.shape
            section: dict[str, Any] = {
                "name": layer.name, "step": number, "shape": list(entry.shape), "queries": queries, "keys": keys,
                "sequences": math.prod(lead[:-1]), "cross": entry.cross, "mask": entry.mask, "bytes": entry.bytes,
                "head_numbers": _choose.head_numbers(layer), "heads": [], "damage": None,
            }  # fmt: skip
            try:
                if profiles:
                    section["heads"] = _heads(recording, layer, number, separators)
            except RecordingFileError as error:
                section["damage"] = str(error)
            advance(1)
            yield section


def _heads(recording: Recording, layer: Layer, step: int, separators: Sequence[str] | None) -> list[dict[str, Any]]:
    table = analysis.profiles(recording, layers=escape(layer.name), step=step, separators=separators)
    names = _choose.head_numbers(layer)
    measures = [name for name in analysis.MEASURES if name != "separators" or separators]
    return [{"head": names[row.head], **{name: _number(getattr(row, name)) for name in measures}} for row in table]


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value
