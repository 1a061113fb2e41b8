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

    flat_: bool  # y was given without an axis for its outputs
    target_names_: list[Any] | None

    def set_output(self: Model, *, transform: str | None = None, predict: str | None = None) -> Model:  # noqa: PYI019
        """Return predictions as numpy arrays ("default") or as pandas ("pandas"), indexed like X and named after y.

        `transform` is scikit-learn's name of this argument; `predict` is clearer, and wins where both are given.
        """
        for choice in (transform, predict):
            if choice is not None and choice not in OUTPUTS:
                msg = f"set_output offers {', '.join(map(repr, OUTPUTS))}, but it was asked for {choice!r}"
                raise ChoiceError(msg)
        choice = predict or transform
        if choice is not None:
            self._sklearn_output_config = {"predict": choice}  # under this name scikit-learn's clone keeps it
        return self

    def _wants_pandas(self) -> bool:
        return getattr(self, "_sklearn_output_config", {}).get("predict", "default") == "pandas"

    def _as_output(self, columns: np.ndarray, X: Any) -> Any:
        """Shape (q, outputs) like y, without an axis for one output, and as pandas if that is set."""
        if not self._wants_pandas():
            return columns[:, 0] if self.flat_ else columns
        pandas, index = _import_pandas(), getattr(X, "index", None)
        if self.flat_:
            return pandas.Series(columns[:, 0], index=index, name=(self.target_names_ or [None])[0])
        return pandas.DataFrame(columns, index=index, columns=self.target_names_)

    def _as_features(self, table: np.ndarray, X: Any, names: np.ndarray | None) -> Any:
        """Derivatives (q, features) as a DataFrame if pandas is set; (q, features, outputs) stays an array."""
        if table.ndim > 2 or not self._wants_pandas():
            return table
        return _import_pandas().DataFrame(table, index=getattr(X, "index", None), columns=names)


def _import_pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as missing:
        msg = "set_output(predict='pandas') needs pandas: pip install 'regard[tables]'"
        raise MissingExtraError(msg) from missing
    return pd
