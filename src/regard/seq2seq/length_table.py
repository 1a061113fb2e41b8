"""The length table: how well models with and without attention translate sources of 1-10, 11-20, ... 51-60 words.

`read` gives the table that comes with regard. `make` trains one cell of it anew: one kind of model, on one kind of
data, with sources up to a length.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.datasets import Pairs, joined, numbers
from regard.errors import ChoiceError, FormatError
from regard.seq2seq import checkpoint
from regard.seq2seq.evaluation import LengthRow, evaluate
from regard.seq2seq.model import Seq2Seq, Transformer, TranslationModel
from regard.seq2seq.run import Run
from regard.seq2seq.training import Report, train

TABLE = Path(__file__).with_suffix(".json")  # comes with regard
FORMAT, VERSION = "regard-length-table", 1
BINS = tuple((low, low + 9) for low in range(1, 60, 10))  # words of a source: 1-10 to 51-60
MODELS = ("gru", "lstm", "bahdanau", "luong", "local", "transformer")  # the first two are without attention
SEED = 0
TEST_SEED = 1_000_000  # and the numbers behind it; training has `SEED`
DRAWN = 2_000  # numbers that are drawn at a time, of which those of the test side are kept
DIGITS = {"exact_match": 4, "bleu": 2, "chrf": 2, "alignment_error_rate": 4}  # that are stored


class Place(NamedTuple):
    """Where a cell stands in the table."""

    data: str  # "numbers", English number words to Chinese numerals; "en-fr", sentences of Tatoeba joined to long texts
    trained_words: int  # of the longest source in training
    model: str  # one of `MODELS`

    def __str__(self) -> str:
        return f"{self.data} up to {self.trained_words} words, {self.model}"

    @property
    def folder(self) -> str:
        """A name for the folder of its run."""
        return "-".join(map(str, self))


class Cell(NamedTuple):
    """One model's quality by length, and how it was made."""

    data: str
    trained_words: int
    model: str
    rows: tuple[LengthRow, ...]  # for sources of 1-10, 11-20, ... 51-60 words that the model has never seen
    seed: int
    minutes: float  # of one processor's time in training
    steps: int
    threads: int
    versions: dict[str, str]

    @property
    def place(self) -> Place:
        """Where it stands in the table."""
        return Place(self.data, self.trained_words, self.model)


# The most important ones first, since this is the order in which they are made.
PLACES = tuple(
    Place(data, words, model)
    for data, words in (("numbers", 60), ("numbers", 30), ("en-fr", 60))
    for model in ("bahdanau", "gru", "transformer", "luong", "lstm", "local")
)


# The table as a file


