"""`attend`: score -> mask -> normalise -> pool, at the cost of a fused kernel, with the weights to ask afterwards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from regard import _fused, _inputs, _pool
from regard._plan import Plan
from regard._plan import plan as choose
from regard._traced import plain_dtypes, traced
from regard.masks import Band, Mask
from regard.normalisers import Normaliser
from regard.scores import Dot, Score
from regard.spec import Spec
from regard.weights import Weights

_common: dict[Band | None, Spec] = {}  # specs that people write again and again


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
    compiling = torch.compiler.is_compiling()
    if score is None and normaliser is None and (mask is None or type(mask) is Band) and not compiling:
        spec = _common.get(mask) or _common.setdefault(mask, _inputs.make_spec(score, mask, normaliser))
    else:
        spec = _inputs.make_spec(score, mask, normaliser)
    call = None
    if not compiling:
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            with plain_dtypes():
                return attend(query, key, value, score, mask, normaliser, dropout_p, plan, budget)
        call = _known_call(query, key, value, spec, dropout_p, plan, budget)
    if call is None:
        call = _make_call(query, key, value, spec, dropout_p, plan, budget)
    if call.direct is not None and not traced():
        found = _fused.direct(query, key, value, *call.direct)
        if found is not None:
            return Attention(found[0], Weights._of_call(query, key, spec, call, found[1]))  # noqa: SLF001
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
    direct: tuple[bool, float, bool] | None  # causal, scale, gradients: where one call of the kernel is all there is


_calls: dict[Hashable, Call] = {}
MOST_CALLS = 4096


def _known_call(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, dropout_p: float, plan: str, budget: int | None
) -> Call | None:
    """The checks and the plan, made once for each kind of call."""
    try:
        grad = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
        kind = (
            query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, query.device, key.device,
            value.device, spec.signature, dropout_p, plan, budget, grad, torch.is_grad_enabled(), traced(),
        )  # fmt: skip
        found = _calls.get(kind)
    except (AttributeError, TypeError):  # not tensors, or not hashable: the checks say so in words
        return None
    if found is None:
        found = _make_call(query, key, value, spec, dropout_p, plan, budget)
        if len(_calls) >= MOST_CALLS:
            _calls.clear()
        _calls[kind] = found
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
    direct = _direct(query, key, value, spec, shape, chosen)
    return Call(shape, chosen, limit, None if direct is None else (*direct, grad))


def _direct(
    query: Tensor, key: Tensor, value: Tensor, spec: Spec, shape: _inputs.Shape, plan: Plan
) -> tuple[bool, float] | None:
    causal = _fused.is_causal(spec.mask, shape.n, shape.m)
    if not isinstance(spec.score, Dot) or not (spec.mask is None or causal) or query.element_size() < 4:
        return None
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.dim() in (3, 4)
    if plan.executor != "fused" or not same or (causal and shape.n < shape.m) or value.shape[-1] != key.shape[-1]:
        return None
    return causal, spec.score.scale_for(key.shape[-1])
