"""Checks of the inputs of a call: shapes, dtypes and devices, with messages that say what would be right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from regard import masks, normalisers, scores
from regard.errors import ChoiceError, DeviceError, DtypeError, MaskError, ShapeError
from regard.masks import Mask
from regard.normalisers import Normaliser, softmax
from regard.operands import broadcast_shapes
from regard.scores import Score, scaled_dot
from regard.spec import Spec
from regard.term import advise_call, check_ordinary, select_index
from regard.tracing import check_known_sizes

BUDGET = 64 << 20  # bytes of scratch memory, if the caller does not say
GROUPED_FROM = 4  # dimensions a tensor needs for its heads (axis -3) to be grouped


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """The shape (*lead, n, m) of a matrix of weights, and how its key heads are shared."""

    lead: tuple[int, ...]  # batch, heads
    n: int  # queries
    m: int  # keys
    group: int  # query heads that share one key head


def make_spec(score: Score | None, mask: Mask | None, normaliser: Normaliser | None) -> Spec:
    """Score, mask and normaliser as one spec, with defaults for those that are None."""
    if score is not None and not isinstance(score, Score):
        msg = advise_call(score, "score", scores) or (
            f"score is one of regard.scores, such as scores.scaled_dot(), but it is {_describe(score)}"
        )
        raise DtypeError(msg)
    if mask is not None and not isinstance(mask, Mask):
        msg = advise_call(mask, "mask", masks) or (
            f"mask is one of regard.masks, but it is {_describe(mask)}: say what True means with "
            f"masks.allow(t) (True is seen) or masks.hide(t) (True is hidden)"
        )
        if isinstance(mask, Tensor) and mask.is_floating_point():
            msg += "; numbers to add to the scores go to scores.bias(t)"
        raise MaskError(msg)
    if normaliser is not None and not isinstance(normaliser, Normaliser):
        msg = advise_call(normaliser, "normaliser", normalisers) or (
            f"normaliser is one of regard.normalisers, such as normalisers.softmax(), but it is {_describe(normaliser)}"
        )
        raise DtypeError(msg)
    return Spec(score or scaled_dot(), mask, normaliser or softmax())


def check(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"] | None,
    spec: Spec,
) -> MatrixShape:
    """The shape of the weights, after a check of all inputs. Without a value only query, key and spec are checked."""
    named = {"query": query, "key": key} | ({} if value is None else {"value": value})
    _check_tensors(named)
    if value is not None and key.shape[-2] != value.shape[-2]:
        msg = (
            f"keys and values must have the same length: key has {key.shape[-2]} rows, value has {value.shape[-2]} "
            f"(key {tuple(key.shape)}, value {tuple(value.shape)})"
        )
        raise ShapeError(msg)
    shape = _shape(query, key)
    if value is not None:
        _check_value_lead(shape, key, value)
    spec.score.check(shape.n, shape.m, query.shape[-1], key.shape[-1])
    _check_score_tensors(spec, shape, query)
    if spec.mask is not None:
        spec.mask.check(shape.lead, shape.n, shape.m)
    return shape


def check_options(dropout_p: float, plan: str, budget: int | None) -> int:
    """The budget in bytes, after a check of the options of `attend`."""
    if plan not in ("auto", "dense", "tiled", "fused"):
        msg = f"plan is 'auto', 'dense', 'tiled' or 'fused', not {plan!r}"
        raise ChoiceError(msg)
    if not (isinstance(dropout_p, Real) and 0 <= dropout_p < 1):
        msg = f"dropout_p is a probability from 0 up to but not including 1, not {dropout_p!r}"
        raise ChoiceError(msg)
    if budget is not None and not (isinstance(budget, Real) and 0 < budget < math.inf):
        msg = f"budget is the bytes of scratch memory allowed, a finite number above 0, not {budget!r}"
        raise ChoiceError(msg)
    return BUDGET if budget is None else int(budget)


def upcast(tensor: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The tensor in float32 if it is float16 or bfloat16: those are only stored, never computed with."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def repeat_key_heads(tensor: Shaped[Tensor, "*batch keys dim"], group: int) -> Shaped[Tensor, "... keys dim"]:
    """The tensor with every head (axis -3) repeated `group` times: one key head for each query head."""
    return tensor if group == 1 else tensor.repeat_interleave(group, -3)


def select_lead(tensor: Shaped[Tensor, "..."], axis: int, index: int, lead: int) -> Shaped[Tensor, "..."]:
    """A tensor (..., rows, dim) at one index of an axis of `lead` leading axes, with which it broadcasts."""
    own = tensor.dim() - 2 - lead + axis
    return select_index(tensor, own if own >= 0 else None, index)


def broadcast_lead(one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape to which two leading shapes broadcast, or None if they do not."""
    try:
        return broadcast_shapes(one, two)
    except RuntimeError:
        return None


