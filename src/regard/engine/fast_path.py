"""The fast path of `attend`: one call of the fused kernel with few Python steps around it.

After a kernel has run, Python's own objects have left the processor's caches, and every lookup of a name costs several
times what it costs in a tight loop. Small models notice it. So this is one flat function, and all that it needs to know
about a kind of call is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import isfinite
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor
from torch._C import _set_grad_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

from regard.engine import inputs, plan_cache, versions
from regard.engine.fused.kernel import flash
from regard.engine.lazy_matrix import MatrixParts
from regard.engine.plan_cache import PlannedCall
from regard.masks import Band, Mask
from regard.scores import Dot


class KernelCall(NamedTuple):
    """A planned call that is one call of the fused kernel, with the arguments that the kernel needs."""

    causal: bool
    scale: float
    call: PlannedCall


_kernel_calls: dict[Hashable, KernelCall | None] = {}  # None: that kind of call is not for the fast path
UNKNOWN: Any = object()


def attend(  # noqa: C901  flat on purpose
    query: Tensor, key: Tensor, value: Tensor, mask: Mask | None
) -> tuple[Float[Tensor, "..."], MatrixParts] | None:
    """The output (*batch, queries, dim_v) and the parts of the lazy matrix, or None if the call needs the general path.

    It serves plain or causal scaled-dot softmax attention on the CPU, of float32 or wider, without broadcasting.
    """
    if peek_interpreter_stack() is not None or forward_ad._current_level >= 0:  # noqa: SLF001  as `transformed` has it
        return None
    left = right = align = None
    if mask is not None:
        if type(mask) is not Band:
            return None
        left, right, align = mask.left, mask.right, mask.align
    try:
        if not (query.is_cpu and key.is_cpu and value.is_cpu):
            return None
        kind = (query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype, left, right, align)
    except AttributeError:  # not tensors: the checks say so in words
        return None
    kernel_call = _kernel_calls.get(kind, UNKNOWN)
    if kernel_call is UNKNOWN:
        kernel_call = _kernel_call(query, key, value, mask)
        plan_cache.remember(_kernel_calls, kind, kernel_call)
    # The kernel takes the numbers of a row to lie side by side.
    if kernel_call is None or not query.stride(-1) == key.stride(-1) == value.stride(-1) == 1:
        return None
    causal, scale, call = kernel_call
    if query.dim() == 4:
        out, lse = flash(query, key, value, 0.0, causal, scale=scale)
    else:
        out, lse = flash(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), 0.0, causal, scale=scale)
        out, lse = out.squeeze(0), lse.squeeze(0)
    # Hidden numbers may be NaN or inf. Hidden values harm the output, and are noticed there; hidden keys and queries
    # harm gradients. They are summed after the call, which has brought them into the cache.
    if causal:
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
    try:
        current_versions = (("query", query, query._version), ("key", key, key._version))  # noqa: SLF001  torch's own
    except RuntimeError:  # one was made in inference mode, and keeps no count
        current_versions = versions.versions_of({"query": query, "key": key})
    return out, (query, key, call, current_versions, lse)


def _kernel_call(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    mask: Mask | None,
) -> KernelCall | None:
    """The kernel call for this kind of call, or None if it is not for the fast path."""
    call = plan_cache.make(query, key, value, inputs.make_spec(None, mask, None), 0.0, "auto", None)
    score, form = call.spec.score, call.plan.form
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.dim() in (3, 4)
    if not same or value.shape[-1] != key.shape[-1] or query.element_size() < 4:
        return None
    if form not in ("whole", "causal") or not isinstance(score, Dot):
        return None
    return KernelCall(form == "causal", score.scale_for(key.shape[-1]), call)
