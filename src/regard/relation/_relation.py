"""The result of `relate`: weights with the texts of their rows and columns."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.display.labels import Labels, WeightLabels, labels_of_batch
from regard.errors import ChoiceError
from regard.weights import Weights


class Related(NamedTuple):
    """A segment, its index in the passage from 0, and its weight."""

    place: int
    segment: str
    weight: float


class Relation(Weights):
    """Lazy weights (questions, segments), or (heads, questions, segments), with the texts of rows and columns.

    It has every method of `Weights`. weights: the same matrix without texts. value: states of the segments,
    (segments, dim). encoder: name of the encoder that computed them. unknown: words that the encoder does not know, by
    text.
    """

    __slots__ = ("encoder", "heads", "questions", "segments", "unknown", "value", "weights")

    def __init__(
        self,
        weights: Weights,
        value: Float[Tensor, "segments dim"],
        segments: tuple[str, ...],
        questions: tuple[str, ...],
        encoder: str,
        unknown: dict[str, tuple[str, ...]],
        heads: tuple[str, ...] = (),
    ) -> None:
        spec = weights.spec
        super().__init__(weights.query, weights.key, spec.score, spec.mask, spec.normaliser)
        self._labels = WeightLabels(labels_of_batch((Labels(questions, segments),)), 0)
        self.weights: Weights = weights
        self.value: Tensor = value
        self.segments: tuple[str, ...] = segments
        self.questions: tuple[str, ...] = questions
        self.heads: tuple[str, ...] = heads
        self.encoder: str = encoder
        self.unknown: dict[str, tuple[str, ...]] = unknown

    @property
    def output(self) -> Float[Tensor, "... questions dim"]:
        """Pooled states of the segments for each question: weights @ value, (questions, dim)."""
        return self.weights @ self.value

    def ranking(self, question: int = 0, head: int = 0) -> list[Related]:
        """Segments by weight for a question, largest first; equal ones in the order of the passage."""
        row = self.row(question, head)
        order = sorted(range(len(row)), key=lambda place: -row[place])
        return [Related(place, self.segments[place], row[place]) for place in order]

    def rank(self, segment: int, question: int = 0, head: int = 0) -> int:
        """Rank of a segment (counted from 0) for a question: 1 is the largest weight."""
        if not 0 <= segment < len(self.segments):
            raise ChoiceError(f"there are {len(self.segments)} segments, counted from 0: there is no segment {segment}")
        return [related.place for related in self.ranking(question, head)].index(segment) + 1

    def row(self, question: int = 0, head: int = 0) -> list[float]:
        """The weights of one question, one for each segment."""
        if not 0 <= question < len(self.questions):
            raise ChoiceError(f"there are {len(self.questions)} questions, counted from 0: there is no {question}")
        if not 0 <= head < max(1, len(self.heads)):
            raise ChoiceError(f"there are {max(1, len(self.heads))} heads, counted from 0: there is no {head}")
        return self.weights[(head, question) if self.heads else question].tolist()

    def __repr__(self) -> str:
        heads = f"{len(self.heads)} heads, " if self.heads else ""
        return f"Relation({heads}{len(self.questions)} questions x {len(self.segments)} segments, {self.encoder})"
