"""Arguments of `torch.nn.functional.scaled_dot_product_attention`: what torch takes, how it reads it, what it refuses.

What torch refuses is refused with an exception of the same type and a message of our own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from regard.engine.inputs import broadcast_lead
from regard.errors import AxisError, CallError, DtypeError, MaskError, UnsupportedError
from regard.masks import Align
from regard.term import type_name
from regard.torch_compat.masks import plain_mask

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


class Arguments(NamedTuple):
    """One call of scaled_dot_product_attention, with torch's names, order and defaults."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        return self.query, self.key, self.value, self.attn_mask

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the tensors, by name."""
        names = ("dropout_p", "is_causal", "scale", "enable_gqa")
        return {name: getattr(self, name) for name in names}

    @property
    def needs_gradient(self) -> bool:
        """True if a derivative with respect to one of the tensors may be taken."""
        return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in self.tensors)

    def with_plain_mask(self) -> tuple[Arguments, Align]:
        """The call with an ordinary tensor as its mask, and where its causal mask begins.

        torch's `CausalBias` becomes is_causal, at the top left as torch's, or at the bottom right.
        """
        if self.attn_mask is None or min(self.query.dim(), self.key.dim()) < 2:
            return self, "top-left"
        mask = plain_mask(self.attn_mask, self.query.shape[-2], self.key.shape[-2])
        if isinstance(mask, Tensor):
            return self._replace(attn_mask=mask), "top-left"
        if self.is_causal:
            msg = "a CausalBias as attn_mask and is_causal=True exclude each other, as for torch: give one of them"
            raise MaskError(msg)
        return self._replace(attn_mask=None, is_causal=True), mask

    def autocast(self) -> Arguments:
        """The arguments as torch.autocast hands them to the kernel: all floating point but float64 in its dtype."""
        device = self.query.device.type
        if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
            return self
        dtype = torch.get_autocast_dtype(device)

        def cast(tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
            floating = tensor.is_floating_point() and tensor.dtype != torch.float64
            return tensor.to(dtype) if floating and tensor.device.type == device else tensor

        mask = None if self.attn_mask is None else cast(self.attn_mask)
        return Arguments(cast(self.query), cast(self.key), cast(self.value), mask, *self[4:])

    def check_types(self) -> None:
        """Raise a TypeError where an argument has the wrong type."""
        for name, tensor in (("query", self.query), ("key", self.key), ("value", self.value)):
            if not isinstance(tensor, Tensor):
                msg = f"{name} must be a torch tensor, but it is {type_name(tensor)}"
                raise DtypeError(msg)
        if self.attn_mask is not None and not isinstance(self.attn_mask, Tensor):
            msg = (
                f"attn_mask must be a torch tensor or None, but it is {type_name(self.attn_mask)} "
                f"(masks of regard.masks are for regard.attend)"
            )
            raise DtypeError(msg)
        for name, flag in (("is_causal", self.is_causal), ("enable_gqa", self.enable_gqa)):
            if not isinstance(flag, bool):
                msg = f"{name} must be True or False, but it is {type_name(flag)}"
                raise DtypeError(msg)

    def check_tensors(self) -> None:
        """Refuse dtypes and numbers of dimensions that torch refuses; a mask may be boolean or float32 too."""
        query, key, value, attn_mask = self.tensors
        dtype = query.dtype
        if not dtype == key.dtype == value.dtype:
            msg = f"query, key and value must have one dtype, but have {dtype}, {key.dtype}, {value.dtype}"
            raise CallError(msg)
        if dtype not in DTYPES:
            msg = f"query, key and value must be of {', '.join(map(str, DTYPES))}, but they are of {dtype}"
            raise UnsupportedError(msg)
        if attn_mask is not None and attn_mask.is_nested:
            msg = "attn_mask must be an ordinary tensor, but it is nested: pad it, and hide the padding"
            raise CallError(msg)
        if attn_mask is not None and attn_mask.dtype not in (torch.bool, torch.float32, dtype):
            msg = (
                f"attn_mask must be of torch.bool, torch.float32 or the {dtype} of query, but it is of "
                f"{attn_mask.dtype}"
            )
            raise CallError(msg)
        if min(query.dim(), key.dim(), value.dim()) < 2:
            shapes = ", ".join(str(tuple(t.shape)) for t in (query, key, value))
            msg = f"query, key and value must be (..., rows, features), two dimensions at least, but they are {shapes}"
            raise CallError(msg)


def dropout_probability(dropout_p: object) -> float:
    """dropout_p as a float from 0 to 1."""
    p = _number(dropout_p, "dropout_p")
    if not 0 <= p <= 1:
        msg = f"dropout_p is a probability from 0 to 1, not {p}"
        raise CallError(msg)
    return p


def scale_factor(scale: object) -> float | None:
    """The factor of the scores as a float, or None for 1 / sqrt(d)."""
    return None if scale is None else _number(scale, "scale")


def _number(value: object, name: str) -> float:
    """A float of what torch takes for one: integers, numpy's numbers, and tensors of one number without a gradient."""
    if isinstance(value, float | int):
        return float(value)
    takes = not isinstance(value, str | bytes | complex) and hasattr(value, "__float__")
    if not takes or (isinstance(value, Tensor) and (value.dim() > 0 or value.requires_grad)):
        msg = f"{name} must be a number, but it is {type_name(value)}"
        raise DtypeError(msg)
    return float(value)  # pyright: ignore[reportArgumentType]


