"""What is exported: one matrix of a recording."""

from __future__ import annotations

from typing import NamedTuple

from regard.recording import Layer as RecordedLayer
from regard.recording import Recording
from regard.weights import Weights


class Chosen(NamedTuple):
    """One matrix of a recording."""

    recording: Recording
    layer: RecordedLayer
    step: int
    head: int | None  # as the model counts them; None where the layer has none
    sequence: int
    weights: Weights  # of this head
    at: tuple[int, ...]  # the place of the sequence in them

    @property
    def shape(self) -> tuple[int, int]:
        return self.weights.shape[-2], self.weights.shape[-1]

    def tokens(self, *, keys: bool) -> list[str] | None:
        """Texts or ids of what the keys or the queries stand for; None if the recording does not know."""
        from regard.analysis._layer_weights import Matrix, texts

        count = self.shape[1 if keys else 0]
        matrix = Matrix(self.layer.name, self.step, self.weights, self.layer.cross)
        found = texts(self.recording, matrix, count, self.sequence, keys=keys)
        return found if any(found) else None
