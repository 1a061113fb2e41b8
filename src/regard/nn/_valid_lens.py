"""Masks and `valid_lens` (lengths of padded sequences) of a layer's call, combined into one mask."""

from __future__ import annotations

from jaxtyping import Integer
from torch import Tensor

from regard import masks
from regard.engine.inputs import make_spec
from regard.errors import MaskError
from regard.masks import Mask, QueryLengths
from regard.term import type_name


def combined_mask(mask: Mask | None, valid_lens: Integer[Tensor, "..."] | None, *inputs: Tensor) -> Mask | None:
    """One mask for a mask of `regard.masks` and the lengths of padded sequences, either of which may be None.

    Lengths follow the leading dimensions from the left: (batch,) or (batch, heads). Given the inputs, query and key,
    lengths with one dimension more than their leading ones are one for each query: (batch, queries).
    """
    mask = make_spec(None, mask, None).mask  # refuses what is no mask
    if valid_lens is None:
        return mask
    lengths = _length_mask(valid_lens, inputs)
    return lengths if mask is None else mask & lengths


def lead_dims(*inputs: Tensor) -> int:
    """Number of dimensions before rows and features."""
    return max(tensor.dim() for tensor in inputs) - 2


def key_counts(
    valid_lens: Integer[Tensor, "..."] | None, keys: int, lead: int
) -> Integer[Tensor, "... #queries"] | int:
    """Number of keys that are no padding, in a shape that broadcasts with (..., queries)."""
    if valid_lens is None:
        return keys
    counts = valid_lens.clamp(0, keys)
    if counts.dim() > lead:
        return counts
    return counts.reshape(*counts.shape, *[1] * (lead - counts.dim()), 1)


def _length_mask(valid_lens: Integer[Tensor, "..."], inputs: tuple[Tensor, ...]) -> Mask:
    try:
        lengths = masks.padding(valid_lens)
    except MaskError:
        msg = f"valid_lens must be a tensor of integers, the number of keys to see, but it is {type_name(valid_lens)}"
        raise MaskError(msg) from None
    if not inputs or not all(isinstance(tensor, Tensor) for tensor in inputs):  # `attend` refuses what is no tensor
        return lengths
    return QueryLengths(valid_lens) if valid_lens.dim() > lead_dims(*inputs) else lengths