def repeat_heads(
    query: Float[Tensor, "... queries dim_q"], tensor: Float[Tensor, "... keys dim"], name: str
) -> Float[Tensor, "... keys dim"]:
    """Keys or values with as many heads as the query has, or with the one head that serves them all (enable_gqa)."""
    if min(query.dim(), tensor.dim()) < 3:
        msg = (
            f"enable_gqa=True groups heads, on axis -3, so three dimensions are needed: "
            f"query is {tuple(query.shape)}, {name} is {tuple(tensor.shape)}"
        )
        raise AxisError(msg)
    wanted, heads = query.shape[-3], tensor.shape[-3]
    if heads in (1, wanted):
        return tensor
    if heads == 0 or wanted % heads:
        msg = (
            f"enable_gqa=True needs query heads that are a multiple of those of {name}: query has {wanted}, "
            f"{name} has {heads} (query {tuple(query.shape)}, {name} {tuple(tensor.shape)})"
        )
        raise CallError(msg)
    return tensor.repeat_interleave(wanted // heads, -3)


def expand_heads(
    query: Float[Tensor, "*lead queries dim"], key: Float[Tensor, "*key_lead keys dim_k"]
) -> tuple[Float[Tensor, "... queries dim"], tuple[int, ...]]:
    """The query with all heads that it has to serve, and the leading shape of the weights.

    `attend` would take a query with fewer heads than the key for one of grouped heads, which torch does not.
    """
    lead, other = tuple(query.shape[:-2]), tuple(key.shape[:-2])
    if lead == other:
        return query, lead
    joined = broadcast_lead(lead, other)
    if joined is None:
        msg = (
            f"leading dimensions of query and key must be equal or 1 (or heads be grouped, with enable_gqa=True): "
            f"query {tuple(query.shape)}, key {tuple(key.shape)}"
        )
        raise CallError(msg)
    if lead and lead[-1] != joined[-1]:
        query = query.expand(*lead[:-1], joined[-1], *query.shape[-2:])
    return query, joined


def broadcastable_mask(attn_mask: Shaped[Tensor, "..."], full: tuple[int, ...]) -> Shaped[Tensor, "... #queries #keys"]:
    """The mask, checked to broadcast to `full`, with two dimensions at least.

    torch's plain formula takes a mask of fewer dimensions, its kernel does not.
    """
    shape = tuple(attn_mask.shape)
    fits = all(a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False))
    if len(shape) > len(full) or not fits:
        msg = f"attn_mask must broadcast to (..., queries, keys) = {full}, but it is {shape}"
        raise (CallError if len(shape) > 1 else AxisError)(msg)
    return attn_mask if len(shape) > 1 else attn_mask.reshape(1, -1)


def torch_strides(
    query: Float[Tensor, "... queries dim"], output: Float[Tensor, "*batch queries dim_v"]
) -> Float[Tensor, "*batch queries dim_v"]:
    """The output with the memory layout that torch gives it, which callers rely on when they `view` it."""
    heads_last = query.dim() == 4 and query.shape == output.shape and not query.is_contiguous()
    if heads_last and query.transpose(1, 2).is_contiguous():
        return output.transpose(1, 2).contiguous().transpose(1, 2)
    return output.contiguous()
