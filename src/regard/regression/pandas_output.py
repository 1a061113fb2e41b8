"""pandas: names of the outputs from y, and predictions as Series or DataFrames after `set_output`."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from regard.errors import ChoiceError, MissingExtraError

OUTPUTS = ("default", "pandas")

Model = TypeVar("Model", bound="PandasOutput")  # jaxtyping's run-time checks do not know Self


def target_names(y: Any) -> list[Any] | None:
    """Return the columns of a DataFrame, the name of a Series, or None."""
    if hasattr(y, "columns"):
        return list(y.columns)
    return [y.name] if hasattr(y, "name") and hasattr(y, "index") else None


class PandasOutput:
    """Mixin: `set_output` for predictions, as scikit-learn has it for transformers."""

    def set_output(self: Model, *, transform: str | None = None, predict: str | None = None) -> Model:  # noqa: PYI019
        """Return predictions as numpy arrays ("default") or as pandas ("pandas"), indexed like X and named after y.

        `transform` is scikit-learn's name of this argument; `predict` is clearer, and wins where both are given.
        """
        for choice in (transform, predict):
            if choice is not None and choice not in OUTPUTS:
                raise ChoiceError(f"set_output offers {', '.join(map(repr, OUTPUTS))}, but it was asked for {choice!r}")
        choice = predict or transform
        if choice is not None:
            self._sklearn_output_config = {"predict": choice}  # under this name scikit-learn's clone keeps it
        return self

    def _as_output(self, table: np.ndarray, X: Any, names: list[Any] | np.ndarray | None) -> Any:
        """Results (q,) or (q, columns) for X, as pandas with these names if that is set; (q, a, b) stays an array."""
        choice = getattr(self, "_sklearn_output_config", {}).get("predict")
        return labelled(table, getattr(X, "index", None), names) if choice == "pandas" and table.ndim < 3 else table


def labelled(table: np.ndarray, index: Any, names: list[Any] | np.ndarray | None) -> Any:
    """Return a Series (n,) or a DataFrame (n, columns) with these names."""
    try:
        import pandas as pd
    except ImportError as missing:
        raise MissingExtraError("set_output(predict='pandas') needs pandas: pip install 'regard[tables]'") from missing
    if table.ndim == 1:
        return pd.Series(table, index=index, name=names[0] if names is not None else None)
    return pd.DataFrame(table, index=index, columns=names)
