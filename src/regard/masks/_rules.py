"""Masks by position (band, prefix), by length (padding, ranges, near), by segment, and by a table of booleans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.errors import MaskError, ShapeError
from regard.masks._base import ALL, NONE, SOME, Mask, RowRanges, Whole
from regard.operands import Axis, Operand, Size, Span, broadcast_shapes

Align = Literal["top-left", "bottom-right"]


@dataclass(frozen=True)
class Band(Mask):
    """-left <= j - i <= right; None is no limit. `align` says which query stands beside which key if n != m."""

    left: int | None
    right: int | None
    align: Align | None
    name: str

    @property
    def relative(self) -> bool:
        return True

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        if n != m and self.align is None:
            msg = (
                f"{self.name} with {n} queries and {m} keys needs align='top-left' (query 0 beside key 0) or "
                f"align='bottom-right' (the last query beside the last key)"
            )
            raise MaskError(msg)

    def offset(self, size: Size) -> int:
        """The key beside which query 0 stands."""
        return size.m - size.n if self.align == "bottom-right" else 0

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del tensors
        # Compared, not subtracted: a tile of bits, and no tile of whole numbers.
        query, key = rows.positions(size.device)[:, None] + self.offset(size), cols.positions(size.device)
        if self.left is None:
            return key <= query + (self.right or 0)
        from_left = key >= query - self.left
        return from_left if self.right is None else from_left & (key <= query + self.right)

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del tensors
        first, last = rows.start + self.offset(size), rows.stop - 1 + self.offset(size)
        low = -self.left if self.left is not None else -(1 << 62)
        high = self.right if self.right is not None else 1 << 62
        states: list[int] = []
        for start, stop in pairwise(edges):
            nearest, farthest = start - last, stop - 1 - first
            outside = farthest < low or nearest > high
            states.append(NONE if outside else ALL if nearest >= low and farthest <= high else SOME)
        return states

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        first, last = rows.start + self.offset(size), rows.stop - 1 + self.offset(size)
        low = 0 if self.left is None else max(0, first - self.left)
        high = size.m if self.right is None else min(size.m, last + self.right + 1)
        return [(low, high)] if low < high else []

    def part(self, whole: Whole, rows: Span, cols: Span) -> Mask:
        if rows.index is not None or cols.index is not None:
            return super().part(whole, rows, cols)
        moved = cols.start - rows.start - self.offset(whole.size)
        left = None if self.left is None else self.left + moved
        right = None if self.right is None else self.right - moved
        if right is not None and left is not None and left >= len(rows) - 1:
            left = None  # it hides nothing here, and the kernel has a causal mask without it
        return Band(left, right, "top-left", self.name)

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges:
        del tensors
        beside = torch.arange(size.n, device=size.device) + self.offset(size)
        start = torch.zeros_like(beside) if self.left is None else beside - self.left
        return start, torch.full_like(beside, size.m) if self.right is None else beside + self.right + 1

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Prefix(Mask):
    """Every query sees the first `length` keys."""

    length: int

    @property
    def per_key(self) -> bool:
        return True

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del tensors, rows
        return (cols.positions(size.device) < self.length)[None, :]

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del tensors, rows, size
        return _prefix_states(edges, self.length, self.length)

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        del rows
        return [(0, min(self.length, size.m))] if self.length and size.m else []

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges:
        del tensors
        stop = torch.full((1,), min(self.length, size.m), device=size.device)
        return torch.zeros_like(stop), stop

    def __repr__(self) -> str:
        return f"prefix({self.length})"


def _prefix_states(edges: Sequence[int], shortest: int, longest: int) -> list[int]:
    """States of blocks of columns, where each row sees a prefix of between `shortest` and `longest` keys."""
    pairs = pairwise(edges)
    return [ALL if stop <= shortest else NONE if start >= longest else SOME for start, stop in pairs]


def _prefix_ranges(lengths: Tensor) -> RowRanges:
    """The ranges of rows that see a prefix; lengths are (..., n or 1, 1)."""
    stop = lengths.squeeze(-1)
    return torch.zeros_like(stop), stop


@dataclass(frozen=True, eq=False, repr=False)
class Padding(Mask):
    """Every query sees the first `lengths` keys; lengths have the leading axes (batch, ...) from the left."""

    lengths: Tensor

    n_operands = 1
    trailing_axes: ClassVar[Mapping[str, int]] = {"lengths": 0}

    @property
    def per_key(self) -> bool:
        return True

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        _check_left(self.lengths.shape, lead, "lengths of padding")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (Operand(_from_left(self.lengths, len(lead), 0)[..., None, None], Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, size
        (lengths,) = tensors
        return cols.positions(lengths.device) < lengths

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del rows, size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        (lengths,) = tensors
        return _prefix_states(edges, int(lengths.min()), int(lengths.max()))

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges:
        del size
        return _prefix_ranges(tensors[0])

    def __repr__(self) -> str:
        return "padding(lengths)"


@dataclass(frozen=True, eq=False, repr=False)
class QueryLengths(Mask):
    """Query i sees the first lengths[..., i] keys; lengths are (..., n), leading axes from the left."""

    lengths: Tensor

    n_operands = 1
    trailing_axes: ClassVar[Mapping[str, int]] = {"lengths": 1}

    def label(self, field: str) -> str:
        del field
        return "valid_lens"

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        _check_rows(self.lengths.shape, lead, n, "valid_lens", "length")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (Operand(_from_left(self.lengths, len(lead), 1)[..., None], Axis.QUERY),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, size
        (lengths,) = tensors
        return cols.positions(lengths.device) < lengths

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        lengths = rows.take(tensors[0], -2)
        return _prefix_states(edges, int(lengths.min()), int(lengths.max()))

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges:
        del size
        return _prefix_ranges(tensors[0])

    def __repr__(self) -> str:
        return "j < length_i"


@dataclass(frozen=True, eq=False, repr=False)
class Ranges(Mask):
    """Query i sees keys start_i to stop_i - 1; both are (..., n), leading axes from the left."""

    start: Tensor
    stop: Tensor

    n_operands = 2
    trailing_axes: ClassVar[Mapping[str, int]] = {"start": 1, "stop": 1}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        for name, edge in (("start", self.start), ("stop", self.stop)):
            _check_rows(edge.shape, lead, n, f"{name} of ranges", "key")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        edges = (self.start, self.stop)
        return tuple([Operand(_from_left(edge, len(lead), 1)[..., None], Axis.QUERY) for edge in edges])

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, size
        start, stop = tensors
        at = cols.positions(start.device)
        return (at >= start) & (at < stop)

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del size
        if tensors is None or not tensors[0].numel() or not tensors[1].numel():
            return [SOME] * (len(edges) - 1)
        start, stop = (rows.take(tensor, -2) for tensor in tensors)
        first, last, shortest, longest = int(start.min()), int(start.max()), int(stop.min()), int(stop.max())
        return [
            NONE if a >= longest or b <= first else ALL if a >= last and b <= shortest else SOME
            for a, b in pairwise(edges)
        ]

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges:
        del size
        start, stop = tensors
        return start.squeeze(-1), stop.squeeze(-1)

    def __repr__(self) -> str:
        return "ranges(start, stop)"


@dataclass(frozen=True, eq=False, repr=False)
class Near(Mask):
    """Query i sees keys |j - p_i| <= radius around its centre p_i, a real number; centres are (..., n)."""

    centres: Tensor
    radius: int

    n_operands = 1
    trailing_axes: ClassVar[Mapping[str, int]] = {"centres": 1}

    def label(self, field: str) -> str:
        del field
        return "the positions"

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        _check_rows(self.centres.shape, lead, n, "positions", "position")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (Operand(_from_left(self.centres, len(lead), 1)[..., None], Axis.QUERY),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, size
        (centres,) = tensors
        return ~(
            (cols.positions(centres.device) - centres).abs() > self.radius
        )  # NaN counts as near, so that it is seen

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        centres = rows.take(tensors[0], -2)
        first, last = float(centres.min()), float(centres.max())
        states: list[int] = []
        for start, stop in pairwise(edges):
            outside = stop - 1 < first - self.radius or start > last + self.radius
            inside = start >= last - self.radius and stop - 1 <= first + self.radius
            states.append(NONE if outside else ALL if inside else SOME)
        return states

    def __repr__(self) -> str:
        return f"|j - p| <= {self.radius}"


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Mask):
    """A query sees the keys with its own segment id; ids are (..., n) and (..., m), leading axes from the left."""

    q_ids: Tensor
    k_ids: Tensor

    n_operands = 2
    trailing_axes: ClassVar[Mapping[str, int]] = {"q_ids": 1, "k_ids": 1}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        for name, ids, length in (("q_ids", self.q_ids, n), ("k_ids", self.k_ids, m)):
            if ids.shape[-1] != length:
                what = "queries" if name == "q_ids" else "keys"
                msg = (
                    f"{name} of segments needs one id for each of {length} {what}, but its shape is {tuple(ids.shape)}"
                )
                raise ShapeError(msg)
            _check_left(ids.shape[:-1], lead, f"{name} of segments")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (
            Operand(_from_left(self.q_ids, len(lead), 1)[..., None], Axis.QUERY),
            Operand(_from_left(self.k_ids, len(lead), 1)[..., None], Axis.KEY),
        )

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, cols, size
        queries, keys = tensors
        return queries == keys.mT

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        queries, keys = rows.take(tensors[0], -2), tensors[1]
        low, high = int(queries.min()), int(queries.max())
        flat = keys.reshape(-1, keys.shape[-2])
        lowest, highest = flat.amin(0), flat.amax(0)
        pairs = pairwise(edges)
        blocks = [(int(lowest[a:b].min()), int(highest[a:b].max())) for a, b in pairs]
        return [NONE if x > high or y < low else ALL if x == y == low == high else SOME for x, y in blocks]

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges | None:
        """The place of each query's segment among the keys, if every segment is in one piece there."""
        if not size.m:
            return None
        queries, keys = (ids.squeeze(-1).long() for ids in tensors)
        if queries.numel() == 1 and keys.numel() == size.m:  # one query: its keys are found without sorting
            return _range_of((keys == queries).flatten())
        lead = broadcast_shapes(queries.shape[:-1], keys.shape[:-1])
        queries, keys = (ids.expand(*lead, -1).contiguous() for ids in (queries, keys))
        ordered, place = keys.sort(stable=True)
        if not bool(((place.diff() == 1) | (ordered.diff() != 0)).all()):
            return None
        first, last = (torch.searchsorted(ordered, queries, right=right) for right in (False, True))
        start = place.gather(-1, first.clamp_max(size.m - 1))
        return start, start + last - first

    def __repr__(self) -> str:
        return "segments(q_ids, k_ids)"


