"""Kernel regression: attention's oldest form, tuned by itself, at a million points."""

from importlib.util import find_spec

from regard.errors import MissingExtraError

if find_spec("sklearn") is None:
    raise MissingExtraError(
        "regard.regression stands on scikit-learn, which is not installed: pip install 'regard[regression]'"
    )

from regard.regression.estimator import NadarayaWatson
from regard.regression.out_of_core.parquet import Parquet

__all__ = ["NadarayaWatson", "Parquet"]
