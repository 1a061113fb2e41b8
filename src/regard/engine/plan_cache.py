"""Checked and planned calls, remembered: a plan holds for every call with the same sizes, dtypes and terms."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine import inputs
from regard.engine.fused.forms import form
from regard.engine.plan import Plan, Request, scores_per_tile
from regard.engine.plan import plan as choose
from regard.normalisers import Softmax
from regard.operands import Size, Span
from regard.scores import Dot
from regard.spec import Spec
from regard.tracing import is_tracing


class PlannedCall(NamedTuple):
    """A call whose inputs have been checked: its formula, its sizes, the plan, and the bytes that it may use."""

    spec: Spec
    shape: inputs.MatrixShape
    plan: Plan
    budget: int


_plans: dict[Hashable, tuple[inputs.MatrixShape, Plan, int]] = {}
ROW_BLOCKS = 32  # of rows at most, in which what a mask may show is counted for the estimate
KERNEL_ROWS = 64  # of such a block: the kernel computes about so many rows at once
MAX_PLANS = 4096  # kinds of calls in the cache; a program that has more changes its shapes all the time


def remember(cache: dict[Hashable, Any], kind: Hashable, value: Any, limit: int = MAX_PLANS) -> None:
    """Store a value under a kind of call, in a cache that starts anew when it holds `limit` values."""
    if len(cache) >= limit:
        cache.clear()
    cache[kind] = value


def find(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"] | None,
    spec: Spec,
    dropout_p: float,
    plan: str,
    budget: int | None,
) -> PlannedCall:
    """Check and plan a call, once for each kind of call. Without a value, only the matrix of weights is wanted."""
    if torch.compiler.is_compiling():
        return make(query, key, value, spec, dropout_p, plan, budget)
    try:
        tensors = (query, key) if value is None else (query, key, value)
        recording = torch.is_grad_enabled()
        grad = recording and any(t.requires_grad for t in tensors)
        kinds = [(t.shape, t.dtype, t.device, type(t), t.layout) for t in tensors]
        kind = (*kinds, spec.signature, dropout_p, plan, budget, grad, recording, is_tracing())
        known = _plans.get(kind)
    except (AttributeError, TypeError, RuntimeError):  # no ordinary tensors, or not hashable: the checks say so
        return make(query, key, value, spec, dropout_p, plan, budget)
    if known is None:
        call = make(query, key, value, spec, dropout_p, plan, budget)
        remember(_plans, kind, call[1:])  # not the spec: it holds the caller's tensors
        return call
    return PlannedCall(spec, *known)


def make(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"] | None,
    spec: Spec,
    dropout_p: float,
    plan: str,
    budget: int | None,
) -> PlannedCall:
    """Check and plan a call. Without a value, only the matrix of weights is wanted."""
    shape = inputs.check(query, key, value, spec)
    limit = inputs.check_options(dropout_p, plan, budget)
    return PlannedCall(spec, shape, plan_for(query, key, spec, shape, plan, limit, value, dropout_p), limit)


def plan_for(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    spec: Spec,
    shape: inputs.MatrixShape,
    forced: str,
    budget: int,
    value: Float[Tensor, "... keys dim_v"] | None = None,
    dropout_p: float = 0.0,
) -> Plan:
    """The plan for inputs that have been checked."""
    tensors = (query, key, *(() if value is None else (value,)), *spec.tensors().values())
    grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    itemsize = max(4, query.element_size())
    obstacle = spec.score.obstacle(grad=grad)
    if value is not None and inputs.has_extra_lead(shape, value):
        obstacle = "the values have leading dimensions of their own"
    tracing = "compile" if torch.compiler.is_compiling() else "transform" if is_tracing() else "no"
    return choose(
        Request(
            forced=forced,
            formula=repr(spec),
            obstacle=obstacle,
            form=form(spec, shape.lead, shape.n, shape.m, scores_per_tile(budget, itemsize, grad=grad)),
            softmax=isinstance(spec.normaliser, Softmax),
            lead=shape.lead,
            n=shape.n,
            m=shape.m,
            itemsize=itemsize,
            budget=budget,
            grad=grad,
            dropout=dropout_p > 0,
            device=query.device.type,
            plain=isinstance(spec.score, Dot),
            tracing=tracing,
            visible=None if tracing == "compile" else _visible_scores(spec, shape, query.device),
            features=(key.shape[-1] + (key if value is None else value).shape[-1]) // 2,
        )
    )


def _visible_scores(spec: Spec, shape: inputs.MatrixShape, device: torch.device) -> int:
    """The number of scores that the mask may show, from sizes alone, in blocks of rows."""
    n, m, step = shape.n, shape.m, max(KERNEL_ROWS, -(-shape.n // ROW_BLOCKS))
    pairs = n * m
    if spec.mask is not None:
        blocks = [Span(low, min(low + step, n)) for low in range(0, n, step)]
        reached = [(rows, spec.mask.reach(rows, Size(n, m, device))) for rows in blocks]
        pairs = sum(len(rows) * (high - low) for rows, ranges in reached for low, high in ranges)
    return math.prod(shape.lead) * pairs
