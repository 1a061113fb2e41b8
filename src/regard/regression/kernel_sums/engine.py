"""Kernel averages of a sample at queries: plan, sum with an error bound for each query, repair uncertain queries."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.operands import NEVER
from regard.regression.kernel_sums import fourier, pairwise, pairwise_float32, radius_search, relative_weights
from regard.regression.kernel_sums.plan import SINGLE_TOL, Plan, plan_for
from regard.regression.kernel_sums.sample import (
    EXACT_PAIRS,
    UNIT_ROUNDOFF,
    Sample,
    Standardised,
    extent,
    standardise,
    standardise_by_axis,
)
from regard.regression.kernel_sums.state import Pooled, empty

PRUNING_SHARE = 0.75  # of the error allowed, for pruned pairs; single precision needs the rest
MIN_LOG_WEIGHT = -1e4  # of a query's total: below it, the logs of its parts have lost more than three digits
LOST_SHARE = 0.01  # of `tol`, that rounding may take where not all pairs are computed
MAX_DIRECT_PAIRS = 3e7  # up to here all pairs are faster than a kd-tree


def pool(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Pooled:
    """The average at each query, with an error of at most `tol` standard deviations of each column.

    `plan` names the algorithm: "pairs" sums all pairs, "cells" those in the kernel's reach, "fast" a Fourier series;
    "auto" takes the cheapest.
    """
    with threads.one_thread():
        name = plan_for(sample, query, tol=tol, forced=plan).name
        data = None if name == "fast" else standardise(sample, query)
        # "cells" has workers, and a second thread of torch would spin beside them.
        state = pool_pairs(data, tol, prune=True) if name == "cells" and data is not None else None
    if data is None:
        data = standardise_by_axis(sample, query)
        state = pool_fourier(data, tol)
    elif state is None:
        state = pool_pairs(data, tol)
    return _repair_far_queries(sample, query, restored(data, state), tol)


def restored(data: Standardised, state: Pooled) -> Pooled:
    """A state of standardised data in the user's units; the mean is 0 where no point is in reach."""
    mean = torch.addcmul(data.mean, state.mean, data.scale)
    return state._replace(mean=torch.where(state.lse.unsqueeze(-1) == NEVER, 0.0, mean))


def _repair_far_queries(sample: Sample, query: Float[Tensor, "q dim"], state: Pooled, tol: float) -> Pooled:
    """The state with queries computed again that are so far from all points that their weights have lost digits.

    Where all pairs are computed three digits are too many, elsewhere what can be seen beside `tol`.
    """
    heaviest = 0.0 if sample.log_weight is None else float(sample.log_weight.max()) if len(sample.x) else NEVER
    exact = len(query) * len(sample.x) <= EXACT_PAIRS
    lowest = MIN_LOG_WEIGHT if exact else min(MIN_LOG_WEIGHT, -LOST_SHARE * tol / UNIT_ROUNDOFF)
    far = (~(state.lse - heaviest >= lowest)).nonzero().squeeze(-1)
    if not len(far) or not len(sample.x) or heaviest == NEVER or kernels.get(sample.kernel).compact:
        return state
    state.put(far, relative_weights.pool(sample, query[far]))
    return state


def explain(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Plan:
    """The plan of `pool`, with the reason for it and the costs of the others."""
    with threads.one_thread():
        return plan_for(sample, query, tol=tol, forced=plan, explain=True)


def pool_fourier(data: Standardised, tol: float) -> Pooled:
    """The average by a Fourier series; queries it is not certain of to `tol` from the points near them."""
    if not len(data.x):
        return empty(len(data.query), data.values.shape[1], data.query)
    sums = fourier.pool(data, tol)
    uncertain = (~(sums.state.error <= tol)).nonzero().squeeze(-1)
    log_floor = sums.log_floor(uncertain)
    unknown = log_floor == NEVER
    if data.x.shape[1] > 1 and 0 < int(unknown.sum()) * len(data.x) <= MAX_DIRECT_PAIRS:
        sums.state.put(uncertain[unknown], pairwise.pool(data.at(uncertain[unknown])))
        uncertain, log_floor = uncertain[~unknown], log_floor[~unknown]
    if len(uncertain):
        sums.state.put(uncertain, radius_search.pool(data.at(uncertain), tol, log_floor))
    return sums.state


def pool_pairs(data: Standardised, tol: float, *, prune: bool = False) -> Pooled:
    """The average over all pairs, or with `prune` over those in reach, within `tol`.

    It is summed in float64. A large sum of a Gaussian is tried in single precision, and what that is not certain of to
    `tol` is repaired in float64.
    """
    if not data.x.shape[1]:
        return _pool_without_features(data)
    pairs = len(data.query) * len(data.x)
    if data.x.device.type != "cpu" or data.kernel != "gaussian":
        return pairwise.pool_pruned(data, tol) if prune else pairwise.pool(data)
    if pairs > EXACT_PAIRS and tol >= SINGLE_TOL:
        state = pairwise_float32.pool(data, tol * PRUNING_SHARE if prune else 0.0)
        uncertain = (~(state.error <= tol)).nonzero().squeeze(-1)
        if len(uncertain):
            state.put(uncertain, _pool_double(data.at(uncertain), tol, prune=prune))
        return state
    return _pool_double(data, tol, prune=prune)


def _pool_double(data: Standardised, tol: float, *, prune: bool) -> Pooled:
    low, high = extent(data.query)
    narrow = float((high - low).norm()) <= 2 * pairwise.MAX_BLOCK_RADIUS
    if narrow and not prune and len(data.query) * len(data.x) <= EXACT_PAIRS:
        return pairwise.pool_block(data)
    return pairwise.pool_pruned(data, tol if prune else 0.0)  # tiles with centres of their own, divided between workers


def _pool_without_features(data: Standardised) -> Pooled:
    """Without features every query has the same state: the average of all points."""
    state = Pooled.of(data.log_weight_at(data.x.new_zeros(1, len(data.x))), data.values)
    return Pooled(*(part.expand(len(data.query), *part.shape[1:]).contiguous() for part in state))
