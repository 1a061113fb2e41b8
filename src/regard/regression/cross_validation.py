"""From the rows of a table to a bandwidth, and to what each row looks like from all the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth import duplicates, objective, rules, search
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.local.constant import LocalConstant
from regard.regression.local.data import Data, Mixed
from regard.regression.local.linear import LocalLinear
from regard.regression.persistence import is_learned

Local = LocalConstant | LocalLinear

LOCAL = {0: LocalConstant, 1: LocalLinear}
FOUND_LATER = ("_residuals", "_cv")  # what is not learned before it is asked for


def choose(
    rule: str, local: Local, *, verbose: bool | Callable[[search.Progress], None] = False
) -> tuple[Float[Tensor, " features"], Float[Tensor, "n outputs"] | None]:
    """The bandwidth by a rule, and the residuals where the rule has computed them."""
    data, sample, kinds = local.data, local.data.sample, _kinds(local)
    rows = duplicates.merged(sample, kinds)
    if rule == "scott":
        return _ordered(data, _scott(rows, sample.kernel)), None
    found = search.select(
        rows.x,
        rows.y,
        sample.kernel,
        local.degree,
        None if rows.weight is None else rows.weight.log(),
        left_out=rows.left_out,
        kinds=rows.kinds,
        tol=data.tol,
        verbose=verbose is True,
        progress=_listener(data, verbose) if callable(verbose) else None,
    )
    return _ordered(data, found.bandwidth), None if rows.merged else found.residuals


def forget(model: Any) -> None:
    """All that an earlier fit has learned: where data lies decides what there is to learn, and nothing may be left."""
    for name in [name for name in vars(model) if is_learned(name) or name in FOUND_LATER]:
        delattr(model, name)


def _kinds(local: Local) -> Kinds | None:
    return local.data.kinds if isinstance(local.data, Mixed) else None


def _ordered(data: Data, bandwidth: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
    """In the order of the table's columns, where a search has lambdas last."""
    return data.joined(bandwidth) if isinstance(data, Mixed) else bandwidth


def _listener(data: Data, tell: Callable[[search.Progress], None]) -> Callable[[search.Progress], None]:
    return lambda state: tell(state._replace(bandwidth=_ordered(data, state.bandwidth)))


def _scott(rows: duplicates.Rows, kernel: str) -> Float[Tensor, " features"]:
    """Scott's widths, and lambdas that shrink as fast as their squares."""
    width = rules.scott(rows.x, rows.weight, kernel, rows.total)
    if rows.kinds is None:
        return width
    return torch.cat((width, rows.kinds.most * len(rows.x) ** (-2 / (len(width) + 4))))


def residuals(local: Local) -> Float[Tensor, "n outputs"]:
    """y_i less what all the other rows predict at x_i; a row without weight is in nobody's way, its own included."""
    sample, kinds = local.data.sample, _kinds(local)
    if sample.log_weight is None:
        return objective.residuals(sample, degree=local.degree, tol=local.data.tol, kinds=kinds)
    found = torch.empty_like(sample.values)
    kept = sample.log_weight > NEVER
    some = replace(sample, x=sample.x[kept], values=sample.values[kept], log_weight=sample.log_weight[kept])
    counts = duplicates.as_counts(sample.log_weight[kept].exp())
    left_out = None if counts is None else torch.ones_like(counts)
    kinds = None if kinds is None else kinds.at(kept)
    found[kept] = objective.residuals(some, degree=local.degree, left_out=left_out, tol=local.data.tol, kinds=kinds)
    if not bool(kept.all()):
        found[~kept] = sample.values[~kept] - local.predict(local.data.table()[~kept])
    return found


def mean_square(local: Local, found: Float[Tensor, "n outputs"]) -> float:
    """Of residuals, weighted; with several outputs each is in units of its variance."""
    share, y = local.data.share(), local.data.sample.values
    squares = share @ found.square()
    if len(squares) > 1:
        variance = share @ (y - share @ y).square()
        squares = squares / torch.where(variance > 0, variance, 1.0)
    return float(squares.sum())
