"""Encoders that stay loaded, and that read no text twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from threading import Lock

import torch
from torch import Tensor

from regard.relation import Encoded, Encoder
from regard.relation._choose import choose

MOST = 4096  # texts
MODEL = Lock()  # one at a time: a model that is recorded while another thread runs it would tell of both

Read = tuple[Tensor, tuple[str, ...], int]


class Remembering:
    """An encoder in front of another: a text that was read before is known."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self.encoder = encoder
        self.known: OrderedDict[str, Read] = OrderedDict()
        self.lock = Lock()

    def encode(self, texts: Sequence[str]) -> Encoded:
        with self.lock:
            new = [text for text in dict.fromkeys(texts) if text not in self.known]
            if new:
                with MODEL:
                    found = self.encoder.encode(new)
                self.known.update(zip(new, zip(found.states, found.unknown, found.counts, strict=True), strict=True))
            states, unknown, counts = zip(*(self.known[text] for text in texts), strict=True)
            while len(self.known) > MOST:
                self.known.popitem(last=False)
        return Encoded(torch.stack(states), unknown, counts)


def encoder_for(name: str | None, texts: Sequence[str]) -> Remembering:
    """The one that is named, or the one that reads the writing of the texts."""
    return _remembering(choose(name, texts))


@cache
def _remembering(encoder: Encoder) -> Remembering:
    return Remembering(encoder)
