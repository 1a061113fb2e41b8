"""What has been found out of a kind of call: it holds for every call with the same sizes and words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.engine import inputs
from regard.engine.plan import Plan
from regard.engine.plan import plan as choose
from regard.spec import Spec
from regard.tracing import traced


class Call(NamedTuple):
    """The sizes that were checked, the plan that was chosen, and the bytes it may use."""

    shape: inputs.Shape
    plan: Plan
    budget: int


_known: dict[Hashable, Call] = {}
MOST_CALLS = 4096


def remember(known: dict[Hashable, Any], kind: Hashable, found: Any) -> None:
    """Keep what was found, and not without end."""
    if len(known) >= MOST_CALLS:
        known.clear()
    known[kind] = found


def find(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, dropout_p: float, plan: str, budget: int | None
) -> Call:
    """The checks and the plan, made once for each kind of call."""
    if torch.compiler.is_compiling():
        return make(query, key, value, spec, dropout_p, plan, budget)
    try:
        grad = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
        kind = (
            query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, query.device, key.device,
            value.device, spec.signature, dropout_p, plan, budget, grad, torch.is_grad_enabled(), traced(),
        )  # fmt: skip
        found = _known.get(kind)
    except (AttributeError, TypeError):  # not tensors, or not hashable: the checks say so in words
        return make(query, key, value, spec, dropout_p, plan, budget)
    if found is None:
        found = make(query, key, value, spec, dropout_p, plan, budget)
        remember(_known, kind, found)
    return found


def make(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, dropout_p: float, plan: str, budget: int | None
) -> Call:
    """The checks and the plan."""
    shape = inputs.check(query, key, value, spec)
    limit = inputs.check_options(dropout_p, plan, budget)
    tensors = (query, key, value, *spec.tensors().values())
    grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    asked = inputs.request(query, key, spec, shape, forced=plan, budget=limit, dropout=dropout_p > 0, grad=grad)
    if inputs.has_own_heads(shape, value):
        asked = replace(asked, obstacle="the values have leading dimensions of their own")
    return Call(shape, choose(asked), limit)
