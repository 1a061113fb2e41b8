"""What a layer's queries may see, from the two ways in which people say it."""

from __future__ import annotations

from torch import Tensor

from regard import masks
from regard.engine.inputs import make_spec
from regard.errors import MaskError
from regard.masks import Mask
from regard.masks._rules import QueryLengths
from regard.term import type_name


def visible(mask: Mask | None, valid_lens: Tensor | None, *sides: Tensor) -> Mask | None:
    """A mask of `regard.masks` and the lengths of padded sequences, both or either or neither, as one mask.

    Lengths follow the leading dimensions from the left: (batch,) or (batch, heads). Given the `sides`, query and key,
    lengths with one dimension more than those are one for each query: (batch, queries).
    """
    mask = make_spec(None, mask, None).mask  # refuses what is no mask, in words
    if valid_lens is None:
        return mask
    lengths = _lengths(valid_lens, sides)
    return lengths if mask is None else mask & lengths


def leading(*sides: Tensor) -> int:
    """How many dimensions stand before rows and features."""
    return max(side.dim() for side in sides) - 2


def key_counts(valid_lens: Tensor | None, keys: int, lead: int) -> Tensor | int:
    """How many of the keys are no padding, as something that broadcasts with (..., queries)."""
    if valid_lens is None:
        return keys
    counts = valid_lens.clamp(0, keys)
    if counts.dim() > lead:
        return counts
    return counts.reshape(*counts.shape, *[1] * (lead - counts.dim()), 1)


def _lengths(valid_lens: Tensor, sides: tuple[Tensor, ...]) -> Mask:
    try:
        lengths = masks.padding(valid_lens)
    except MaskError:
        msg = f"valid_lens must be a tensor of integers, the number of keys to see, but it is {type_name(valid_lens)}"
        raise MaskError(msg) from None
    tensors = all(isinstance(side, Tensor) for side in sides)  # if not, the checks of `attend` say so
    return QueryLengths(valid_lens) if sides and tensors and valid_lens.dim() > leading(*sides) else lengths
