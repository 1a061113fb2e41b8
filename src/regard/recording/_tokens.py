"""Tokens of a recording: their texts, and which input of the model the queries and keys of a layer stand for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

Texts = dict[str, list[list[str]]]  # by the name of the input, then by sequence
REPLACEMENT = "\ufffd"  # what a tokenizer writes for bytes that are no whole character
MAX_TOKENS = 8  # tokens that are decoded together: a character has up to 4 bytes, a token may end the one before


def texts_of(ids: dict[str, Tensor], tokenizer: Any) -> Texts:
    """Text of every token. Where several tokens make one character, each is shown as its part: 旷 2/3."""

    @cache
    def decode(*tokens: int) -> str:
        return str(tokenizer.decode(list(tokens)))

    return {name: [_sequence_texts(row, decode) for row in tensor.tolist()] for name, tensor in ids.items()}


def _sequence_texts(tokens: list[int], decode: Any) -> list[str]:
    texts = [decode(token) for token in tokens]
    start = 0
    while start < len(texts):
        count = _tokens_in_character(tokens[start : start + MAX_TOKENS], decode) if REPLACEMENT in texts[start] else 1
        if count > 1:
            whole = decode(*tokens[start : start + count])
            texts[start : start + count] = [f"{whole} {part + 1}/{count}" for part in range(count)]
        start += count
    return texts


def _tokens_in_character(tokens: list[int], decode: Any) -> int:
    """Number of first tokens that make whole characters together; 1 if they never do."""
    counts = range(2, len(tokens) + 1)
    return next((count for count in counts if REPLACEMENT not in decode(*tokens[:count])), 1)


class ModelInputs(NamedTuple):
    """Token ids that a model read, by step and name of the input, and the tokenizer that knows their texts."""

    inputs: dict[int, dict[str, Tensor]]
    tokenizer: Any = None

    @property
    def tokens(self) -> dict[int, Texts]:
        """Texts of the tokens by step; empty without a tokenizer."""
        if self.tokenizer is None:
            return {}
        return {step: texts_of(ids, self.tokenizer) for step, ids in self.inputs.items()}


class TokenAxis(NamedTuple):
    """The queries or the keys of one layer in one step, as tokens that the model read."""

    layer: str  # the module's path in the model
    step: int
    length: int  # number of queries or keys
    cross: bool = False  # True if queries and keys come from two sequences
    keys: bool = True  # False: the queries

    @property
    def input_names(self) -> tuple[str, str]:
        """Hugging Face's names of the inputs that the axis may stand for, the likelier one first.

        A layer with "decoder" in its path reads the decoder's tokens, but for the keys of its cross attention.
        """
        decoder = "decoder" in self.layer and not (self.keys and self.cross)
        return ("decoder_input_ids", "input_ids") if decoder else ("input_ids", "decoder_input_ids")

    def ids(self, recording: Any) -> Tensor | None:
        """Token ids (batch, length), or None if the recording has none of this length."""
        inputs = getattr(recording, "inputs", {}).get(self.step, {})
        known = (inputs[name] for name in self.input_names if name in inputs)
        return next((ids for ids in known if ids.shape[-1] == self.length), None)

    def texts(self, recording: Any) -> list[list[str]] | None:
        """For each sequence a list of `length` texts, or None if the recording has none of this length."""
        tokens = (getattr(recording, "tokens", None) or {}).get(self.step, {})
        known = (tokens[name] for name in self.input_names if name in tokens)
        return next((rows for rows in known if all(len(row) == self.length for row in rows)), None)

    def rows(self, recording: Any) -> list[list[str]]:
        """For each sequence a list of `length` labels: texts, else ids, else no sequences."""
        rows = self.texts(recording)
        if rows is not None:
            return rows
        ids = self.ids(recording)
        return [] if ids is None else [[str(number) for number in row] for row in ids.tolist()]

    def labels(self, recording: Any, sequence: int) -> list[str]:
        """One label for each token of a sequence: its text, else its id, else ""."""
        rows = self.rows(recording)
        return rows[sequence] if sequence < len(rows) else [""] * self.length
