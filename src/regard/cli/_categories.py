"""Columns of categories in a table: which they are, their texts, and those that a fit has never seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.cli import _tables
from regard.cli._tables import Advice
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from pandas import DataFrame


def asked(text: str | None) -> list[str]:
    """The names in "a,b", and the whole text, which may be a name with a comma."""
    return [] if text is None else [text, *(name.strip() for name in text.split(","))]


def named(text: str | None, frame: DataFrame, path: Path, y: str) -> list[str]:
    """The columns that --categorical names, all of which are there, none of them y."""
    if text is None:
        return []
    names = [text] if text in frame.columns else [name for name in asked(text)[1:] if name]
    if y in names:
        raise ChoiceError(f"--categorical names {y!r}, the column to predict, which has to be numbers")
    if len(set(names)) < len(names):
        raise ChoiceError(f"--categorical names a column twice: {text}")
    return _tables.known(names, frame, path)


def table(frame: DataFrame, names: Sequence[str], kinds: Sequence[str], path: Path, advice: Advice) -> DataFrame:
    """The named columns in their order: `kinds` as texts or numbers that name a category, the others as float64."""
    numeric = [name for name in names if name not in kinds]
    if numeric or not names:
        features = _tables.numbers(frame, numeric, path, advice)
    else:
        features = _tables.numbers(frame.assign(_=0.0), ["_"], path, advice)[[]]  # it looks whether there are rows
    texts = {name: _tables.texts(frame, name, path, advice) for name in kinds}
    whole: Any = features.assign(**texts)
    return whole[list(names)]


def never_seen(model: Any, X: Any, path: Path) -> Iterator[str]:
    """For each column of categories, what is new in it and where."""
    from regard.regression import encoding

    for column, new in encoding.never_seen(X, model.categories_).items():
        if new.any():
            series = X.iloc[:, column] if hasattr(X, "iloc") else X[:, column]
            name = X.columns[column] if hasattr(X, "columns") else column
            level = np.asarray(series, dtype=object)[int(np.argmax(new))]
            yield (
                f"{path}: column {name!r} holds {level!r}, which the fit has never seen, in {_tables.rows(new)}: "
                "predicted as if that column were not there"
            )
