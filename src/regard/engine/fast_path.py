"""The fast path of `attend`: one call of the fused kernel with few Python steps around it.

After a kernel has run, Python's own objects have left the processor's caches, and every lookup of a name costs several
times what it costs in a tight loop. Small models notice it. So this is one flat function, and all that it needs to know
about a kind of call is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import isfinite, prod
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch._C import _set_grad_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

from regard.engine import decode, inputs, mask_cache, plan_cache, versions
from regard.engine.fused.forms import mask_bias
from regard.engine.fused.kernel import flash, to_4d
from regard.engine.fused.row_runs import row_runs
from regard.engine.lazy_matrix import MatrixParts
from regard.engine.plan import MIN_FUSED_KEYS
from regard.engine.plan_cache import PlannedCall
from regard.masks import Band, Mask
from regard.operands import NEVER, Size, Span, is_sharded
from regard.scores import Dot
from regard.spec import Spec


class KernelCall(NamedTuple):
    """A planned call that is one call of the fused kernel, with the arguments that the kernel needs."""

    causal: bool
    scale: float
    call: PlannedCall  # without the mask, if that holds the caller's tensors
    keys: tuple[int, int] | None = None  # where those begin that all queries see, and how many; None: all keys
    biased: bool = False  # True if the mask becomes a bias
    holds_tensors: bool = False  # True if the mask does
    group: int = 1  # heads of one query that share keys: rows of one head


_kernel_calls: dict[Hashable, KernelCall | None] = {}  # None: that kind of call is not for the fast path
MAX_REMEMBERED_BIAS = 1 << 16  # numbers of a bias that is kept for the next call with that mask
UNKNOWN: Any = object()


def attend(  # noqa: C901  flat on purpose
    query: Tensor, key: Tensor, value: Tensor, mask: Mask | None
) -> tuple[Float[Tensor, "..."], MatrixParts] | None:
    """The output (*batch, queries, dim_v) and the parts of the lazy matrix, or None if the call needs the general path.

    It serves scaled-dot softmax attention on the CPU, of float32 or wider, without broadcasting; heads may share keys
    if there is one query. The mask is the causal one of the kernel, a range of keys that all queries see, that of one
    query, or that of a small matrix.
    """
    if peek_interpreter_stack() is not None or forward_ad._current_level >= 0:  # noqa: SLF001  as `transformed` has it
        return None
    try:
        if not (query.is_cpu and key.is_cpu and value.is_cpu):
            return None
        # The kernel takes the numbers of a row to lie side by side.
        if not query.stride(-1) == key.stride(-1) == value.stride(-1) == 1:
            return None
        rule = (mask.left, mask.right, mask.align) if type(mask) is Band else None if mask is None else mask.signature
        kind = (
            query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, rule,
            type(query), type(key), type(value),
        )  # fmt: skip
        kernel_call = _kernel_calls.get(kind, UNKNOWN)
    except (AttributeError, RuntimeError, IndexError, TypeError):  # no ordinary tensors: the checks say so in words
        return None
    if kernel_call is UNKNOWN:
        kernel_call = None if is_sharded(query, key, value) else _kernel_call(query, key, value, mask)
        plan_cache.remember(_kernel_calls, kind, kernel_call)
    if kernel_call is None:
        return None
    causal, scale, call, keys, biased, holds_tensors, group = kernel_call
    seen_key, seen_value, bias, empty = key, value, None, None
    if keys is not None:
        seen_key, seen_value = key.narrow(-2, *keys), value.narrow(-2, *keys)
    elif biased:
        cols, bias, empty = _visible(mask, call, query.dtype, kind)  # pyright: ignore[reportArgumentType]
        seen_key, seen_value, biased = cols.take(key, -2), cols.take(value, -2), bias is not None
    if group > 1:
        rows = query.reshape(query.shape[0], -1, group, query.shape[-1])
        out, lse = flash(rows, seen_key, seen_value, 0.0, False, attn_mask=bias, scale=scale)
        out, lse = out.reshape(query.shape), lse.reshape(query.shape[:-1])
    elif query.dim() == 4:
        out, lse = flash(query, seen_key, seen_value, 0.0, causal, attn_mask=bias, scale=scale)
    else:
        four = query.unsqueeze(0), seen_key.unsqueeze(0), seen_value.unsqueeze(0)
        out, lse = flash(*four, 0.0, causal, attn_mask=bias, scale=scale)
        out, lse = out.squeeze(0), lse.squeeze(0)
    # Hidden numbers may be NaN or inf. Hidden values harm the output, and are noticed there; hidden keys and queries
    # harm gradients. They are summed after the call, which has brought them into the cache.
    if causal or biased:
        if out.requires_grad:
            _set_grad_enabled(False)  # as torch.no_grad() does, which would take longer than a small sum
            try:
                total = query.sum().item() + key.sum().item() + value.sum().item()
            finally:
                _set_grad_enabled(True)
        else:
            total = out.sum().item()
        if not isfinite(total):
            return None
    if empty is not None:
        lse = lse.masked_fill(empty if query.dim() == 4 else empty.squeeze(0), NEVER)  # the kernel has 0 there
    if holds_tensors:
        call = PlannedCall(Spec(call.spec.score, mask, call.spec.normaliser), *call[1:])
    if (
        holds_tensors or query.is_inference() or key.is_inference()
    ):  # tensors of inference mode keep no count of changes
        query, key, spec = versions.copy_uncounted(query, key, call.spec)
        call = call if spec is call.spec else call._replace(spec=spec)
    current_versions = (("query", query, query._version), ("key", key, key._version))  # noqa: SLF001  torch's own
    if holds_tensors:
        current_versions += versions.versions_of(call.spec.tensors())
    return out, (query, key, call, current_versions, lse)


def _visible(
    mask: Mask, call: PlannedCall, dtype: torch.dtype, kind: Hashable
) -> tuple[Span, Float[Tensor, "#batch #heads rows cols"] | None, Bool[Tensor, "#batch #heads rows"] | None]:
    """The keys that are read, the bias of a mask on them, and the rows that see no key; None if there is none.

    One query reads those that it sees. What was made of a small matrix is remembered.
    """
    shape = call.shape
    size = Size(shape.n, shape.m, torch.device("cpu"))

    def make() -> tuple[Span, Tensor | None, Tensor | None]:
        with torch._C._InferenceMode(False):  # noqa: SLF001  what is kept must serve gradients too
            cols, row = decode.visible_keys(mask, shape.lead, size) if shape.n == 1 else (Span(0, shape.m), mask)
            if row is None:
                return cols, None, None
            made = mask_bias(row, size._replace(m=len(cols)), shape.lead, None, dtype)
            bias = to_4d(made, shape.lead, expand=False)
            empty = bias.amax(-1) == NEVER
            return cols, bias, empty if bool(empty.any()) else None

    if shape.n > 1 and prod(shape.lead) * shape.n * shape.m > MAX_REMEMBERED_BIAS:
        return make()
    return mask_cache.remembered(("bias", kind), mask, make)


def _kernel_call(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    mask: Mask | None,
) -> KernelCall | None:
    """The kernel call for this kind of call, or None if it is not for the fast path."""
    call = plan_cache.make(query, key, value, inputs.make_spec(None, mask, None), 0.0, "auto", None)
    score, form = call.spec.score, call.plan.form
    group = 1
    if call.shape.n == 1 and query.dim() == key.dim() == 4 and 0 < key.shape[1] < query.shape[1]:
        group = query.shape[1] // key.shape[1]
        if mask is not None and not decode.is_same_for_heads(mask, call.shape.lead):
            return None
    heads = key.shape[:-2] if group == 1 else (key.shape[0], group * key.shape[1])
    same = query.shape[:-2] == heads and key.shape[:-2] == value.shape[:-2]
    if not same or query.dim() not in (3, 4) or value.shape[-1] != key.shape[-1] or query.element_size() < 4:
        return None
    if form is None or not isinstance(score, Dot):
        return None
    scale = score.scale_for(key.shape[-1])
    if form in ("whole", "causal"):
        rows_are_queries = form == "whole" or group == 1
        return KernelCall(form == "causal", scale, call, group=group) if rows_are_queries else None
    assert mask is not None  # noqa: S101  else the form would be "whole"
    if not mask.arity:
        keys = _keys_of_all_rows(mask, call)
        if keys is not None:
            return KernelCall(causal=False, scale=scale, call=call, keys=keys, group=group)
    one_query = call.shape.n == 1 and form == "blocks"
    if not (one_query or form in ("keys", "pairs")) or scale < torch.finfo(query.dtype).tiny:
        return None
    if mask.arity:
        call = call._replace(spec=Spec(score, None, call.spec.normaliser))
    return KernelCall(causal=False, scale=scale, call=call, biased=True, holds_tensors=mask.arity > 0, group=group)


def _keys_of_all_rows(mask: Mask, call: PlannedCall) -> tuple[int, int] | None:
    """The first key that all queries see and the number of keys, if all see the same range of enough keys."""
    shape = call.shape
    runs = row_runs(mask, shape.lead, Size(shape.n, shape.m, torch.device("cpu")))
    if runs is None or len(runs) != 1:
        return None
    (run,) = runs
    if run.masked or len(run.rows) < shape.n or len(run.cols) < MIN_FUSED_KEYS:
        return None
    return run.cols.start, len(run.cols)
