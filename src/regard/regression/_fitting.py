"""From the rows of a table to a bandwidth, and to what each row looks like from all the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard._operands import NEVER
from regard.regression import _mixed
from regard.regression._categorical import Mixed
from regard.regression._constant import LocalConstant
from regard.regression._linear import LocalLinear
from regard.regression._mixed import Local, mean_square
from regard.regression.selection import _copies, _residuals, _rules, _search

__all__ = ["LOCAL", "Local", "choose", "mean_square", "residuals"]

LOCAL = {0: LocalConstant, 1: LocalLinear}


def choose(
    rule: str, local: Local, *, verbose: bool | Callable[[_search.Progress], None] = False
) -> tuple[Float[Tensor, " dim"], Float[Tensor, "n outputs"] | None]:
    """The bandwidth by a rule, and the residuals where the rule has computed them."""
    if isinstance(local.data, Mixed):
        return _mixed.choose(rule, local), None
    sample, rows = local.data.sample, _copies.merged(local.data.sample)
    if rule == "scott":
        return _rules.scott(rows.x, rows.weight, sample.kernel, rows.total), None
    found = _search.select(
        rows.x,
        rows.y,
        sample.kernel,
        local.degree,
        None if rows.weight is None else rows.weight.log(),
        left_out=rows.left_out,
        tol=local.data.tol,
        verbose=verbose is True,
        progress=verbose if callable(verbose) else None,
    )
    return found.bandwidth, None if rows.merged else found.residuals


def residuals(local: Local) -> Float[Tensor, "n outputs"]:
    """y_i less what all the other rows predict at x_i; a row without weight is in nobody's way, its own included."""
    if isinstance(local.data, Mixed):
        return _mixed.residuals(local)
    sample = local.data.sample
    if sample.log_weight is None:
        return _residuals.residuals(sample, degree=local.degree, tol=local.data.tol)
    found = torch.empty_like(sample.values)
    kept = sample.log_weight > NEVER
    some = replace(sample, x=sample.x[kept], values=sample.values[kept], log_weight=sample.log_weight[kept])
    weight = sample.log_weight[kept].exp()
    counts = _copies.as_counts(weight)
    left_out = None if counts is None else weight / counts
    found[kept] = _residuals.residuals(some, degree=local.degree, left_out=left_out, tol=local.data.tol)
    if not bool(kept.all()):
        found[~kept] = sample.values[~kept] - local.predict(sample.x[~kept])
    return found
