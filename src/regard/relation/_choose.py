"""Which encoder is taken: the one that is named, or the one that reads the writing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from regard.errors import ChoiceError, DtypeError, UnknownTextError
from regard.relation._encoders import Encoder
from regard.relation._transformer import TransformerEncoder
from regard.relation._unicode_script import script_of
from regard.relation._words import WordAverage

DEFAULTS = {"Latin": "minilm", "Chinese": "words"}


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
    return WordAverage() if name == "words" else TransformerEncoder(name)
