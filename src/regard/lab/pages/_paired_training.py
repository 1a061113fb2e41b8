"""Two translation models that learn side by side: one with Bahdanau's attention, one with a fixed vector instead.

One step of each in turn, in one thread: at any moment both have learned from the same sentences, equally often, and
neither had more of the machine. Nothing else differs: both have the same widths, the same seed and the same settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from regard import datasets
from regard.datasets import Pair, Pairs
from regard.seq2seq.decoding import Translation
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.run import Options
from regard.seq2seq.training import Trainer, split_pairs

MODELS = ("none", "bahdanau")  # the attention of each
EMBEDDING = 64  # width of a word
SHORTEST = 3  # words of a source
SETTINGS = {"batch_tokens": 1_500, "learning_rate": 5e-3, "warmup": 50, "smoothing": 0.0}  # of the training
LENGTHS = 6  # gaps between tested lengths, up to the longest trained one
BEYOND = 3  # tested lengths that are longer than any source in training
DRAWN, TESTED = 200, 24  # sources of each tested length: drawn, and kept of those that are not learned from
EVALUATIONS, MIN_STEPS = 12, 10  # tests during a training, and steps between two of them
ATTENDED = 3  # words of the source, those with the largest weights


@dataclass(frozen=True)
class Task:
    """A training task: its data, model width and length; the same task gives the same numbers with as many threads."""

    longest: int  # words of a source in training
    hidden: int  # width of the decoder's state, of an annotation and of the fixed vector
    steps: int
    pairs: int
    seed: int


class Sample(NamedTuple):
    """The first test sentence of a length, and both translations of it."""

    source: list[str]  # words
    target: str
    translations: list[str]  # one for each of MODELS
    tokens: list[str]  # of the translation with attention
    attended: list[list[tuple[int, float]]]  # for each of these tokens the words with the largest weights, best first


class Score(NamedTuple):
    """How both models translate sources of one length."""

    length: int
    exact_match: list[float]  # one for each of MODELS
    sample: Sample


class Result(NamedTuple):
    """A finished training."""

    losses: list[list[float]]  # (models, steps)
    scores: list[Score]
    seconds: float


def test_lengths(longest: int) -> list[int]:
    """Lengths of test sentences: up to the longest trained one, which is among them, and some beyond."""
    gap = max(1, round((longest - SHORTEST) / LENGTHS))
    return [*reversed(range(longest, SHORTEST - 1, -gap)), *range(longest + gap, longest + BEYOND * gap + 1, gap)]


@lru_cache(maxsize=4)
def task_data(longest: int, pairs: int, seed: int) -> tuple[Pairs, tuple[list[Pair], ...]]:
    """Pairs to learn from, and for each test length pairs whose source is not among them."""
    learned = datasets.numbers(pairs, words=(SHORTEST, longest), seed=seed)
    seen = {pair.source for pair in learned}
    drawn = (datasets.numbers(DRAWN, words=(length, length), seed=seed + length) for length in test_lengths(longest))
    return learned, tuple([pair for pair in group if pair.source not in seen][:TESTED] for group in drawn)


class PairedTraining:
    """A training in progress."""

    def __init__(self, task: Task) -> None:
        self.task = task
        learned, self.tests = task_data(task.longest, task.pairs, task.seed)
        trained, held_out = split_pairs(learned, None)
        options = Options(
            minutes=None, steps=task.steps, **SETTINGS, clip=1.0, patience=None, validate_every=None, seed=task.seed,
            vocabulary="auto", vocabulary_size=4_000, precision="float32",
        )  # fmt: skip
        # Without dropout, training draws no random numbers: those of other threads are not disturbed.
        models = [Seq2Seq(name, embedding=EMBEDDING, hidden=task.hidden, dropout=0.0) for name in MODELS]
        self.trainers: list[Trainer] = [Trainer(model, trained, held_out, options, None) for model in models]
        self.scores: dict[int, Score] = {}
        self.seconds: float = 0.0

    def events(self) -> Iterator[dict[str, Any]]:
        """Train: an event for each step of both models, and one for each length whenever they are tested.

        No event takes long, so that whoever listens can stop at any of them.
        """
        began = time.monotonic()
        every = max(MIN_STEPS, self.task.steps // EVALUATIONS)
        for step, _ in enumerate(zip(*(trainer.steps() for trainer in self.trainers), strict=True), 1):
            self.seconds = time.monotonic() - began
            yield {"step": step, "seconds": self.seconds, "losses": [run.losses[-1] for run in self._runs]}
            if step % every == 0 and step < self.task.steps:
                yield from self._tests(step)
        for trainer in self.trainers:
            trainer.finish()
        yield from self._tests(self.task.steps)
        self.seconds = time.monotonic() - began
        yield {"done": True, "step": self.task.steps, "seconds": self.seconds}

    @property
    def result(self) -> Result:
        """Losses and scores of both models so far."""
        return Result([run.losses for run in self._runs], list(self.scores.values()), self.seconds)

    @property
    def _runs(self) -> list[Any]:
        return [trainer.run for trainer in self.trainers]

    def _tests(self, step: int) -> Iterator[dict[str, Any]]:
        for length, pairs in zip(test_lengths(self.task.longest), self.tests, strict=True):
            score = self._score(length, pairs)
            self.scores[length] = score
            yield {"step": step, "seconds": self.seconds, **score_json(score)}

    def _score(self, length: int, pairs: list[Pair]) -> Score:
        sources = [pair.source for pair in pairs]
        found = [trainer.model.translate(sources, beam=1) for trainer in self.trainers]
        exact = [
            sum(one.text == pair.target for one, pair in zip(group, pairs, strict=True)) / len(pairs) for group in found
        ]
        first = [group[0] for group in found]
        attentive = first[MODELS.index("bahdanau")]
        sample = Sample(
            sources[0].split(),
            pairs[0].target,
            [one.text for one in first],
            list(attentive.tokens),
            attended(attentive),
        )
        return Score(length, exact, sample)


def attended(translation: Translation) -> list[list[tuple[int, float]]]:
    """For each token the places of the source with the largest weights, best first, and these weights."""
    if translation.weights is None or not translation.tokens:
        return []
    top = translation.weights.top(min(ATTENDED, len(translation.source_tokens)))
    return [
        list(zip(places, weights, strict=True))
        for places, weights in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]


def score_json(score: Score) -> dict[str, Any]:
    """A score as the page reads it."""
    return {**score._asdict(), "sample": score.sample._asdict()}
