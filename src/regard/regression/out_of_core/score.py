"""R^2 of predictions for data in blocks: neither the predictions nor the targets are ever all in memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError
from regard.regression import validation
from regard.regression.out_of_core import fit, predict
from regard.regression.out_of_core.dask_source import DaskBlocks, apart
from regard.regression.out_of_core.dask_tasks import is_dask
from regard.regression.out_of_core.source import Block, ahead, reduced
from regard.regression.out_of_core.summary import Moments


class Missed(NamedTuple):
    """How y varies, and by how much it was missed; of two parts together."""

    rows: int
    y: Moments
    squares: Float[Tensor, " outputs"]

    def merge(self, other: Missed) -> Missed:
        return Missed(self.rows + other.rows, self.y.merge(other.y), self.squares + other.squares)

    def score(self) -> float:
        """The mean over the outputs, and what scikit-learn says of y that does not vary: 1 if it is hit, else 0."""
        if self.rows < 2:
            return math.nan
        varies = self.y.high > self.y.low
        share = self.squares / torch.where(varies, self.y.squares, 1.0)
        return float(torch.where(varies, 1 - share, (share == 0).double()).mean())


def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """R^2 for a Parquet folder, a large map or a collection of Dask; y and sample_weight as in `fit`."""
    if is_dask(X):
        features, y, sample_weight = apart(X, y, sample_weight)
        predicted = predict.predict(model, features)
        if predicted.ndim == 1:
            predicted = predicted.to_frame() if hasattr(X, "columns") else predicted[:, None]
        return DaskBlocks(predicted, y, sample_weight).fold(_missed, Missed.merge).score()
    if fit.is_large_map(X):
        y, sample_weight = np.asanyarray(y), None if sample_weight is None else np.asanyarray(sample_weight)
    else:
        y, sample_weight = fit.names(y), fit.name(sample_weight)
    blocks = predict.queries(model, X, y, sample_weight)
    return reduced((_missed(None, _predicted(model, block)) for block in ahead(blocks)), Missed.merge).score()


def _predicted(model: Any, block: Block) -> Block:
    """The same block, with predictions in the place of what they are made from."""
    return block._replace(x=torch.from_numpy(predict.answered(model, block.x, block.name)).reshape(len(block.x), -1))


def _missed(_given: None, block: Block) -> Missed:
    validation.finite(f"the prediction for {block.name}", block.x.numpy(), [])
    predicted, y, weight, *_ = block.checked()
    if predicted.shape != y.shape:
        raise ShapeError(f"y must have {predicted.shape[1]} outputs, as in fit: it has {y.shape[1]} in {block.name}")
    squares = (y - predicted).square()
    of_each = squares.sum(0) if weight is None else weight @ squares
    return Missed(len(y), Moments.of(y, weight), of_each)
