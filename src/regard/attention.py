"""`attend`: score -> mask -> normalise -> pool, at the cost of a fused kernel, with the weights to ask afterwards."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard import _inputs, _pool
from regard._plan import plan as choose
from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.scores import Score
from regard.weights import Weights, request


class Attention(NamedTuple):
    """What `attend` returns."""

    output: Tensor
    weights: Weights


def attend(  # noqa: PLR0913
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
    spec = _inputs.make_spec(score, mask, normaliser)
    shape = _inputs.check(query, key, value, spec)
    limit = _inputs.check_options(dropout_p, plan, budget)
    tensors = (query, key, value, *spec.tensors().values())
    grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    chosen = choose(
        request(query, key, value.shape[-1], spec, shape, forced=plan, budget=limit, dropout=dropout_p > 0, grad=grad)
    )
    q, k, v = _inputs.working(query), _inputs.working(key), _inputs.working(value)
    k, v = _inputs.ungrouped(k, shape.group), _inputs.ungrouped(v, shape.group)
    weights = object.__new__(Weights)._set(query, key, spec, shape, chosen, limit, None, None)
    output, lse = _pool.pool(spec, q, k, v, shape.lead, chosen, dropout_p=dropout_p, draws=weights._draws)
    weights._lse = lse
    return Attention(output.to(query.dtype), weights)