def _check_tensors(named: dict[str, Tensor]) -> None:
    """Refuse anything but floating-point tensors of at least two dimensions, of one dtype, on one device."""
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor):
            msg = f"{name} must be a torch tensor, but it is {_describe(tensor)}"
            raise DtypeError(msg)
        check_ordinary(tensor, name)
        check_known_sizes(name, tensor)
        if not tensor.is_floating_point():
            msg = f"{name} must hold floating point numbers, but its dtype is {tensor.dtype}"
            raise DtypeError(msg)
        if tensor.dim() < 2:
            msg = (
                f"{name} must be (..., rows, features), two dimensions at least, but its shape is {tuple(tensor.shape)}"
            )
            raise ShapeError(msg)
    if len({t.dtype for t in named.values()}) > 1:
        msg = f"{_list(named)} must have one dtype, but have {', '.join(str(t.dtype) for t in named.values())}"
        raise DtypeError(msg)
    if len({t.device for t in named.values()}) > 1:
        msg = f"{_list(named)} must be on one device, but are on {', '.join(str(t.device) for t in named.values())}"
        raise DeviceError(msg)


def _shape(query: Float[Tensor, "... queries dim_q"], key: Float[Tensor, "... keys dim_k"]) -> MatrixShape:
    """The shape of the matrix of weights; key heads may be fewer than query heads (grouped-query attention)."""
    q_lead, k_lead = tuple(query.shape[:-2]), tuple(key.shape[:-2])
    group = 1
    if min(query.dim(), key.dim()) >= GROUPED_FROM and k_lead[-1] not in (1, q_lead[-1]):
        if k_lead[-1] == 0 or q_lead[-1] % k_lead[-1]:
            msg = (
                f"query heads must be a multiple of key heads: query has {q_lead[-1]}, key has {k_lead[-1]} "
                f"(query {tuple(query.shape)}, key {tuple(key.shape)})"
            )
            raise ShapeError(msg)
        group = q_lead[-1] // k_lead[-1]
        k_lead = (*k_lead[:-1], q_lead[-1])
    lead = broadcast_lead(q_lead, k_lead)
    if lead is None:
        msg = (
            f"leading dimensions of query and key must be equal or 1 (heads, on axis -3 of four or more dimensions, "
            f"may be grouped): query {tuple(query.shape)}, key {tuple(key.shape)}"
        )
        raise ShapeError(msg)
    return MatrixShape(lead, query.shape[-2], key.shape[-2], group)


def _check_value_lead(
    shape: MatrixShape, key: Float[Tensor, "... keys dim_k"], value: Float[Tensor, "... keys dim_v"]
) -> None:
    """Refuse values whose leading dimensions do not fit those of the weights."""
    lead = tuple(value.shape[:-2])
    if shape.group > 1:
        if value.dim() < GROUPED_FROM or lead[-1] != key.shape[-3]:
            msg = f"keys and values must have the same heads: key {tuple(key.shape)}, value {tuple(value.shape)}"
            raise ShapeError(msg)
        lead = (*lead[:-1], shape.lead[-1])
    if broadcast_lead(shape.lead, lead) is None:
        msg = (
            f"leading dimensions of value must be equal to those of the weights, {shape.lead}, or 1: "
            f"value {tuple(value.shape)}"
        )
        raise ShapeError(msg)


def has_extra_lead(shape: MatrixShape, value: Float[Tensor, "... keys dim_v"]) -> bool:
    """True if the values have leading dimensions that the weights do not have."""
    lead = tuple(value.shape[:-2])
    if shape.group > 1:
        lead = (*lead[:-1], shape.lead[-1])
    return broadcast_lead(shape.lead, lead) != shape.lead


def _check_score_tensors(spec: Spec, shape: MatrixShape, query: Float[Tensor, "... queries dim_q"]) -> None:
    """Refuse tensors of the score on another device, or with heads that do not fit the weights."""
    for name, tensor in spec.tensors().items():
        if tensor.device != query.device:
            msg = f"{name} must be on the device of query, {query.device}, but it is on {tensor.device}"
            raise DeviceError(msg)
    for name, lead in spec.score.leading_shapes():
        if broadcast_lead(shape.lead, lead) != shape.lead:
            msg = f"{name} has leading shape {lead}, which does not broadcast to that of the weights, {shape.lead}"
            raise ShapeError(msg)


def _describe(value: object) -> str:
    """A value in the words of an error message."""
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else f"{type(value).__name__} ({value!r:.40})"


def _list(named: dict[str, Tensor]) -> str:
    """Names joined as in a sentence: "a, b and c"."""
    names = list(named)
    return f"{', '.join(names[:-1])} and {names[-1]}"
