"""The short way: one call of the kernel and hardly a step around it, where that is all there is.

After a kernel has run, Python's own objects have left the caches, and every name that is looked up costs several
times what it does in a loop of nothing else: small models feel it. So this is one flat function, and what it has to
know of a kind of call is found once.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import isfinite
from typing import Any, NamedTuple

from torch import Tensor
from torch._C import _set_grad_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

from regard.engine import inputs, plan_cache, versions
from regard.engine.fused import kernel
from regard.engine.fused.kernel import flash
from regard.engine.plan import Plan
from regard.masks import Band, Mask
from regard.scores import Dot
from regard.spec import Spec
from regard.weights import Weights


class Way(NamedTuple):
    """A kind of call that is one call of the kernel."""

    causal: bool
    scale: float
    spec: Spec
    shape: inputs.Shape
    plan: Plan
    budget: int


_ways: dict[Hashable, Way | None] = {}
UNKNOWN: Any = object()


def attend(  # noqa: C901  flat on purpose
    query: Tensor, key: Tensor, value: Tensor, mask: Mask | None
) -> tuple[Tensor, Weights] | None:
    """Output and weights, or None where more steps are needed: the long way takes them."""
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
    way = _ways.get(kind, UNKNOWN)
    if way is UNKNOWN:
        way = _find(query, key, value, mask)
        plan_cache.remember(_ways, kind, way)
    if way is None or not query.stride(-1) == key.stride(-1) == value.stride(-1) == 1:  # the kernel reads rows so
        return None
    causal, scale, spec, shape, plan, budget = way
    if query.dim() == 4:
        out, lse = flash(query, key, value, 0.0, causal, scale=scale)
    else:
        out, lse = flash(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), 0.0, causal, scale=scale)
        out, lse = out.squeeze(0), lse.squeeze(0)
    # What is hidden may be NaN or inf. Values do harm to an output, and are seen there; keys and queries do to
    # gradients. Looked at after the call, which has brought the numbers near.
    if causal:
        if out.requires_grad:
            _set_grad_enabled(False)  # as torch.no_grad() does, which would take longer than a small sum
            try:
                seen = query.sum().item() + key.sum().item() + value.sum().item()
            finally:
                _set_grad_enabled(True)
        else:
            seen = out.sum().item()
        if not isfinite(seen):
            return None
    weights: Weights = object.__new__(Weights)
    weights.query, weights.key, weights._lse, weights._memo, weights._drawn = query, key, lse, None, None  # noqa: SLF001
    weights._spec, weights._shape, weights._plan, weights._budget = spec, shape, plan, budget  # noqa: SLF001
    try:
        weights._versions = (("query", query, query._version), ("key", key, key._version))  # noqa: SLF001
    except RuntimeError:  # one was made in inference mode, and keeps no count
        weights._versions = versions.versions({"query": query, "key": key})  # noqa: SLF001
    return out, weights


def _find(query: Tensor, key: Tensor, value: Tensor, mask: Mask | None) -> Way | None:
    spec = inputs.make_spec(None, mask, None)
    shape, plan, budget = plan_cache.make(query, key, value, spec, 0.0, "auto", None)
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.dim() in (3, 4)
    if plan.executor != "fused" or not same or value.shape[-1] != key.shape[-1] or query.element_size() < 4:
        return None
    form = kernel.form(spec, shape.lead, shape.n, shape.m, plan.tile)
    if form not in ("whole", "causal") or not isinstance(spec.score, Dot):
        return None
    return Way(form == "causal", spec.score.scale_for(key.shape[-1]), spec, shape, plan, budget)
