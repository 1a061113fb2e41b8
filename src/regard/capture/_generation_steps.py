"""A generating model calls a layer once for every new token; kept is one call whose rows were appended.

With a cache, a later call sees all keys of an earlier one, or the last of them where a sliding window forgets, and one
new key for each new query; in cross attention it sees the same keys again. So every key is stored once.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.capture._mask_form import Visible, recognise, shortest
from regard.capture._observed_call import Part
from regard.capture._score_bias import Bias, read_bias
from regard.errors import RecordError


class Growing:
    """The calls of one layer so far."""

    def __init__(self, first: Part) -> None:
        self.parts = [first]
        self.key = first.key  # all of them, none twice
        self.shifts = [0]  # which of all keys was each call's first
        self.widths = [first.key.shape[-2]]  # how many keys it was given

    def append(self, name: str, part: Part) -> None:
        old = self._known(part)
        if old is None:
            raise RecordError(
                f"{name!r} was called again with keys that do not continue those of the call before (beam search puts "
                f"them into another order): record generate() with num_beams=1, or forward passes one by one"
            )
        width = part.key.shape[-2]
        self.key = torch.cat([self.key, part.key[..., old:, :]], -2)
        self.widths.append(width)
        self.shifts.append(self.key.shape[-2] - width)
        self.parts.append(replace(part, key=part.key[..., :0, :]))

    def _known(self, part: Part) -> int | None:
        """How many of the call's keys are the last of those that are known already; None if it does not go on."""
        n, m, have = part.query.shape[-2], part.key.shape[-2], self.key.shape[-2]
        for old in (m - n, m):
            if 0 <= old <= have and torch.equal(self.key[..., have - old :, :], part.key[..., :old, :]):
                return old
        return None

    def part(self) -> Part:
        """All calls as one."""
        if len(self.parts) == 1:
            return self.parts[0]
        query = torch.cat([part.query for part in self.parts], -2)
        statistics = [part.lse for part in self.parts if part.lse is not None]
        lse = torch.cat(statistics, -1) if len(statistics) == len(self.parts) else None
        visible = self._ranges() or recognise(self._dense())
        return replace(self.parts[0], query=query, key=self.key, visible=visible, bias=self._bias(visible), lse=lse)

    def _ranges(self) -> Visible | None:
        """What each row sees as a range, if that and keys which no row sees say it all."""
        total = self.key.shape[-2]
        keys = torch.ones(1, 1, total, dtype=torch.bool, device=self.key.device)
        starts: list[Tensor] = []
        stops: list[Tensor] = []
        for part, shift, width in zip(self.parts, self.shifts, self.widths, strict=True):
            if part.visible.pairs is not None:
                return None
            start, stop = part.visible.ranges(part.query.shape[-2], width, self.key.device)
            starts.append(start + shift)
            stops.append(stop + shift)
            if part.visible.keys is not None:
                mine = pad(part.visible.keys, (shift, total - shift - width), value=True)
                keys = keys & mine
        if not self._agree(keys):
            return None
        lead = torch.broadcast_shapes(*(edge.shape[:2] for edge in (*starts, *stops)))
        start, stop = (torch.cat([e.expand(*lead, -1) for e in edges], -1) for edges in (starts, stops))
        return shortest(start, stop, None if bool(keys.all()) else keys, total)

    def _agree(self, keys: Tensor) -> bool:
        """Whether every call hid exactly these keys among those that it was given."""
        for part, shift, width in zip(self.parts, self.shifts, self.widths, strict=True):
            mine = part.visible.keys
            here = keys[..., shift : shift + width]
            if not bool((here if mine is None else here == mine).all()):
                return False
        return True

    def _dense(self) -> Tensor:
        """Every row and every key: only for masks that have no form."""
        total = self.key.shape[-2]
        rows: list[Tensor] = []
        for part, shift, width in zip(self.parts, self.shifts, self.widths, strict=True):
            seen = part.visible.dense(part.query.shape[-2], width, self.key.device)
            rows.append(pad(seen, (shift, total - shift - width)))
        lead = torch.broadcast_shapes(*(row.shape[:2] for row in rows))
        return torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)

    def _bias(self, seen: Visible) -> Bias | None:
        """The rows' biases as one: the model made them number by number, and mostly they are a table of distances."""
        if all(part.bias is None for part in self.parts):
            return None
        total = self.key.shape[-2]
        rows: list[Tensor] = []
        for part, shift, width in zip(self.parts, self.shifts, self.widths, strict=True):
            n = part.query.shape[-2]
            numbers = self.key.new_zeros(1, 1, n, width) if part.bias is None else part.bias.dense(n, width)
            rows.append(pad(numbers.expand(-1, -1, n, -1), (shift, total - shift - width)))
        lead = torch.broadcast_shapes(*(row.shape[:2] for row in rows))
        numbers = torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)
        return read_bias(numbers, seen.dense(numbers.shape[-2], total, numbers.device))
