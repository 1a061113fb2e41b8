"""Any Hugging Face encoder: the state of a text is the mean of its tokens' last hidden states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard import models
from regard.errors import ShapeError
from regard.relation._encoders import Encoded
from regard.relation._split import HAN
from regard.relation._unicode_script import script_of

BATCH = 32
KNOWN = {"minilm": "minilm (all-MiniLM-L6-v2, mean of the tokens)"}
LATIN = {"minilm"}  # has a token for many a Chinese character too, but hardly saw one when it learned


class TransformerEncoder:
    """h = the mean over the tokens t of a text of the model's last hidden state h_t."""

    def __init__(self, name: str) -> None:
        self.name = KNOWN.get(name, f"{name} (mean of the tokens)")
        self.reads = ("Latin", "") if name in LATIN else None
        self.tokenizer, model = models.load(name)
        # The half that reads; the half that writes would ask what to write.
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        if self.tokenizer.pad_token is None:  # any will do, nobody looks at it
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token

    def encode(self, texts: Sequence[str]) -> Encoded:
        words = [self._words(text) for text in texts]
        unknown = tuple(tuple(word for word, known in found if not known) for found in words)
        return Encoded(self._states(texts), unknown, tuple(len(found) for found in words))

    @torch.no_grad()
    def _states(self, texts: Sequence[str]) -> Tensor:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # texts of one length need little padding
        states: dict[int, Tensor] = {}
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            states |= dict(zip(some, self._means([texts[i] for i in some]), strict=True))
        return torch.stack([states[i] for i in range(len(texts))])

    def _means(self, texts: list[str]) -> Tensor:
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
        """The words of a text, as the tokenizer parts them, and whether it knows each."""
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        pieces: dict[int, list[int]] = {}
        for place, word in enumerate(found.word_ids()):
            if word is not None:
                pieces.setdefault(word, []).append(place)
        spans, ids, nothing = found["offset_mapping"], found["input_ids"], self.tokenizer.unk_token_id
        words = list[tuple[str, bool]]()
        for places in pieces.values():
            word = text[spans[places[0]][0] : spans[places[-1]][1]].strip()
            holes = nothing is not None and any(ids[place] == nothing for place in places)
            foreign = self.reads is not None and script_of([word]) not in self.reads
            words.append((word, not (holes or foreign or is_spelled(word, len(places)))))
        return words


def is_spelled(word: str, pieces: int) -> bool:
    """Whether a word falls into single letters, or into bytes: then its parts say nothing about it.

    >>> is_spelled("privet", 6), is_spelled("skipping", 3), is_spelled("旷课", 2), is_spelled("旷课", 6)
    (True, False, False, True)
    """
    letters = sum(letter.isalpha() for letter in word)
    if re.search(f"[{HAN}]", word):
        return pieces > letters + 1  # a character is a token of its own in many a Chinese vocabulary
    return letters >= 3 and 3 * pieces > 2 * letters
