"""Attention between words: the weights of a translation or of a recorded encoder-decoder, tokens merged into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.analysis._layer_weights import Patterns, Recorded, one_step
from regard.analysis._word_pieces import Words, merge
from regard.errors import ChoiceError, DtypeError, PositionError, ShapeError
from regard.weights import Weights

VOCABULARY = 4096  # tokens of a tokenizer that are looked at for its marks
SHIFT = 1  # a decoder reads what it wrote one position before: row i is what it looked at for token i + 1 of its input


class Reading(NamedTuple):
    """How weights are read as attention between words; see `analysis.align`."""

    step: int | None = None
    shift: int | None = None
    tokens: Sequence[str] | None = None
    source_tokens: Sequence[str] | None = None
    tokenizer: Any = None
    languages: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, eq=False)
class Sentence:
    """A text and its translation, in words, with what the layers attended to."""

    source: Words
    target: Words  # its tokens are the rows of the weights
    layers: tuple[str, ...]
    load: Callable[[str], Weights | Tensor]  # weights of a layer, (tokens, source tokens) with or without heads before

    def word_weights(self, layer: str) -> Float[Tensor, "heads target source"]:
        """Weights between words: the sum over the tokens of a source word, the mean over those of a target word."""
        weights = self.load(layer)
        kind = {"dtype": weights.dtype, "device": weights.device}
        sums = (weights @ self.source.shares.to(**kind)).detach().to("cpu", torch.float32)
        rows = self.target.shares / self.target.shares.sum(0).clamp_min(torch.finfo(torch.float32).tiny)
        words = rows.mT @ sums
        return words if words.dim() == 3 else words.unsqueeze(0)


def sentences_of(attended: Any, layers: Patterns, reading: Reading, row: int | None) -> list[Sentence]:
    """The sentences of a recording, of a translation or of a list of translations; row: one sequence of a batch."""
    if isinstance(attended, Recorded):
        return _of_recording(attended, layers, reading, row)
    if hasattr(attended, "weights"):
        return [_of_translation(attended, reading)]
    if isinstance(attended, Sequence) and attended and all(hasattr(one, "weights") for one in attended):
        return [_of_translation(one, reading) for one in attended]
    raise DtypeError(
        "align takes a recording of an encoder-decoder, or a translation with weights, tokens and source_tokens; "
        f"{type(attended).__name__} came"
    )


# Translations


def _of_translation(attended: Any, reading: Reading) -> Sentence:
    weights = attended.weights
    if weights is None:
        raise ChoiceError("this translation has no weights: its model has no attention, so nothing can be aligned")
    if not isinstance(weights, Weights):
        weights = torch.as_tensor(weights)
    if weights.ndim == 4 and weights.shape[0] == 1:
        weights = weights.select(batch=0) if isinstance(weights, Weights) else weights[0]
    if weights.ndim not in {2, 3}:
        shape = tuple(weights.shape)
        raise ShapeError(f"weights of a translation are (tokens, source tokens) or (heads, ., .); {shape} came")
    tokens = [str(token) for token in (attended.tokens if reading.tokens is None else reading.tokens)]
    given = attended.source_tokens if reading.source_tokens is None else reading.source_tokens
    n, m = weights.shape[-2:]
    _check_count("tokens", tokens, n, weights.shape)
    _check_count("source_tokens", given, m, weights.shape)
    source = merge([str(token) for token in given], reading.languages[0])
    target = _rows(merge(tokens, reading.languages[1]), reading.shift or 0)
    return Sentence(source, target, ("weights",), lambda _: weights)


def _check_count(name: str, tokens: Sequence[Any], count: int, shape: Sequence[int]) -> None:
    if len(tokens) != count:
        raise ShapeError(f"{name} must have one token for each of {count}, {len(tokens)} came (weights {tuple(shape)})")


def _rows(words: Words, shift: int) -> Words:
    """Words whose tokens are rows of the weights: row i belongs to token i + shift. Earlier tokens have no row."""
    if shift == 0:
        return words
    shares = torch.zeros_like(words.shares)
    shares[: len(shares) - shift] = words.shares[shift:]
    with_rows = [i for i, some in enumerate((shares > 0).any(0).tolist()) if some]
    return Words(tuple(words.texts[i] for i in with_rows), shares[:, with_rows])


# Recordings


def _of_recording(recording: Any, layers: Patterns, reading: Reading, row: int | None) -> list[Sentence]:
    chosen = one_step(recording, layers, reading.step)
    crossing = [(layer, step) for layer, step in chosen.calls if layer.cross]
    if not crossing:
        names = ", ".join(layer.name for layer, _ in chosen.calls[:5])
        raise ChoiceError(
            f"none of these layers attends from a translation to its source ({names}): align needs the cross "
            "attention of an encoder-decoder"
        )
    first, step = crossing[0]
    batch = first.shape[0] if len(first.shape) > 2 else 1
    if row is not None and not -batch <= row < batch:
        raise PositionError(f"there is no row {row} in a batch of {batch}, counted from 0")
    rows = range(batch) if row is None else [row % batch]
    if batch > 1 and row is None and (reading.tokens or reading.source_tokens):
        raise ChoiceError("tokens= and source_tokens= are those of one sequence: say which with align(..., row=)")
    names = tuple(layer.name for layer, _ in crossing)
    return [_recorded_sentence(recording, names, step, number, reading) for number in rows]


def _recorded_sentence(recording: Any, names: tuple[str, ...], step: int, row: int, reading: Reading) -> Sentence:
    def load(name: str) -> Weights:
        weights = recording[name, step]
        return weights.select(batch=row) if weights.ndim > 2 else weights

    weights = load(names[0])
    n, m = weights.shape[-2:]
    source = _source_words(recording, step, row, m, reading)
    seen = weights.received().reshape(-1, m).sum(0).cpu() > 0
    shown = [i for i, some in enumerate((source.shares[seen] > 0).any(0).tolist()) if some]  # padding is hidden
    source = Words(tuple(source.texts[i] for i in shown), source.shares[:, shown])
    return Sentence(source, _target_words(recording, step, row, n, reading), names, load)


def _source_words(recording: Any, step: int, row: int, count: int, reading: Reading) -> Words:
    if reading.source_tokens is not None:
        _check_count("source_tokens", reading.source_tokens, count, (count,))
        return merge([str(token) for token in reading.source_tokens], reading.languages[0], cut_punctuation=True)
    known = _known_tokens(recording, step, row, "input_ids", count, reading)
    if known is None:  # frames of a sound, patches of an image
        return merge([str(position) for position in range(count)], special=())
    return known.words(reading.languages[0])


def _target_words(recording: Any, step: int, row: int, count: int, reading: Reading) -> Words:
    if reading.tokens is not None:
        _check_count("tokens", reading.tokens, count, (count,))
        words = merge([str(token) for token in reading.tokens], reading.languages[1], cut_punctuation=True)
        return _rows(words, reading.shift or 0)
    known = _known_tokens(recording, step, row, "decoder_input_ids", count, reading)
    if known is None:
        raise ChoiceError(
            f"the recording has no decoder_input_ids for the {count} rows of its weights: call the model with them, or "
            "name with tokens= what each row produced"
        )
    return _rows(known.words(reading.languages[1]), SHIFT if reading.shift is None else reading.shift)


class KnownTokens(NamedTuple):
    """Tokens that a model read, the positions of special ones if they are known, and more tokens of the tokenizer."""

    tokens: list[str]
    special: set[int] | None
    vocabulary: Iterable[str] = ()

    def words(self, language: str | None) -> Words:
        return merge(self.tokens, language, special=self.special, marked=self.vocabulary, cut_punctuation=True)


def _known_tokens(recording: Any, step: int, row: int, name: str, count: int, reading: Reading) -> KnownTokens | None:
    """Tokens of one input of the model; None if the recording has none that are as many as its rows or columns."""
    ids = recording.inputs.get(step, {}).get(name)
    if ids is None or ids.shape[-1] != count:
        return None
    numbers = ids[row % len(ids)].tolist()
    tokenizer: Any = getattr(recording, "tokenizer", None) if reading.tokenizer is None else reading.tokenizer
    if hasattr(tokenizer, "convert_ids_to_tokens"):  # with the marks of words, which decoded texts may lack
        special = set(getattr(tokenizer, "all_special_ids", ())) - {getattr(tokenizer, "unk_token_id", None)}
        tokens = [str(token) for token in tokenizer.convert_ids_to_tokens(numbers)]
        vocabulary = islice(tokenizer.get_vocab(), VOCABULARY) if hasattr(tokenizer, "get_vocab") else ()
        return KnownTokens(tokens, {i for i, number in enumerate(numbers) if number in special}, vocabulary)
    texts = recording.tokens.get(step, {}).get(name)
    if texts is None:
        return KnownTokens([str(number) for number in numbers], set())
    return KnownTokens(list(texts[row % len(texts)]), None)