def _range_of(visible: Bool[Tensor, " keys"]) -> RowRanges | None:
    """The range of the keys that one row sees, or None if there is a hidden key between them."""
    seen = visible.nonzero().squeeze(-1)
    if not len(seen):
        return torch.zeros_like(visible[:1], dtype=torch.long), torch.zeros_like(visible[:1], dtype=torch.long)
    start, stop = seen[:1], seen[-1:] + 1
    return (start, stop) if int(stop - start) == len(seen) else None


@dataclass(frozen=True, eq=False, repr=False)
class Allow(Mask):
    """A table of booleans that broadcasts to (..., n, m): True is visible. `name` is how the caller made it."""

    visible: Tensor
    name: str

    n_operands = 1
    head_axes: ClassVar[Mapping[str, int]] = {"visible": -3}

    @property
    def per_key(self) -> bool:
        return self.visible.dim() < 2 or self.visible.shape[-2] == 1

    def label(self, field: str) -> str:
        del field
        return f"the tensor of {self.name}"

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        full = (*lead, n, m)
        if not _broadcasts(self.visible.shape, full):
            msg = (
                f"{self.name}(...) must broadcast to (..., queries, keys) = {full}, "
                f"but it is {tuple(self.visible.shape)}"
            )
            raise ShapeError(msg)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        del lead
        return (Operand(self.visible if self.visible.dim() > 1 else self.visible.reshape(1, -1), Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "... #rows #cols"]:
        del rows, cols, size
        return tensors[0]

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        if tensors is None or tensors[0].shape[-1] != size.m or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        (visible,) = tensors
        if visible.shape[-2] != 1:
            visible = rows.take(visible, -2)
        flat = visible.reshape(-1, size.m).view(torch.uint8)  # the largest and the least byte: many times faster
        any_row, all_rows = flat.amax(0), flat.amin(0)
        pairs = pairwise(edges)
        return [ALL if bool(all_rows[a:b].all()) else SOME if bool(any_row[a:b].any()) else NONE for a, b in pairs]

    def __repr__(self) -> str:
        return f"{self.name}(...)"


def _broadcasts(shape: Sequence[int], full: tuple[int, ...]) -> bool:
    if len(shape) > len(full):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False))


def _check_left(shape: Sequence[int], lead: tuple[int, ...], name: str) -> None:
    if len(shape) > len(lead) or any(a not in (1, b) for a, b in zip(shape, lead, strict=False)):
        msg = f"{name} must follow the leading dimensions {lead} from the left, but its leading shape is {tuple(shape)}"
        raise ShapeError(msg)


def _check_rows(shape: Sequence[int], lead: tuple[int, ...], n: int, name: str, each: str) -> None:
    if not shape or shape[-1] != n:
        msg = f"{name} need one {each} for each of {n} queries in the last dimension, but the shape is {tuple(shape)}"
        raise ShapeError(msg)
    _check_left(shape[:-1], lead, name)


def _from_left(tensor: Tensor, lead: int, own: int) -> Tensor:
    """Insert axes of length 1 until there are `lead` of them before the last `own` axes."""
    present = tensor.dim() - own
    return tensor.reshape((*tensor.shape[:present], *[1] * (lead - present), *tensor.shape[present:]))
