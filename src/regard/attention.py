"""`attend`: score -> mask -> normalise -> pool, at the cost of a fused kernel, with the weights to ask afterwards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard import _fused, _inputs, _pool
from regard._plan import Plan
from regard._plan import plan as choose
from regard._traced import plain_dtypes, traced, transformed
from regard.masks import Band, Mask
from regard.normalisers import Normaliser
from regard.scores import Dot, Score
from regard.spec import Spec
from regard.weights import Weights


class Attention(NamedTuple):
    """What `attend` returns."""

    output: Tensor
    weights: Weights


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score | None = None,
    mask: Mask | None = None,
    normaliser: Normaliser | None = None,
    dropout_p: float = 0.0,
    plan: str = "auto",
    budget: int | None = None,
) -> Attention:
    r"""Pool the values by how well each query fits each key.

    output_i = sum_j p_ij v_j with p_i = normalise(score(q_i, k_j) where mask).

    Shapes: query (..., n, d_q), key (..., m, d_k), value (..., m, d_v); output (..., n, d_v), weights (..., n, m).

    >>> import torch, regard as rg
    >>> tokens = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    >>> output, weights = rg.attend(tokens, tokens, tokens)
    >>> output.shape, weights.shape
    (torch.Size([3, 4]), torch.Size([3, 3]))
    """
    if not torch.compiler.is_compiling():
        if score is None and normaliser is None and not dropout_p and plan == "auto" and budget is None:
            found = _short_way(query, key, value, mask)
            if found is not None:
                return found
        if torch._C._is_any_autocast_enabled():  # noqa: SLF001
            with plain_dtypes():
                return attend(query, key, value, score, mask, normaliser, dropout_p, plan, budget)
    spec = _inputs.make_spec(score, mask, normaliser)
    call = _call(query, key, value, spec, dropout_p, plan, budget)
    shape = call.shape
    q, k, v = _inputs.working(query), _inputs.working(key), _inputs.working(value)
    k, v = _inputs.ungrouped(k, shape.group), _inputs.ungrouped(v, shape.group)
    weights = object.__new__(Weights)._set(query, key, spec, shape, call.plan, call.budget, None, None)  # noqa: SLF001
    output, lse = _pool.pool(spec, q, k, v, shape.lead, call.plan, dropout_p=dropout_p, draws=weights._draws)  # noqa: SLF001
    weights._lse = lse  # noqa: SLF001
    return Attention(output.to(query.dtype), weights)


class Call(NamedTuple):
    """What has been found out of a kind of call: it holds for every call with the same sizes and words."""

    shape: _inputs.Shape
    plan: Plan
    budget: int


class ShortWay(NamedTuple):
    """A kind of call that is one call of the kernel."""

    known: tuple[Spec, _inputs.Shape, Plan, int]
    causal: bool
    scale: float


_calls: dict[Hashable, Call] = {}
_short_ways: dict[Hashable, ShortWay | None] = {}
UNKNOWN: Any = object()
MOST_CALLS = 4096


def _remember(known: dict[Hashable, Any], kind: Hashable, found: Any) -> None:
    if len(known) >= MOST_CALLS:
        known.clear()
    known[kind] = found


def _short_way(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> Attention | None:
    """One call of the kernel and hardly a step around it, where that is all there is: small models feel the rest."""
    align = name = None
    if mask is not None:
        if type(mask) is not Band or mask.left is not None or mask.right != 0:
            return None
        align, name = mask.align, mask.name
    if transformed():
        return None
    try:
        if not (query.is_cpu and key.is_cpu and value.is_cpu):
            return None
        kind = (query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, align, name)
    except AttributeError:  # not tensors: the checks say so in words
        return None
    way = _short_ways.get(kind, UNKNOWN)
    if way is UNKNOWN:
        way = _find_short_way(query, key, value, mask)
        _remember(_short_ways, kind, way)
    if way is None:
        return None
    found = _fused.direct(query, key, value, way.causal, way.scale)
    return None if found is None else Attention(found[0], Weights._of_call(query, key, way.known, found[1]))  # noqa: SLF001


def _find_short_way(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> ShortWay | None:
    spec = _inputs.make_spec(None, mask, None)
    call = _make_call(query, key, value, spec, 0.0, "auto", None)
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.dim() in (3, 4)
    if call.plan.executor != "fused" or not same or value.shape[-1] != key.shape[-1] or query.element_size() < 4:
        return None
    form = _fused.form(spec, call.shape.lead, call.shape.n, call.shape.m, call.plan.tile)
    if form not in ("whole", "causal") or not isinstance(spec.score, Dot):
        return None
    known = (spec, call.shape, call.plan, call.budget)
    return ShortWay(known, form == "causal", spec.score.scale_for(key.shape[-1]))


def _call(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, dropout_p: float, plan: str, budget: int | None
) -> Call:
    """The checks and the plan, made once for each kind of call."""
    if torch.compiler.is_compiling():
        return _make_call(query, key, value, spec, dropout_p, plan, budget)
    try:
        grad = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
        kind = (
            query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, query.device, key.device,
            value.device, spec.signature, dropout_p, plan, budget, grad, torch.is_grad_enabled(), traced(),
        )  # fmt: skip
        found = _calls.get(kind)
    except (AttributeError, TypeError):  # not tensors, or not hashable: the checks say so in words
        return _make_call(query, key, value, spec, dropout_p, plan, budget)
    if found is None:
        found = _make_call(query, key, value, spec, dropout_p, plan, budget)
        _remember(_calls, kind, found)
    return found


def _make_call(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, dropout_p: float, plan: str, budget: int | None
) -> Call:
    shape = _inputs.check(query, key, value, spec)
    limit = _inputs.check_options(dropout_p, plan, budget)
    tensors = (query, key, value, *spec.tensors().values())
    grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    chosen = choose(
        _inputs.request(query, key, spec, shape, forced=plan, budget=limit, dropout=dropout_p > 0, grad=grad)
    )
    return Call(shape, chosen, limit)
