"""pandas at the border: names of what comes in, and the same names on what goes out."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from regard.errors import ChoiceError, MissingExtraError

OUTPUTS = ("default", "pandas")

Model = TypeVar("Model", bound="Framed")  # a checker of types at run time does not see what Self is here


def target_names(y: Any) -> list[Any] | None:
    """The name of a pandas Series, the columns of a DataFrame, or nothing."""
    if hasattr(y, "columns"):
        return list(y.columns)
    return [y.name] if hasattr(y, "name") and hasattr(y, "index") else None


class Framed:
    """An estimator whose predictions come as pandas objects when `set_output` says so."""

    flat_: bool  # y came without an axis for its outputs
    target_names_: list[Any] | None

    def set_output(self: Model, *, transform: str | None = None, predict: str | None = None) -> Model:  # noqa: PYI019
        """Predictions as numpy arrays ("default") or as pandas ("pandas"), indexed like X and named after y.

        `transform` is what scikit-learn calls it; `predict` says what is meant and wins where both are given.
        """
        for asked in (transform, predict):
            if asked is not None and asked not in OUTPUTS:
                msg = f"set_output offers {', '.join(map(repr, OUTPUTS))}, but it was asked for {asked!r}"
                raise ChoiceError(msg)
        asked = predict or transform
        if asked is not None:
            self._sklearn_output_config = {"predict": asked}  # under this name scikit-learn's clone keeps it
        return self

    def _framed(self, columns: np.ndarray, X: Any) -> Any:
        """(q, outputs), as y came: without an axis for one output, and as pandas if that is wanted."""
        flat = self.flat_
        if getattr(self, "_sklearn_output_config", {}).get("predict", "default") == "default":
            return columns[:, 0] if flat else columns
        pandas, index = _pandas(), getattr(X, "index", None)
        if flat:
            return pandas.Series(columns[:, 0], index=index, name=(self.target_names_ or [None])[0])
        return pandas.DataFrame(columns, index=index, columns=self.target_names_)

    def _framed_features(self, table: np.ndarray, X: Any, names: np.ndarray | None) -> Any:
        """(q, features), or (q, features, outputs) for which pandas has no shape."""
        wanted = getattr(self, "_sklearn_output_config", {}).get("predict", "default") == "pandas"
        if table.ndim > 2 or not wanted:
            return table
        return _pandas().DataFrame(table, index=getattr(X, "index", None), columns=names)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as missing:
        msg = "set_output(predict='pandas') needs pandas: pip install 'regard[tables]'"
        raise MissingExtraError(msg) from missing
    return pd
