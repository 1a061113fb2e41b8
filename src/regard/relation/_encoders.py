"""What turns texts into states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from regard.errors import UnknownTextError


class Encoded(NamedTuple):
    """The states (texts, dim), and for each text the words that the encoder does not know and how many it has."""

    states: Tensor
    unknown: tuple[tuple[str, ...], ...]
    counts: tuple[int, ...]


@runtime_checkable
class Encoder(Protocol):
    """Anything with a name that encodes texts; one of your own will do."""

    name: str

    def encode(self, texts: Sequence[str]) -> Encoded: ...


def check_known(encoder: Encoder, encoded: Encoded, texts: Sequence[str]) -> None:
    """A text of which the encoder knows less than half gets no answer: it would look as sure as any other."""
    for text, unknown, count in zip(texts, encoded.unknown, encoded.counts, strict=True):
        if count == 0:
            raise UnknownTextError(f"{encoder.name} finds no word in {text!r} that says anything: write it out")
        if 2 * len(unknown) > count:
            raise UnknownTextError(
                f"{encoder.name} does not know {len(unknown)} of the {count} words of {text!r}: "
                f"{', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}. "
                "Name an encoder that reads this language, the same one for the passage and the questions"
            )
