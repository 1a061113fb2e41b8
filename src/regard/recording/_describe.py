"""What queries see, in words for people."""

from __future__ import annotations

from regard.masks import Mask
from regard.masks._base import Both
from regard.masks._rules import Allow, Ranges


def describe(mask: Mask | None) -> str:
    """A mask that has a form by its name; one that has none with the bytes that its bits take."""
    if mask is None:
        return "everything"
    if isinstance(mask, Both):
        return f"{describe(mask.first)} & {describe(mask.second)}"
    if isinstance(mask, Ranges):
        return "ranges"
    if isinstance(mask, Allow):
        return "padding" if mask.per_key else f"its own mask, {-(-mask.visible.numel() // 8):,} bytes"
    return str(mask)
