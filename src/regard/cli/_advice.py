"""What to write instead, where a column cannot be taken as it was: options that would be accepted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.cli import _tables

if TYPE_CHECKING:
    from pandas import DataFrame

FEW = 8  # columns that are named in an example


class Advice(NamedTuple):
    """Advice about a column of `frame`, from which `names` were to predict y, `kinds` of them as categories."""

    frame: DataFrame
    y: str
    names: Sequence[str]
    kinds: Sequence[str]

    def __call__(self, name: str) -> str:
        sentences = [self._as_categories()] if name in self._texts() else []
        return " ".join(part for part in (*sentences, self._others()) if part)

    def _as_categories(self) -> str:
        """With all other texts, and without what cannot be taken either way."""
        texts, kept = self._texts(), self._kept()
        fine = [name for name in self._numbers() if name in self.names]
        if len(fine) + len(texts) + len(kept) == len(self.names):
            return f"As categories it is taken by --categorical{_example([*kept, *texts])}."
        columns = _example(fine or [*kept, *texts])
        return f"As categories it is taken by --x{columns} --categorical{_example([*kept, *texts])}." if columns else ""

    def _others(self) -> str:
        fine, kept = self._numbers(), self._kept()
        columns = _example(fine or kept)
        if not fine and not kept:
            return ""
        if not columns:
            return "Other columns can be chosen with --x"
        kinds = f" --categorical{_example(kept)}" if kept else " and no --categorical" if self.kinds else ""
        return f"Other columns can be chosen with --x, such as --x{columns}{kinds}"

    def _numbers(self) -> list[str]:
        """Columns of finite numbers, asked for or not."""
        there = _tables.chosen(None, self.frame, Path(), self.y)
        return [name for name in there if name not in self.kinds and _is_finite(self.frame[name])]

    def _texts(self) -> list[str]:
        """Columns that were asked for and are no numbers, and could be categories."""
        others = [name for name in self.names if name not in self.kinds and _is_whole(self.frame[name])]
        return [name for name in others if _tables.floats(self.frame[name]) is None]

    def _kept(self) -> list[str]:
        return [name for name in self.kinds if _is_whole(self.frame[name])]


def _example(names: Sequence[str]) -> str:
    """Names as they are written behind an option; nothing if they are many, or a comma stands in one of them."""
    if not 0 < len(names) <= FEW or any("," in name for name in names):
        return ""
    return f" {shlex.quote(','.join(names))}"


def _is_whole(series: Any) -> bool:
    return not series.isna().any()


def _is_finite(series: Any) -> bool:
    values = _tables.floats(series) if _is_whole(series) else None
    return values is not None and bool(np.isfinite(values).all())
