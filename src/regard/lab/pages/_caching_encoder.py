"""Text encoders that stay loaded and cache the texts they have encoded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from threading import Lock

import torch
from torch import Tensor

from regard.relation import Encoded, Encoder, choose_encoder

MAX_TEXTS = 4096  # in the cache of one encoder
MODEL_LOCK = Lock()  # a model that is recorded must not run in another thread at the same time

Entry = tuple[Tensor, tuple[str, ...], int]  # hidden state, unknown words, number of words


class CachingEncoder:
    """An encoder that calls another one only for texts that are not in its cache."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.encoder = encoder
        self.cache: OrderedDict[str, Entry] = OrderedDict()
        self.lock = Lock()

    def encode(self, texts: Sequence[str]) -> Encoded:
        with self.lock:
            new = [text for text in dict.fromkeys(texts) if text not in self.cache]
            if new:
                with MODEL_LOCK:
                    encoded = self.encoder.encode(new)
                entries = zip(encoded.states, encoded.unknown, encoded.counts, strict=True)
                self.cache.update(zip(new, entries, strict=True))
            states, unknown, counts = zip(*(self.cache[text] for text in texts), strict=True)
            while len(self.cache) > MAX_TEXTS:
                self.cache.popitem(last=False)
        return Encoded(torch.stack(states), unknown, counts)


def encoder_for(name: str | None, texts: Sequence[str]) -> CachingEncoder:
    """The encoder of this name, or the one for the script of the texts."""
    return _caching(choose_encoder(name, texts))


@cache
def _caching(encoder: Encoder) -> CachingEncoder:
    return CachingEncoder(encoder)
