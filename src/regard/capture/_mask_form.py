"""Which keys the queries of a recorded call saw: read off a model's mask, kept in O(n + m) wherever it has a form.

Masks of models are bands (causal, sliding windows), ranges (padding, packed segments, rows appended one by one) and
keys that nobody sees. A mask that is none of these is kept bit by bit, and says how many bytes that takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import torch
from torch import Tensor

from regard import masks
from regard.masks import Mask

ROWS = 256  # of a mask that are compared at a time


@dataclass(frozen=True, eq=False)
class Visible:
    """What n queries see of m keys. Everything that is given must allow a pair; nothing given is everything seen."""

    left: int | None = None  # j >= i + offset - left
    right: int | None = None  # j <= i + offset + right
    offset: int = 0
    start: Tensor | None = None  # (batch or 1, heads or 1, n): j >= start_i, together with stop
    stop: Tensor | None = None
    keys: Tensor | None = None  # (batch or 1, heads or 1, m) of bool
    pairs: Tensor | None = None  # (batch or 1, heads or 1, n, m) of bool: a mask without a form

    @property
    def banded(self) -> bool:
        return self.left is not None or self.right is not None

    def mask(self, n: int, m: int) -> Mask | None:
        """The same as a mask for (batch, heads, n, m) weights."""
        found: list[Mask] = []
        if self.banded:
            found.append(self._band(n, m))
        if self.start is not None and self.stop is not None:
            found.append(masks.ranges(self.start, self.stop))
        if self.keys is not None:
            found.append(masks.allow(self.keys.unsqueeze(-2)))
        if self.pairs is not None:
            found.append(masks.allow(self.pairs))
        return reduce(and_, found) if found else None

    def _band(self, n: int, m: int) -> Mask:
        align = "top-left" if self.offset == 0 else "bottom-right"
        if self.left is None and self.right == 0:
            return masks.causal(align)
        far = max(n, m) + abs(self.offset)  # as good as no limit
        left, right = (far if side is None else side for side in (self.left, self.right))
        return masks.window(left, right, align)

    def ranges(self, n: int, m: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Band and ranges together: the first key that each query may see, and the first beyond."""
        at = torch.arange(n, device=device)[None, None] + self.offset
        start = torch.zeros_like(at) if self.left is None else at - self.left
        stop = torch.full_like(at, m) if self.right is None else at + self.right + 1
        if self.start is not None and self.stop is not None:
            start, stop = torch.maximum(start, self.start), torch.minimum(stop, self.stop)
        return start.clamp(0, m), stop.clamp(0, m)

    def empty(self, n: int, m: int, device: torch.device) -> Tensor:
        """Queries that see no key, (batch or 1, heads or 1, n)."""
        if self.pairs is not None:
            return ~self.dense(n, m, device).any(-1)
        start, stop = self.ranges(n, m, device)
        if self.keys is None:
            return start >= stop
        before = torch.nn.functional.pad(self.keys.cumsum(-1), (1, 0))  # keys that are seen before each place
        lead = torch.broadcast_shapes(start.shape[:-1], before.shape[:-1])
        seen = [before.expand(*lead, -1).gather(-1, edge.expand(*lead, -1)) for edge in (start, stop)]
        return seen[1] <= seen[0]

    def dense(self, n: int, m: int, device: torch.device) -> Tensor:
        """Row by row and key by key, (batch or 1, heads or 1, n, m)."""
        return _between(self, 0, n, m, device)

    def describe(self) -> str:
        """In words, for people."""
        found: list[str] = []
        if self.banded:
            found.append("causal" if self.left is None and self.right == 0 else f"window({self.left}, {self.right})")
        if self.start is not None:
            found.append("ranges")
        if self.keys is not None:
            found.append("padding")
        if self.pairs is not None:
            found.append(f"its own mask, {-(-self.pairs.numel() // 8):,} bytes")
        return " & ".join(found) or "everything"


