"""Profiles of all heads piece by piece, so that somebody may see them come, or leave."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from glob import escape
from typing import Any, NamedTuple

from regard.analysis import ProfileRow, profiles
from regard.recording import Layer, Recording
from regard.web._strips import Cancelled
from regard.web._turns import TURNS
from regard.weights import Weights

TOGETHER = 1 << 27  # weights of a layer that are looked at in one piece; of more, each head is one


class Piece(NamedTuple):
    """Some heads' profiles, and the share of all work that is done with them."""

    rows: tuple[ProfileRow, ...]
    progress: float


@dataclass(frozen=True)
class _OneHead:
    """A recording of which one head is seen."""

    recording: Recording
    layer: Layer
    head: int

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (self.layer,)

    @property
    def inputs(self) -> Any:
        return self.recording.inputs

    def __getitem__(self, which: tuple[str, int]) -> Weights:
        return self.recording[(*which, self.head)]


def profiled(recording: Recording, cancelled: Cancelled, **options: Any) -> Iterator[Piece]:
    """`regard.analysis.profiles` of a recording layer by layer, and head by head where layers are long.

    options: those of `profiles`. It ends early when `cancelled` says so.
    """
    parts = [(layer, step, head) for layer in recording.layers for step in layer.steps for head in _heads(layer)]
    sizes = [math.prod(layer.shape) // (1 if head is None else layer.shape[1]) for layer, _, head in parts]
    done = 0
    for (layer, step, head), size in zip(parts, sizes, strict=True):
        if cancelled():
            return
        TURNS.give_way()
        seen: Any = recording if head is None else _OneHead(recording, replace(layer, steps=(step,)), head)
        rows = profiles(seen, layers=escape(layer.name), step=step, **options)
        done += size
        yield Piece(tuple(row if head is None else row._replace(head=head) for row in rows), done / max(1, sum(sizes)))


def _heads(layer: Layer) -> tuple[int | None, ...]:
    """The heads one by one, or None for all of them together."""
    alone = len(layer.shape) == 4 and math.prod(layer.shape) > TOGETHER
    return tuple(range(layer.shape[1])) if alone else (None,)
