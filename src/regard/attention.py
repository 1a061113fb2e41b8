"""`attend`: score -> mask -> normalise -> pool, at the cost of a fused kernel, with the weights to ask afterwards."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from regard.engine import fast_path, inputs, plan_cache, pooling
from regard.engine.lazy_matrix import LazyMatrix
from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.scores import Score
from regard.tracing import without_autocast
from regard.weights import Weights, weights_of


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
    if not is_compiling():
        if score is None and normaliser is None and not dropout_p and plan == "auto" and budget is None:
            result = fast_path.attend(query, key, value, mask)
            if result is not None:
                output, matrix = result
                return tuple.__new__(Attention, (output, weights_of(matrix)))  # as Attention(...), in half the steps
        if torch._C._is_any_autocast_enabled():  # noqa: SLF001
            with without_autocast():
                return attend(query, key, value, score, mask, normaliser, dropout_p, plan, budget)
    spec = inputs.make_spec(score, mask, normaliser)
    call = plan_cache.find(query, key, value, spec, dropout_p, plan, budget)
    shape = call.shape
    q, k, v = inputs.working(query), inputs.working(key), inputs.working(value)
    k, v = inputs.ungrouped(k, shape.group), inputs.ungrouped(v, shape.group)
    matrix = LazyMatrix.of_call(query, key, call)
    output, matrix.lse = pooling.pool(spec, q, k, v, shape.lead, call.plan, dropout_p=dropout_p, draws=matrix.draws)
    return Attention(output.to(query.dtype), weights_of(matrix))
