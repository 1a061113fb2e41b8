"""New rows: the table they come in, and the one with their predictions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.cli import _categories, _files, _progress, _tables
from regard.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

BLOCK = 2**18  # rows that are predicted at a time
ADDED = ("predicted", "low", "high")
NEEDED = "The fit needs it"


class Needs(NamedTuple):
    """What a fit asks of new rows; it may still be to come."""

    names: list[str] | None  # of the features, where the fit knows them
    width: int
    kinds: list[int]  # the places of the categories
    texts: list[str]  # columns to be read as texts
    added: list[str]  # columns that the prediction brings

    @staticmethod
    def by(model: Any) -> Needs:
        found = getattr(model, "feature_names_in_", None)
        names = None if found is None else [str(name) for name in found]
        texts = [column for column, levels in model.categories_.items() if levels.dtype.kind == "U"]
        known = [] if names is None else [names[column] for column in texts]
        return Needs(names, model.n_features_in_, list(model.categories_), known, _added(model))

    @staticmethod
    def for_fit_on(features: DataFrame, kinds: Sequence[str]) -> Needs:
        names = [str(name) for name in features.columns]
        texts = [name for name in kinds if features[name].dtype.kind == "O"]
        return Needs(names, len(names), [names.index(kind) for kind in kinds], texts, list(ADDED))


class New(NamedTuple):
    path: Path
    frame: DataFrame  # as it came
    X: Any  # what is predicted from


def read(path: Path, needs: Needs) -> New:
    """The table, with everything in it that a prediction needs and nothing in the way."""
    with _progress.step(f"reading {path}"):
        frame = _files.read(path, needs.texts)
        taken = [name for name in needs.added if name in frame.columns]
        if taken:
            raise DataError(f"{path}: has a column {taken[0]!r} already, where the prediction would go; rename it")
        return New(path, frame, _features(frame, path, needs))


def predict(model: Any, new: New, out: Path) -> None:
    """The rows of the table, with the prediction and its 95 % band in three new columns for each output."""
    X = new.X
    for note in _categories.never_seen(model, X, new.path):
        print(f"regard: {note}", file=sys.stderr)
    found: list[Any] = []
    with _progress.step(f"predicting {len(X):,} rows", total=len(X)) as line:
        for start in range(0, len(X), BLOCK):
            part = X[start : start + BLOCK]
            answers = (model.predict(part), *model.confidence_band(part))
            found.append(
                np.stack([np.asarray(one).reshape(len(part), -1) for one in answers], 2).reshape(len(part), -1)
            )
            line.advance(len(part))
    columns = dict(zip(_added(model), np.concatenate(found).T, strict=True))
    _files.write(new.frame.assign(**columns), out)


def _added(model: Any) -> list[str]:
    """The names of the new columns, one output after the other."""
    targets = model.target_names_ or range(1, model.outputs_ + 1)
    endings = [""] if model.flat_ else [f" {target}" for target in targets]
    return [name + ending for ending in endings for name in ADDED]


def _features(frame: DataFrame, path: Path, needs: Needs) -> Any:
    """The columns that the fit was made on: a frame where it knows their names, else an array."""
    if needs.names is None and len(frame.columns) != needs.width:
        raise DataError(
            f"{path}: has {len(frame.columns)} columns, and the fit was made without names on {needs.width}"
        )
    names = list(frame.columns) if needs.names is None else _tables.known(needs.names, frame, path)
    kinds = [names[column] for column in needs.kinds]
    table = _categories.table(frame, names, kinds, path, lambda _: NEEDED)
    return table.to_numpy() if needs.names is None else table
