"""Grouped-query attention: heads that share their keys, without copies of the keys.

The query heads of a group are more rows of one head, if a mask treats all rows alike.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.engine import decode, inputs, pooling
from regard.engine.plan_cache import PlannedCall
from regard.operands import Operand
from regard.scores import Dot
from regard.spec import Spec


def pool(
    call: PlannedCall,
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    dropout_p: float,
    draws: tuple[Operand, ...] | None,
) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"] | None]:
    """weights @ value of a planned call in the dtype of the query, and the log-sum-exp of each row if it is known.

    `spec` is that of the call, or a copy of it.
    """
    if decode.serves_one_query(call, spec):
        call, spec, key, value = decode.cut_to_visible(call, spec, key, value)
    shape, plan = call.shape, call.plan
    group = _group(call, spec, query, key, value)
    lead = (*shape.lead[:-1], shape.lead[-1] // group) if group > 1 else shape.lead
    rows = query.unflatten(-3, (-1, group)).flatten(-3, -2) if group > 1 else query
    if plan.form == "whole" and decode.serves_chunks(rows, key, value, spec):
        out, lse = decode.pool_chunks(rows, key, value, spec)
    else:
        repeats = 1 if group > 1 else shape.group
        q, k, v = (inputs.upcast(t) for t in (rows, key, value))
        k, v = (inputs.repeat_key_heads(t, repeats) for t in (k, v))
        out, lse = pooling.pool(spec, q, k, v, lead, plan, dropout_p=dropout_p, draws=draws)
    if group > 1:
        out = out.unflatten(-2, (group, shape.n)).flatten(-4, -3)
        lse = None if lse is None else lse.unflatten(-1, (group, shape.n)).flatten(-3, -2)
    return out.to(query.dtype), lse


def _group(call: PlannedCall, spec: Spec, query: Tensor, key: Tensor, value: Tensor) -> int:
    """How many query heads share keys and can be rows of one head; 1 if they have to stay apart."""
    lead = call.shape.lead
    if call.plan.form not in ("whole", "keys", "blocks") or not isinstance(spec.score, Dot) or len(lead) < 2:
        return 1
    if min(query.dim(), key.dim(), value.dim()) < len(lead) + 2 or query.shape[-3] != lead[-1]:
        return 1
    if not 0 < key.shape[-3] == value.shape[-3] < lead[-1]:
        return 1
    mask = None if call.plan.form == "whole" else spec.mask
    if mask is not None and not (mask.per_key and decode.is_same_for_heads(mask, lead)):
        return 1
    return lead[-1] // key.shape[-3]