def read(path: str | Path = TABLE) -> tuple[Cell, ...]:
    """The cells of a table, by default of the one that comes with regard; some may be missing, see `missing`.

    >>> [row.words for row in read()[0].rows]
    ['1-10', '11-20', '21-30', '31-40', '41-50', '51-60']
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        head = content["format"], content["version"]
        cells = tuple(_cell(values) for values in content["cells"]) if head == (FORMAT, VERSION) else ()
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: is no length table, or is damaged: {error!r}") from error
    if head != (FORMAT, VERSION):
        raise FormatError(f"{path}: is {head[0]} of version {head[1]}, and this regard reads {FORMAT} {VERSION}")
    return cells


def missing(cells: Sequence[Cell]) -> tuple[Place, ...]:
    """The cells that a table does not have yet."""
    found = {cell.place for cell in cells}
    return tuple(place for place in PLACES if place not in found)


def write(path: str | Path, cells: Sequence[Cell]) -> None:
    """Write a table, its cells in their usual order."""
    ordered = sorted(cells, key=lambda cell: PLACES.index(cell.place))
    checkpoint.write_json(
        Path(path), {"format": FORMAT, "version": VERSION, "cells": [_values(cell) for cell in ordered]}
    )


def _cell(values: dict[str, Any]) -> Cell:
    return Cell(**{**values, "rows": tuple(_row(row) for row in values["rows"])})


def _row(values: dict[str, Any]) -> LengthRow:
    known: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
    return LengthRow(**known)


def _values(cell: Cell) -> dict[str, Any]:
    rows = [{name: _stored(value, DIGITS.get(name)) for name, value in row._asdict().items()} for row in cell.rows]
    return {**cell._asdict(), "rows": rows}


def _stored(value: Any, digits: int | None) -> Any:
    if digits is None:
        return value
    return None if math.isnan(value) else round(value, digits)


# A cell


class Recipe(NamedTuple):
    """How the models of one kind of data are made and tested."""

    recurrent: dict[str, Any]  # settings of Seq2Seq, the same for all recurrent models
    transformer: dict[str, Any]
    training: dict[str, Any]  # options of `train`
    transformer_training: dict[str, Any]  # those in which the Transformer differs
    pairs: int  # to learn from
    tested: int  # sources of each length bin
    beam: int


RECIPES = {
    "numbers": Recipe(
        recurrent={"embedding": 64, "hidden": 128, "dropout": 0.0},
        transformer={"embedding": 128, "layers": 2, "dropout": 0.0},
        training={"steps": 2_000, "batch_tokens": 1_500, "learning_rate": 3e-3, "smoothing": 0.0},
        transformer_training={"steps": 4_000, "learning_rate": 1.5e-3},
        pairs=60_000,
        tested=1_000,
        beam=1,
    ),
    "en-fr": Recipe(
        recurrent={"embedding": 128, "hidden": 192, "dropout": 0.1},
        transformer={"embedding": 128, "layers": 2},
        training={"steps": 2_500, "batch_tokens": 1_500, "vocabulary": "bpe", "vocabulary_size": 4_000},
        transformer_training={"learning_rate": 1.5e-3},
        pairs=60_000,
        tested=300,
        beam=4,
    ),
}
# model -> attention and recurrent cell
RECURRENT = {
    "gru": ("none", "gru"),
    "lstm": ("none", "lstm"),
    "bahdanau": ("bahdanau", "gru"),
    "luong": ("luong", "gru"),
    "local": ("local", "gru"),
}
PROCESSOR, CELL = "processor.json", "cell.json"  # in the folder of a run, beside what `train` writes


def make(place: Place, folder: str | Path, corpus: Pairs | None = None, report: Report | None = None) -> Cell:
    """Train one cell in a folder and test it; the same call goes on where it stopped, and reads what is done.

    corpus: the English-French pairs, for places of "en-fr"; see `datasets.pairs`.
    """
    if place not in PLACES:
        raise ChoiceError(f"the length table has no cell {tuple(place)}")
    path = Path(folder) / place.folder
    if (path / CELL).exists():
        return _cell(checkpoint.read_json(path / CELL))
    recipe = RECIPES[place.data]
    model, options = _model(place.model, recipe)
    learned, validation = _pairs(place, recipe, corpus)
    clock = _ProcessorClock(path / PROCESSOR)

    def report_and_clock(run: Run) -> bool | None:
        clock.store()
        return None if report is None else report(run)

    run = train(model, learned, validation, folder=path, seed=SEED, report=report_and_clock, **options)
    if run.interrupted:
        raise KeyboardInterrupt
    cell = Cell(
        *place, _rows(place, run.model, recipe, corpus), SEED, round(clock.seconds() / 60, 2), run.steps,
        torch.get_num_threads(), {name: version(name) for name in ("regard", "torch", "sacrebleu")},
    )  # fmt: skip
    checkpoint.write_json(path / CELL, _values(cell))
    return cell


def _model(name: str, recipe: Recipe) -> tuple[TranslationModel, dict[str, Any]]:
    """A model without weights yet, and the options of its training."""
    if name == "transformer":
        return Transformer(**recipe.transformer), {**recipe.training, **recipe.transformer_training}
    attention, cell = RECURRENT[name]
    return Seq2Seq(attention, cell=cell, **recipe.recurrent), recipe.training


def _pairs(place: Place, recipe: Recipe, corpus: Pairs | None) -> tuple[Pairs, Pairs]:
    """Pairs for training and validation, of sources up to the length of the cell."""
    words = (1, place.trained_words)
    if place.data == "numbers":
        parts = numbers(recipe.pairs, words, SEED).split()
    else:
        parts = joined(_known(corpus), recipe.pairs, words, seed=SEED).split()
    return parts.train, parts.validation


def _rows(place: Place, model: TranslationModel, recipe: Recipe, corpus: Pairs | None) -> tuple[LengthRow, ...]:
    tests = _number_tests(recipe.tested) if place.data == "numbers" else _joined_tests(_known(corpus), recipe.tested)
    return tuple(evaluate(model, pairs, beam=recipe.beam).by_length()[0] for pairs in tests)


@cache
def _number_tests(size: int) -> tuple[Pairs, ...]:
    """Numbers of the test side of the split, for each bin."""
    return tuple(_drawn(words, size) for words in BINS)


def _drawn(words: tuple[int, int], size: int) -> Pairs:
    found: dict[str, Any] = {}
    for seed in count(TEST_SEED):
        drawn = numbers(DRAWN, words, seed).split().test
        found.update({pair.source: pair for pair in drawn})
        if len(found) >= size:
            break
    return Pairs(list(found.values())[:size], source_language="en", target_language="zh")


def _joined_tests(corpus: Pairs, size: int) -> Iterator[Pairs]:
    """Test sentences of the corpus joined to texts, for each bin."""
    test = corpus.split().test
    return (joined(test, size, words, seed=TEST_SEED) for words in BINS)


def _known(corpus: Pairs | None) -> Pairs:
    if corpus is None:
        raise ChoiceError("cells of 'en-fr' need corpus=, the English-French pairs that regard.datasets.pairs reads")
    return corpus


class _ProcessorClock:
    """Seconds of processor time of a run, also if it was stopped in between: on a busy machine a minute says little."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self.before: float = checkpoint.read_json(path)["seconds"] if path.exists() else 0.0
        self.began: float = time.process_time()

    def seconds(self) -> float:
        """Seconds until now."""
        return self.before + time.process_time() - self.began

    def store(self) -> None:
        """Keep the seconds beside the run."""
        checkpoint.write_json(self.path, {"seconds": round(self.seconds(), 1)})
