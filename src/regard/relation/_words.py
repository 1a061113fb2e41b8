"""Chinese: the state of a text is the mean of the vectors of its words."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard import models
from regard.relation._encoders import Encoded
from regard.relation._unicode_script import script_of


class WordAverage:
    """h = the mean of w / |w| over the words w of a text. Words of every length of vector count alike."""

    def __init__(self) -> None:
        self.words = models.words()
        self.name = f"words ({len(self.words):,} Chinese word vectors, averaged)"

    def encode(self, texts: Sequence[str]) -> Encoded:
        readings = [self._read(text) for text in texts]
        states = torch.stack([self._mean(reading.known) for reading in readings])
        unknown = tuple(reading.unknown for reading in readings)
        return Encoded(states, unknown, tuple(len(r.known) + len(r.unknown) for r in readings))

    def _read(self, text: str) -> models.Reading:
        """Among Chinese words NBA is known; a whole sentence of English is not, though "Why" was the name of a song."""
        reading = self.words.read(text)
        if script_of([text]) in ("Chinese", ""):
            return reading
        return models.Reading((), reading.known + reading.unknown)

    def _mean(self, words: Sequence[str]) -> Tensor:
        if not words:
            return torch.zeros(self.words.vectors.shape[1])
        vectors = torch.from_numpy(np.stack([self.words[word] for word in words]))
        return torch.nn.functional.normalize(vectors, dim=-1).mean(0)