def recognise(visible: Tensor) -> Visible:
    """The shortest form of a mask (batch or 1, heads or 1, n, m) of bool that says exactly the same."""
    visible = _without_repeats(visible)
    keys = visible.any(-2)
    start, stop = _edges(visible)
    bands = [Visible(), *sorted(_bands(start, stop, visible.shape[-1]), key=lambda b: (b.left or 0) + (b.right or 0))]
    forms = [*bands, *(replace(band, keys=keys) for band in bands)]
    forms += [Visible(start=start, stop=stop), Visible(start=start, stop=stop, keys=keys)]
    return next((form for form in forms if _is_exactly(form, visible)), Visible(pairs=visible.clone()))


def shortest(start: Tensor, stop: Tensor, keys: Tensor | None, m: int) -> Visible:
    """Ranges as a band if they are one."""
    n = start.shape[-1]
    wide = Visible(keys=keys)
    for form in (wide, *_bands(start, stop, m)):
        edges = form.ranges(n, m, start.device)
        if all(bool((a == b).all()) for a, b in zip(edges, (start, stop), strict=True)):
            return replace(form, keys=keys)
    return Visible(start=start, stop=stop, keys=keys)


def _without_repeats(visible: Tensor) -> Tensor:
    """A batch or heads that are all the same count once."""
    for dim in (0, 1):
        if visible.shape[dim] > 1 and (visible.stride(dim) == 0 or _all_equal(visible, dim)):
            visible = visible.narrow(dim, 0, 1)
    return visible


def _all_equal(tensor: Tensor, dim: int) -> bool:
    first = tensor.narrow(dim, 0, 1)
    return all(torch.equal(tensor.narrow(dim, i, 1), first) for i in range(1, tensor.shape[dim]))


def _edges(visible: Tensor) -> tuple[Tensor, Tensor]:
    """The first key that each query sees, and the first beyond the last; 0 and 0 where it sees none."""
    m = visible.shape[-1]
    bytes_ = visible.to(torch.uint8)
    some = visible.any(-1)
    first, last = bytes_.argmax(-1), m - bytes_.flip(-1).argmax(-1)
    return torch.where(some, first, 0), torch.where(some, last, 0)


def _bands(start: Tensor, stop: Tensor, m: int) -> Iterator[Visible]:
    """The narrowest bands, aligned at the beginning or at the end, that hold what is seen."""
    some = stop > 0
    n = some.shape[-1]
    if not bool(some.any()):
        return
    for offset in dict.fromkeys((0, m - n)):
        at = torch.arange(n, device=some.device) + offset
        left, right = int((at - start)[some].max()), int((stop - 1 - at)[some].max())
        if min(left, right) >= 0:
            yield Visible(None, right, offset)
            yield Visible(left, None, offset)
            yield Visible(left, right, offset)


def _is_exactly(form: Visible, visible: Tensor) -> bool:
    n, m = visible.shape[-2:]
    for low in range(0, n, ROWS):
        part = visible[..., low : low + ROWS, :]
        if not torch.equal(_between(form, low, low + part.shape[-2], m, visible.device).expand_as(part), part):
            return False
    return True


def _between(form: Visible, low: int, high: int, m: int, device: torch.device) -> Tensor:
    """What queries low to high see, (batch or 1, heads or 1, high - low, m)."""
    at = torch.arange(m, device=device)
    seen = torch.ones(1, 1, high - low, m, dtype=torch.bool, device=device)
    gap = at - (torch.arange(low, high, device=device)[:, None] + form.offset)
    if form.left is not None:
        seen = seen & (gap >= -form.left)
    if form.right is not None:
        seen = seen & (gap <= form.right)
    if form.start is not None and form.stop is not None:
        start, stop = (edge[..., low:high, None] for edge in (form.start, form.stop))
        seen = seen & (at >= start) & (at < stop)
    if form.keys is not None:
        seen = seen & form.keys.unsqueeze(-2)
    return seen if form.pairs is None else seen & form.pairs[..., low:high, :]
