"""What turns texts into states, and which of them is taken when nobody says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from regard.errors import ChoiceError, DtypeError, UnknownTextError
from regard.relation._script import script_of

DEFAULTS = {"Latin": "minilm", "Chinese": "words"}


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


def choose(encoder: str | Path | Encoder | None, texts: Sequence[str]) -> Encoder:
    """The encoder that was named, or the one that reads the writing of the texts."""
    if encoder is None:
        encoder = _default(texts)
    if isinstance(encoder, str | Path):
        return _open(str(encoder))
    if isinstance(encoder, Encoder):
        return encoder
    raise DtypeError(f"encoder is a name, a folder, or an object with name and encode(texts), not {encoder!r}")


def _default(texts: Sequence[str]) -> str:
    script = script_of(texts)
    if script in DEFAULTS:
        return DEFAULTS[script]
    came = f"most letters here are {script}" if script else "there are no letters here"
    raise UnknownTextError(
        f"the default encoders read English (minilm) and Chinese (words), and {came}: {texts[0]!r}; "
        "name one that reads it, encoder= a folder or a name on the Hugging Face hub"
    )


@lru_cache(maxsize=4)  # a model stays loaded between questions
def _open(name: str) -> Encoder:
    if not name:
        raise ChoiceError("encoder needs a name or a folder, and came empty")
    if name == "words":
        from regard.relation._words import WordAverage

        return WordAverage()
    from regard.relation._transformer import TransformerEncoder

    return TransformerEncoder(name)


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
