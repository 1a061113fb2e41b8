"""Batches of sentences of similar length: hardly any padding, in an order that a seed decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.seq2seq.vocabulary import END, PAD, START, Vocabularies

PURE_SHARE = 4  # a batch of 1 / 4 of its size may end where the source length changes, so that it has no padding


class Batch(NamedTuple):
    """Sentences with padding behind them; `lengths` is None if no source has any."""

    source: Int[Tensor, "batch source"]
    lengths: Int[Tensor, " batch"] | None
    inputs: Int[Tensor, "batch target"]  # <s> a b c
    outputs: Int[Tensor, "batch target"]  # a b c </s>


class Sentences:
    """Pairs of sentences as numbers, cut into batches of about `batch_tokens` target tokens."""

    def __init__(self, encoded: Sequence[tuple[list[int], list[int]]], batch_tokens: int) -> None:
        self.encoded: Sequence[tuple[list[int], list[int]]] = encoded
        self.batch_tokens: int = batch_tokens
        self._lengths = np.array([(len(s), len(t) + 1) for s, t in encoded], dtype=np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self.encoded)

    def order(self, seed: int | None) -> list[np.ndarray]:
        """The pairs of each batch. A seed shuffles batches, and pairs of equal lengths; None keeps a fixed order."""
        random = np.random.default_rng(0 if seed is None else seed)
        ties = np.zeros(len(self)) if seed is None else random.random(len(self))
        ordered = np.lexsort((ties, self._lengths[:, 1], self._lengths[:, 0]))
        batches = self._cut(ordered)
        if seed is not None:
            random.shuffle(batches)  # pyright: ignore[reportArgumentType]
        return batches

    def _cut(self, ordered: np.ndarray) -> list[np.ndarray]:
        batches: list[np.ndarray] = []
        first, longest = 0, 0
        lengths = self._lengths[ordered].tolist()
        for place, (source, target) in enumerate(lengths):
            size = max(longest, source, target)
            full = (place + 1 - first) * size > self.batch_tokens
            changed = place > first and source != lengths[place - 1][0]
            pure = changed and (place - first) * longest * PURE_SHARE >= self.batch_tokens
            if place > first and (full or pure):
                batches.append(ordered[first:place])
                first, size = place, max(source, target)
            longest = size
        return [*batches, ordered[first:]] if len(ordered) else []

    def batch(self, pairs: np.ndarray) -> Batch:
        """The tensors of some pairs."""
        sources, targets = zip(*(self.encoded[i] for i in pairs), strict=True)
        source, lengths = padded(sources)
        inputs, _ = padded([[START, *target] for target in targets])
        outputs, _ = padded([[*target, END] for target in targets])
        return Batch(source, lengths, inputs, outputs)


def encode_pairs(pairs: Sequence[Sequence[Any]], vocabularies: Vocabularies) -> list[tuple[list[int], list[int]]]:
    """Numbers of both sides of each pair."""
    sources = vocabularies.source.encode_all(source for source, *_ in pairs)
    targets = vocabularies.target.encode_all(target for _, target, *_ in pairs)
    return [(source.ids, target.ids) for source, target in zip(sources, targets, strict=True)]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "batch longest"], Int[Tensor, " batch"] | None]:
    """Rows of numbers as one tensor, and the length of each; None if all are equally long."""
    lengths = [len(row) for row in rows]
    table = np.full((len(rows), max(lengths)), PAD, dtype=np.int64)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return torch.from_numpy(table), None if min(lengths) == max(lengths) else torch.tensor(lengths)


def epochs(sentences: Sentences, seed: int, first: int) -> Iterator[tuple[int, Batch]]:
    """Batches from step `first` on, with the number of each: those of one epoch after another, without an end."""
    step = epoch = 0
    while True:
        order = sentences.order(hash_seed(seed, epoch))
        if step + len(order) > first:
            for number, pairs in enumerate(order, start=step):
                if number >= first:
                    yield number, sentences.batch(pairs)
        step += len(order)
        epoch += 1


def hash_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch."""
    return int(np.random.SeedSequence((seed, epoch)).generate_state(1)[0])
