"""What torch's attention function takes and refuses. Its exceptions are kept to, with words of our own."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.engine.inputs import together
from regard.errors import AxisError, CallError, DtypeError, UnsupportedError
from regard.term import type_name

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def check_types(
    query: object, key: object, value: object, attn_mask: object, is_causal: object, enable_gqa: object
) -> None:
    """Raise a TypeError where an argument is not even of the right kind."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            msg = f"{name} must be a torch tensor, but it is {type_name(tensor)}"
            raise DtypeError(msg)
    if attn_mask is not None and not isinstance(attn_mask, Tensor):
        msg = (
            f"attn_mask must be a torch tensor or None, but it is {type_name(attn_mask)} "
            f"(masks of regard.masks are for regard.attend)"
        )
        raise DtypeError(msg)
    for name, flag in (("is_causal", is_causal), ("enable_gqa", enable_gqa)):
        if not isinstance(flag, bool):
            msg = f"{name} must be True or False, but it is {type_name(flag)}"
            raise DtypeError(msg)


def number(value: object, name: str) -> float:
    """A float of what torch takes for one: also integers, numpy's numbers, and tensors of one number that learn not."""
    if isinstance(value, float | int):
        return float(value)
    takes = not isinstance(value, str | bytes | complex) and hasattr(value, "__float__")
    if not takes or (isinstance(value, Tensor) and (value.dim() > 0 or value.requires_grad)):
        msg = f"{name} must be a number, but it is {type_name(value)}"
        raise DtypeError(msg)
    return float(value)  # pyright: ignore[reportArgumentType]


def probability(dropout_p: object) -> float:
    found = number(dropout_p, "dropout_p")
    if not 0 <= found <= 1:
        msg = f"dropout_p is a probability from 0 to 1, not {found}"
        raise CallError(msg)
    return found


def factor(scale: object) -> float | None:
    return None if scale is None else number(scale, "scale")


def autocast(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The tensors as torch.autocast has them: all that is not float64 in its dtype."""
    device = query.device.type
    if not torch.is_autocast_enabled(device):
        return query, key, value, attn_mask
    dtype = torch.get_autocast_dtype(device)

    def cast(tensor: Tensor) -> Tensor:
        floating = tensor.is_floating_point() and tensor.dtype != torch.float64
        return tensor.to(dtype) if floating and tensor.device.type == device else tensor

    return cast(query), cast(key), cast(value), None if attn_mask is None else cast(attn_mask)


def check_numbers(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    """One dtype for all, of those that can be attended with; masks may be boolean or float32 too."""
    dtype = query.dtype
    if not dtype == key.dtype == value.dtype:
        msg = f"query, key and value must have one dtype, but have {dtype}, {key.dtype}, {value.dtype}"
        raise CallError(msg)
    if dtype not in DTYPES:
        msg = f"query, key and value must be of {', '.join(map(str, DTYPES))}, but they are of {dtype}"
        raise UnsupportedError(msg)
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, torch.float32, dtype):
        msg = f"attn_mask must be of torch.bool, torch.float32 or the {dtype} of query, but it is of {attn_mask.dtype}"
        raise CallError(msg)
    if min(query.dim(), key.dim(), value.dim()) < 2:
        shapes = ", ".join(str(tuple(t.shape)) for t in (query, key, value))
        msg = f"query, key and value must be (..., rows, features), two dimensions at least, but they are {shapes}"
        raise CallError(msg)


def ungrouped(query: Tensor, tensor: Tensor, name: str) -> Tensor:
    """As many heads as the query has, or one that serves them all."""
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


def lead(query: Tensor, key: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """The leading shape of the weights, and a query that `attend` does not take for one of grouped heads."""
    found, other = tuple(query.shape[:-2]), tuple(key.shape[:-2])
    if found == other:
        return query, found
    joined = together(found, other)
    if joined is None:
        msg = (
            f"leading dimensions of query and key must be equal or 1 (or heads be grouped, with enable_gqa=True): "
            f"query {tuple(query.shape)}, key {tuple(key.shape)}"
        )
        raise CallError(msg)
    if found and found[-1] != joined[-1]:
        query = query.expand(*found[:-1], joined[-1], *query.shape[-2:])
    return query, joined


def fitting_mask(attn_mask: Tensor, full: tuple[int, ...]) -> Tensor:
    """The mask with two dimensions at least: torch's plain formula takes one that has fewer, its kernel does not."""
    shape = tuple(attn_mask.shape)
    fits = all(a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False))
    if len(shape) > len(full) or not fits:
        msg = f"attn_mask must broadcast to (..., queries, keys) = {full}, but it is {shape}"
        raise (CallError if len(shape) > 1 else AxisError)(msg)
    return attn_mask if len(shape) > 1 else attn_mask.reshape(1, -1)


def any_learns(*tensors: Tensor | None) -> bool:
    return any(t is not None and t.requires_grad for t in tensors)


def laid_out_as(query: Tensor, output: Tensor) -> Tensor:
    """In memory as torch leaves it: what people `view` afterwards was made for that."""
    heads_last = query.dim() == 4 and query.shape == output.shape and not query.is_contiguous()
    if heads_last and query.transpose(1, 2).is_contiguous():
        return output.transpose(1, 2).contiguous().transpose(1, 2)
    return output.contiguous()
