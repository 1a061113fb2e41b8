"""Which layers, heads and sequences of a recording are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import typer

from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.recording import Layer


def numbers(text: str | None, option: str) -> list[int] | None:
    """0,3,5 as numbers."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"numbers such as 0,3,5 are meant, not {text!r}", param_hint=option) from None


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """Names that a pattern fits, or of which a number is the first: 3 is encoder.layer.3.attention.self.

    >>> matching("0", ["block.0.layer.0", "block.1.layer.0"]), matching("*.1.*", ["block.0.layer.0", "block.1.layer.0"])
    (['block.0.layer.0'], ['block.1.layer.0'])
    """
    if wanted.isdecimal():
        return [name for name in names if next((p for p in name.split(".") if p.isdecimal()), None) == wanted]
    return [name for name in names if name == wanted or fnmatchcase(name, wanted)]


def layers(wanted: Sequence[str], there: Sequence[Layer]) -> list[Layer]:
    """Those that one of the patterns or numbers means; all of them if there is none."""
    for one in wanted:
        if not matching(one, (layer.name for layer in there)):
            raise ChoiceError(f"--layer {one} means none of the recorded layers; {_listed(there)}")
    if not wanted:
        return list(there)
    chosen = {name for one in wanted for name in matching(one, (layer.name for layer in there))}
    return [layer for layer in there if layer.name in chosen]


def layer(wanted: str | None, there: Sequence[Layer]) -> Layer:
    """The one that is meant; where there is only one, nothing need be said."""
    found = layers([] if wanted is None else [wanted], there)
    if len(found) > 1:
        asked = "--layer is needed" if wanted is None else f"--layer {wanted} means {len(found)} layers"
        raise ChoiceError(f"{asked}: say which, by its name or by the first number in it; {_listed(found)}")
    return found[0]


def step(wanted: int | None, of: Layer) -> int:
    first, *others = of.steps
    listed = ", ".join(map(str, of.steps))
    if wanted is None and others:
        raise ChoiceError(f"{of.name} was recorded in steps {listed}: say which, with --step")
    if wanted is not None and wanted not in of.steps:
        raise ChoiceError(f"{of.name} has no step {wanted}; it was recorded in {listed}")
    return first if wanted is None else wanted


def head_numbers(of: Layer) -> list[int]:
    """As the model counts them, also where not all were kept."""
    if of.heads is not None:
        return list(of.heads)
    return list(range(of.shape[1])) if len(of.shape) == 4 else [0]


def head(wanted: int | None, of: Layer) -> int:
    """The place of a head among those that were kept."""
    there = head_numbers(of)
    if wanted is None and len(there) > 1:
        raise ChoiceError(f"{of.name} has heads {_few(there)}: say which, with --head")
    if wanted is not None and wanted not in there:
        raise ChoiceError(f"{of.name} has no head {wanted} in this recording; it has {_few(there)}")
    return 0 if wanted is None else there.index(wanted)


def _few(items: Sequence[object]) -> str:
    return ", ".join(map(str, items[:20])) + (f" and {len(items) - 20} more" if len(items) > 20 else "")


def _listed(there: Sequence[Layer]) -> str:
    return f"there are {_few([layer.name for layer in there])}" if there else "there are none"
