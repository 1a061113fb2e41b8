"""What a layer's queries may see, from the two ways in which people say it."""

from __future__ import annotations

from torch import Tensor

from regard import masks
from regard.masks import Mask


def visible(mask: Mask | None, valid_lens: Tensor | None) -> Mask | None:
    """A mask of `regard.masks` and the lengths of padded sequences, both or either or neither, as one mask."""
    if valid_lens is None:
        return mask
    lengths = masks.padding(valid_lens)
    return lengths if mask is None else mask & lengths
