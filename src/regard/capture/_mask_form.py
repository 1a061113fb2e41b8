"""Short forms of a model's mask: bands, ranges and hidden keys, O(n + m) numbers in place of n x m.

Masks of models are bands (causal, sliding windows), ranges (padding, packed segments, rows appended one by one) and
keys that no query sees. A mask that is none of these is kept bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard import masks
from regard.masks import Mask
from regard.operands import broadcast_shapes

COMPARED_ROWS = 256  # rows of a mask or a bias that are compared at a time


@dataclass(frozen=True, eq=False)
class MaskForm:
    """The keys, of m, that each of n queries sees: the pairs that all fields allow; without any field, every pair."""

    left: int | None = None  # j >= i + offset - left
    right: int | None = None  # j <= i + offset + right
    offset: int = 0
    # The leading dimensions, batch and heads, are 1 where all share one mask.
    start: Int[Tensor, "_ _ queries"] | None = None  # j >= start_i, together with stop
    stop: Int[Tensor, "_ _ queries"] | None = None  # j < stop_i
    keys: Bool[Tensor, "_ _ keys"] | None = None  # False: no query sees the key
    pairs: Bool[Tensor, "_ _ queries keys"] | None = None  # a mask without a shorter form

    @property
    def is_banded(self) -> bool:
        return self.left is not None or self.right is not None

    @property
    def kind(self) -> tuple[bool, ...]:
        """True for each field that restricts the mask: two masks of one kind have the same fields."""
        fields = (self.left, self.right, self.start, self.keys, self.pairs)
        return self.offset != 0, *(field is not None for field in fields)

    def map(self, change: Callable[[Tensor | None], Tensor | None]) -> MaskForm:
        """The form with each of its tensors changed."""
        return replace(self, **{name: change(getattr(self, name)) for name in ("start", "stop", "keys", "pairs")})

    def hidden_rows(
        self, batch: int, heads: slice, rows: slice, m: int, device: torch.device
    ) -> Bool[Tensor, "#heads #rows keys"] | None:
        """Hidden pairs of some rows, of one sequence and some heads; None if every pair is visible."""
        terms: list[Tensor] = []
        if self.is_banded or self.start is not None:
            terms += self._hidden_by_position(batch, heads, rows, torch.arange(m, device=device))
        if self.keys is not None:
            terms.append(~of_sequence_and_heads(self.keys, batch, heads)[:, None])
        if self.pairs is not None:
            terms.append(~of_sequence_and_heads(self.pairs, batch, heads)[:, rows])
        return reduce(or_, terms) if terms else None

    def _hidden_by_position(
        self, batch: int, heads: slice, rows: slice, key: Int[Tensor, " keys"]
    ) -> Iterator[Bool[Tensor, "#heads rows keys"]]:
        """Pairs that the band and the ranges hide, in some rows; key: the numbers of the keys."""
        at = [i + self.offset for i in range(rows.start, rows.stop, rows.step)]
        if self.left is not None:
            yield key < torch.tensor([[[i - self.left] for i in at]], device=key.device)
        if self.right is not None:
            yield key > torch.tensor([[[i + self.right] for i in at]], device=key.device)
        if self.start is not None and self.stop is not None:
            yield key < of_sequence_and_heads(self.start, batch, heads)[:, rows, None]
            yield key >= of_sequence_and_heads(self.stop, batch, heads)[:, rows, None]

    def mask(self, n: int, m: int) -> Mask | None:
        """The term of `regard.masks` for weights (batch, heads, n, m); None if everything is visible."""
        parts: list[Mask] = []
        if self.is_banded:
            parts.append(self._band(n, m))
        if self.start is not None and self.stop is not None:
            parts.append(masks.ranges(self.start, self.stop))
        if self.keys is not None:
            parts.append(masks.allow(self.keys.unsqueeze(-2)))
        if self.pairs is not None:
            parts.append(masks.allow(self.pairs))
        return reduce(and_, parts) if parts else None

    def _band(self, n: int, m: int) -> Mask:
        align = "top-left" if self.offset == 0 else "bottom-right"
        if self.left is None and self.right == 0:
            return masks.causal(align)
        far = max(n, m) + abs(self.offset)  # as good as no limit
        left, right = (far if side is None else side for side in (self.left, self.right))
        return masks.window(left, right, align)

    def ranges(
        self, n: int, m: int, device: torch.device
    ) -> tuple[Int[Tensor, "#batch #heads queries"], Int[Tensor, "#batch #heads queries"]]:
        """Start and stop of the keys that each query may see, from band and ranges together."""
        at = torch.arange(n, device=device)[None, None] + self.offset
        start = torch.zeros_like(at) if self.left is None else at - self.left
        stop = torch.full_like(at, m) if self.right is None else at + self.right + 1
        if self.start is not None and self.stop is not None:
            start, stop = torch.maximum(start, self.start), torch.minimum(stop, self.stop)
        return start.clamp(0, m), stop.clamp(0, m)

    def empty(self, n: int, m: int, device: torch.device) -> Bool[Tensor, "batch heads queries"]:
        """True for queries that see no key."""
        if self.pairs is not None:
            return ~self.dense(n, m, device).any(-1)
        start, stop = self.ranges(n, m, device)
        if self.keys is None:
            return start >= stop
        before = torch.nn.functional.pad(self.keys.cumsum(-1), (1, 0))  # visible keys before each key
        lead = broadcast_shapes(start.shape[:-1], before.shape[:-1])
        before_edges = [before.expand(*lead, -1).gather(-1, edge.expand(*lead, -1)) for edge in (start, stop)]
        return before_edges[1] <= before_edges[0]

    def dense(self, n: int, m: int, device: torch.device) -> Bool[Tensor, "batch heads queries keys"]:
        """The whole mask."""
        return _dense_rows(self, slice(0, n, 1), m, device)


def recognise(visible: Bool[Tensor, "batch heads queries keys"]) -> MaskForm:
    """The shortest form that equals a mask exactly: candidates are tried from short to long."""
    visible = _without_repeats(visible)
    keys = visible.any(-2)
    start, stop = _edges(visible)
    bands = [MaskForm(), *sorted(_bands(start, stop, visible.shape[-1]), key=lambda b: (b.left or 0) + (b.right or 0))]
    forms = [*bands, *(replace(band, keys=keys) for band in bands)]
    forms += [MaskForm(start=start, stop=stop), MaskForm(start=start, stop=stop, keys=keys)]
    return next((form for form in forms if _is_exactly(form, visible)), MaskForm(pairs=visible.clone()))


def from_ranges(
    start: Int[Tensor, "batch heads queries"],
    stop: Int[Tensor, "batch heads queries"],
    keys: Bool[Tensor, "_ _ keys"] | None,
    m: int,
) -> MaskForm:
    """The form of a range of keys for each query, without the hidden `keys`: a band if it is one."""
    n = start.shape[-1]
    for form in (MaskForm(keys=keys), *_bands(start, stop, m)):
        edges = form.ranges(n, m, start.device)
        if all(bool((a == b).all()) for a, b in zip(edges, (start, stop), strict=True)):
            return replace(form, keys=keys)
    return MaskForm(start=start, stop=stop, keys=keys)


def _without_repeats(visible: Bool[Tensor, "batch heads queries keys"]) -> Bool[Tensor, "#batch #heads queries keys"]:
    """The mask with a batch or heads of 1 where all are equal."""
    for dim in (0, 1):
        if visible.shape[dim] > 1 and (visible.stride(dim) == 0 or _all_equal(visible, dim)):
            visible = visible.narrow(dim, 0, 1)
    return visible


def _all_equal(tensor: Bool[Tensor, "batch heads queries keys"], dim: int) -> bool:
    first = tensor.narrow(dim, 0, 1)
    return all(torch.equal(tensor.narrow(dim, i, 1), first) for i in range(1, tensor.shape[dim]))


def _edges(
    visible: Bool[Tensor, "batch heads queries keys"],
) -> tuple[Int[Tensor, "batch heads queries"], Int[Tensor, "batch heads queries"]]:
    """First visible key of each query, and one behind its last; 0 and 0 where it sees none."""
    m = visible.shape[-1]
    bytes_ = visible.to(torch.uint8)
    sees_a_key = visible.any(-1)
    first, last = bytes_.argmax(-1), m - bytes_.flip(-1).argmax(-1)
    return torch.where(sees_a_key, first, 0), torch.where(sees_a_key, last, 0)


def _bands(
    start: Int[Tensor, "batch heads queries"], stop: Int[Tensor, "batch heads queries"], m: int
) -> Iterator[MaskForm]:
    """The narrowest bands that hold all visible pairs, aligned at the first or at the last key."""
    sees_a_key = stop > 0
    n = sees_a_key.shape[-1]
    if not bool(sees_a_key.any()):
        return
    for offset in dict.fromkeys((0, m - n)):
        at = torch.arange(n, device=sees_a_key.device) + offset
        left, right = int((at - start)[sees_a_key].max()), int((stop - 1 - at)[sees_a_key].max())
        if min(left, right) >= 0:
            yield MaskForm(None, right, offset)
            yield MaskForm(left, None, offset)
            yield MaskForm(left, right, offset)


def _is_exactly(form: MaskForm, visible: Bool[Tensor, "batch heads queries keys"]) -> bool:
    n, m = visible.shape[-2:]
    for low in range(0, n, COMPARED_ROWS):
        part = visible[..., low : low + COMPARED_ROWS, :]
        rows = slice(low, low + part.shape[-2], 1)
        if not torch.equal(_dense_rows(form, rows, m, visible.device).expand_as(part), part):
            return False
    return True


def _dense_rows(form: MaskForm, rows: slice, m: int, device: torch.device) -> Bool[Tensor, "batch heads rows keys"]:
    """The mask of these rows, of every sequence and head."""
    at = torch.arange(m, device=device)
    row = torch.arange(rows.start, rows.stop, rows.step, device=device)[:, None] + form.offset
    terms: list[Tensor] = []
    if form.left is not None:
        terms.append(at >= row - form.left)
    if form.right is not None:
        terms.append(at <= row + form.right)
    if form.start is not None and form.stop is not None:
        start, stop = (edge[..., rows, None] for edge in (form.start, form.stop))
        terms += [at >= start, at < stop]
    if form.keys is not None:
        terms.append(form.keys.unsqueeze(-2))
    if form.pairs is not None:
        terms.append(form.pairs[..., rows, :])
    visible = reduce(and_, terms) if terms else torch.ones(m, dtype=torch.bool, device=device)
    return visible.expand(*(*(1,) * (4 - visible.dim()), *visible.shape)[:-2], len(row), m)


def of_sequence_and_heads(
    tensor: Shaped[Tensor, "batch heads ..."], batch: int, heads: slice
) -> Shaped[Tensor, "some_heads ..."]:
    """One sequence and some heads of a tensor whose batch or heads may be 1 for all."""
    sequence = tensor[0 if tensor.shape[0] == 1 else batch]
    return sequence if tensor.shape[1] == 1 else sequence[heads]
