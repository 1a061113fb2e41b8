"""Kernel regression as a scikit-learn estimator, which selects its bandwidth and scales to millions of rows."""

from importlib.util import find_spec

from regard.errors import MissingExtraError

if find_spec("sklearn") is None or find_spec("finufft") is None:
    raise MissingExtraError(
        "regard.regression stands on scikit-learn and finufft, which are not both installed: "
        "pip install 'regard[regression]'"
    )

from regard.regression.estimator import NadarayaWatson
from regard.regression.out_of_core.parquet import Parquet

__all__ = ["NadarayaWatson", "Parquet"]
