"""`attend`: score -> mask -> normalise -> pool, at the cost of a fused kernel, and the weights as a lazy matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.compiler import is_compiling

from regard.engine import fast_path, grouped_query, inputs, plan_cache
from regard.engine.lazy_matrix import LazyMatrix
from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.operands import is_sharded
from regard.scores import Score
from regard.tracing import refuse_script, without_autocast
from regard.weights import Weights, weights_of


class Attention(NamedTuple):
    """The result of `attend`: the output, and the matrix of weights as a lazy object."""

    output: Float[Tensor, "*batch queries dim_v"]
    weights: Weights


# While a model is recorded, runs and reports the calls of its modules; None where a call shall just go on.
around: Callable[..., Attention | None] | None = None


def attend(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    score: Score | None = None,
    mask: Mask | None = None,
    normaliser: Normaliser | None = None,
    dropout_p: float = 0.0,
    plan: str = "auto",
    budget: int | None = None,
) -> Attention:
    r"""Attention: for each query, the average of the values, weighted by how well the query fits each key.

        output_i = sum_j p_ij v_j    with    p_i = normalise_j(score(q_i, k_j) where mask)

    Returns the output (..., n, d_v) and the weights (..., n, m). The weights are never stored: `Weights` computes what
    is asked, so n and m may be large. A query that sees no key has weights and output 0. Leading dimensions broadcast;
    with four or more dimensions, heads (axis -3) of key and value may be fewer than those of query, if they divide them
    (grouped-query attention). float16 and bfloat16 are computed in float32.

    query: (..., n, d_q), one row for each of n queries.
    key: (..., m, d_k), one row for each of m keys. Its dtype and device are those of query.
    value: (..., m, d_v), one row for each key.
    score: how well q_i fits k_j, an object of `regard.scores`: dot, scaled_dot, cosine, general, additive, concat,
        location, gaussian, kernel or uniform; bias, alibi and relative are added with +, softcap bounds a score.
        Default: scores.scaled_dot(), q . k / sqrt(d).
    mask: which keys a query sees, an object of `regard.masks`: causal, window, prefix, padding, segments, ranges, or
        allow and hide for a bool tensor; they combine with &, | and ~. Default: every query sees every key.
    normaliser: how the scores of a row become weights, an object of `regard.normalisers`: softmax, sparsemax, entmax15,
        sigmoid or hard. Default: normalisers.softmax().
    dropout_p: the probability with which a weight is set to 0 in the output; the others are divided by 1 - dropout_p.
        `weights` are those before dropout. Default: 0, for evaluation.
    plan: "fused" (torch's kernel), "dense" (one tile), "tiled" (many tiles), or "auto" for the fastest that can serve
        the call. The result is the same; `weights.plan` says which was taken, and why.
    budget: bytes of scratch memory for tiles. Default: 64 MiB.

    >>> import torch, regard as rg
    >>> tokens = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
    >>> output, weights = rg.attend(tokens, tokens, tokens, mask=rg.masks.causal())
    >>> output.shape, weights.shape
    (torch.Size([3, 4]), torch.Size([3, 3]))
    >>> weights[0]  # the first query sees the first key only
    tensor([1., 0., 0.])
    """
    if around is not None:
        observed = around(query, key, value, score, mask, normaliser, dropout_p, plan, budget)
        if observed is not None:
            return observed
    if not is_compiling():
        if score is None and normaliser is None and not dropout_p and plan == "auto" and budget is None:
            result = fast_path.attend(query, key, value, mask)
            if result is not None:
                output, parts = result
                return tuple.__new__(Attention, (output, weights_of(parts)))  # as Attention(...), in half the steps
        if torch._C._is_any_autocast_enabled():  # noqa: SLF001
            with without_autocast():
                return attend(query, key, value, score, mask, normaliser, dropout_p, plan, budget)
    spec = inputs.make_spec(score, mask, normaliser)
    if is_sharded(query, key, value):
        from regard.engine.distributed.attention import attend as attend_sharded

        output, sharded = attend_sharded(query, key, value, spec, dropout_p, plan, budget)
        return Attention(output, weights_of(sharded))
    call = plan_cache.find(query, key, value, spec, dropout_p, plan, budget)
    matrix = LazyMatrix.of_call(query, key, call)
    spec = matrix.spec  # a copy, if its tensors could change unnoticed before the backward pass
    output, matrix.lse = grouped_query.pool(call, spec, query, key, value, dropout_p, matrix.draws)
    return Attention(output, weights_of(matrix))


setattr(attend, "__prepare_scriptable__", refuse_script)  # noqa: B010  torch.jit.script looks for it
