"""Labels of weights: the texts of the queries and of the keys, as a recording knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Labels(NamedTuple):
    """A text for each query and for each key of one sequence; None where they are not known."""

    query: tuple[str, ...] | None = None
    key: tuple[str, ...] | None = None


class BatchLabels:
    """Labels of the sequences of a batch, read when somebody asks for them, and then remembered."""

    def __init__(self, count: int, read: Callable[[int], Labels]) -> None:
        self.count: int = count  # of sequences
        self._read = read
        self._known: dict[int, Labels] = {}

    def of(self, sequence: int) -> Labels:
        """The labels of one sequence."""
        if sequence not in self._known:
            self._known[sequence] = self._read(sequence)
        return self._known[sequence]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the texts themselves, not what they are read from."""
        return labels_of_batch, (tuple(self.of(sequence) for sequence in range(self.count)),)


def labels_of_batch(labels: tuple[Labels, ...]) -> BatchLabels:
    """Labels that are known for each sequence."""
    return BatchLabels(len(labels), labels.__getitem__)


class WeightLabels(NamedTuple):
    """The labels of some weights: those of their batch, and which sequence of it they are."""

    batch: BatchLabels
    sequence: int | None = None  # None: the first axis of the weights counts the sequences

    def of_shape(self, shape: tuple[int, ...]) -> Labels:
        """The labels of weights of this shape, if they are of one sequence; nothing is known of several at once."""
        if self.sequence is not None:
            return self.batch.of(self.sequence)
        return self.batch.of(0) if len(shape) == 2 or shape[0] == 1 else Labels()

    def at(self, axis: int, index: int) -> WeightLabels:
        """The labels of the weights at one index of a leading axis, which is dropped."""
        return self._replace(sequence=index) if axis == 0 and self.sequence is None else self
