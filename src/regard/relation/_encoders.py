"""Encoders that turn texts into states: Hugging Face models, averaged word vectors, and the choice between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard import models
from regard.errors import ChoiceError, DtypeError, ShapeError, UnknownTextError
from regard.relation._split import HAN
from regard.relation._unicode_script import script_of

DEFAULTS = {"Latin": "minilm", "Chinese": "words"}  # encoder by the script of the texts
BATCH = 32  # texts that a transformer encodes at a time
FULL_NAMES = {"minilm": "minilm (all-MiniLM-L6-v2, mean of the tokens)"}
LATIN_ONLY = {"minilm"}  # has tokens for many Chinese characters, but was hardly trained on them


class Encoded(NamedTuple):
    """States of texts, and how well the encoder knows their words."""

    states: Float[Tensor, "texts dim"]
    unknown: tuple[tuple[str, ...], ...]  # for each text the words that the encoder does not know
    counts: tuple[int, ...]  # for each text the number of its words


@runtime_checkable
class Encoder(Protocol):
    """An encoder of texts: any object with a `name` and an `encode` method.

    >>> import torch
    >>> class Lengths:
    ...     name = "lengths"
    ...     def encode(self, texts):
    ...         states = torch.tensor([[1.0, len(text)] for text in texts])
    ...         return Encoded(states, ((),) * len(texts), (1,) * len(texts))
    >>> isinstance(Lengths(), Encoder)
    True
    """

    name: str

    def encode(self, texts: Sequence[str]) -> Encoded:
        """States of the texts, (texts, dim), and their unknown words."""
        ...


def check_known(encoder: Encoder, encoded: Encoded, texts: Sequence[str]) -> None:
    """Refuse texts of which the encoder does not know half the words: weights would look as certain as any others."""
    for text, unknown, count in zip(texts, encoded.unknown, encoded.counts, strict=True):
        if count == 0:
            raise UnknownTextError(f"{encoder.name} finds no word in {text!r} that says anything: write it out")
        if 2 * len(unknown) > count:
            raise UnknownTextError(
                f"{encoder.name} does not know {len(unknown)} of the {count} words of {text!r}: "
                f"{', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}. "
                "Name an encoder that reads this language, the same one for the passage and the questions"
            )


# Which encoder is used


def choose_encoder(encoder: str | Path | Encoder | None, texts: Sequence[str]) -> Encoder:
    """The encoder itself, by its name or folder, or for None the default for the script of the texts."""
    if encoder is None:
        encoder = _default_name(texts)
    if isinstance(encoder, str | Path):
        return _load_encoder(str(encoder))
    if isinstance(encoder, Encoder):
        return encoder
    raise DtypeError(f"encoder is a name, a folder, or an object with name and encode(texts), not {encoder!r}")


def _default_name(texts: Sequence[str]) -> str:
    script = script_of(texts)
    if script in DEFAULTS:
        return DEFAULTS[script]
    reason = f"most letters here are {script}" if script else "there are no letters here"
    raise UnknownTextError(
        f"the default encoders read English (minilm) and Chinese (words), and {reason}: {texts[0]!r}; "
        "name one that reads it, encoder= a folder or a name on the Hugging Face hub"
    )


@lru_cache(maxsize=4)  # a model stays loaded between calls
def _load_encoder(name: str) -> Encoder:
    if not name:
        raise ChoiceError("encoder needs a name or a folder, and came empty")
    return WordAverage() if name == "words" else TransformerEncoder(name)


# Transformers


class TransformerEncoder:
    """A Hugging Face encoder: the state of a text is the mean of the last hidden states of its tokens."""

    def __init__(self, name: str) -> None:
        self.name = FULL_NAMES.get(name, f"{name} (mean of the tokens)")
        self.reads = ("Latin", "") if name in LATIN_ONLY else None
        self.tokenizer, model = models.load(name)
        # Of an encoder-decoder only the encoder: the decoder would need tokens to begin with.
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        if self.tokenizer.pad_token is None:  # any token will do, since it is masked
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token

    def encode(self, texts: Sequence[str]) -> Encoded:
        words = [self._words(text) for text in texts]
        unknown = tuple(tuple(word for word, known in pairs if not known) for pairs in words)
        return Encoded(self._states(texts), unknown, tuple(len(pairs) for pairs in words))

    @torch.no_grad()
    def _states(self, texts: Sequence[str]) -> Float[Tensor, "texts dim"]:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # texts of similar length need little padding
        states: dict[int, Tensor] = {}
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            states |= dict(zip(batch, self._means([texts[i] for i in batch]), strict=True))
        return torch.stack([states[i] for i in range(len(texts))])

    def _means(self, texts: list[str]) -> Float[Tensor, "texts dim"]:
        """Means of the last hidden states over the tokens of each text."""
        tokens = self.tokenizer(texts, padding=True, return_tensors="pt")
        self._check_length(texts, tokens)
        inputs = {name: tokens[name] for name in ("input_ids", "attention_mask")}
        hidden = self.model(**inputs).last_hidden_state.float()  # (texts, tokens, dim)
        seen = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return (hidden * seen).sum(-2) / seen.sum(-2).clamp(min=1)

    def _check_length(self, texts: list[str], tokens: Any) -> None:
        most = models.longest(self.tokenizer, self.model)
        for text, length in zip(texts, tokens["attention_mask"].sum(-1).tolist(), strict=True):
            if length > most:
                raise ShapeError(
                    f"{self.name} reads {most} tokens at a time, and this text has {length}: "
                    f"{text[:40]!r}...; cut it into shorter segments"
                )

    def _words(self, text: str) -> list[tuple[str, bool]]:
        """The words of a text, as the tokenizer splits them, each with True if the model knows it."""
        tokens = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        pieces: dict[int, list[int]] = {}
        for place, word in enumerate(tokens.word_ids()):
            if word is not None:
                pieces.setdefault(word, []).append(place)
        spans, ids, unknown = tokens["offset_mapping"], tokens["input_ids"], self.tokenizer.unk_token_id
        words = list[tuple[str, bool]]()
        for places in pieces.values():
            word = text[spans[places[0]][0] : spans[places[-1]][1]].strip()
            holes = unknown is not None and any(ids[place] == unknown for place in places)
            foreign = self.reads is not None and script_of([word]) not in self.reads
            words.append((word, not (holes or foreign or is_spelled(word, len(places)))))
        return words


def is_spelled(word: str, pieces: int) -> bool:
    """True if a tokenizer splits a word into single letters or bytes, which carry no meaning.

    >>> is_spelled("privet", 6), is_spelled("skipping", 3), is_spelled("旷课", 2), is_spelled("旷课", 6)
    (True, False, False, True)
    """
    letters = sum(letter.isalpha() for letter in word)
    if re.search(f"[{HAN}]", word):
        return pieces > letters + 1  # a character is a token of its own in many a Chinese vocabulary
    return letters >= 3 and 3 * pieces > 2 * letters


# Chinese word vectors


class WordAverage:
    """Averaged word vectors for Chinese: the state of a text is the mean of w / |w| over the vectors w of its words."""

    def __init__(self) -> None:
        self.words = models.words()
        self.name = f"words ({len(self.words):,} Chinese word vectors, averaged)"

    def encode(self, texts: Sequence[str]) -> Encoded:
        readings = [self._read(text) for text in texts]
        states = torch.stack([self._mean(reading.known) for reading in readings])
        unknown = tuple(reading.unknown for reading in readings)
        return Encoded(states, unknown, tuple(len(r.known) + len(r.unknown) for r in readings))

    def _read(self, text: str) -> models.Reading:
        """Words of a text, all of them unknown if it is not Chinese: "Why" has a vector, as the name of a song."""
        reading = self.words.read(text)
        if script_of([text]) in ("Chinese", ""):
            return reading
        return models.Reading((), reading.known + reading.unknown)

    def _mean(self, words: Sequence[str]) -> Float[Tensor, " dim"]:
        if not words:
            return torch.zeros(self.words.vectors.shape[1])
        vectors = torch.from_numpy(np.stack([self.words[word] for word in words]))
        return torch.nn.functional.normalize(vectors, dim=-1).mean(0)
