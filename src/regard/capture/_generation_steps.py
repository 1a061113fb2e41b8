"""Calls of one layer during generation with a cache, joined into one call.

A generating model calls a layer once for every new token. A later call has all keys of the earlier one, or the last of
them with a sliding window, and one new key for each new query; in cross attention it has the same keys again. So every
key is stored once, and queries are appended.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import pad

from regard.capture._mask_form import MaskForm, from_ranges, recognise
from regard.capture._observed_call import ObservedCall
from regard.capture._score_bias import ScoreBias, read_bias
from regard.errors import RecordError


class GenerationSteps:
    """The calls of one layer so far."""

    def __init__(self, first: ObservedCall) -> None:
        self.calls = [first]
        self.key = first.key  # of all calls, each once
        self.shifts = [0]  # index of each call's first key among all keys
        self.widths = [first.key.shape[-2]]  # number of keys of each call

    def append(self, name: str, call: ObservedCall) -> None:
        old = self._known_keys(call)
        if old is None:
            raise RecordError(
                f"{name!r} was called again with keys that do not continue those of the call before (beam search puts "
                f"them into another order): record generate() with num_beams=1, or forward passes one by one"
            )
        width = call.key.shape[-2]
        self.key = torch.cat([self.key, call.key[..., old:, :]], -2)
        self.widths.append(width)
        self.shifts.append(self.key.shape[-2] - width)
        self.calls.append(replace(call, key=call.key[..., :0, :]))

    def _known_keys(self, call: ObservedCall) -> int | None:
        """How many of the call's first keys are the last keys of all; None if it does not continue them."""
        n, m, have = call.query.shape[-2], call.key.shape[-2], self.key.shape[-2]
        for old in (m - n, m):
            if 0 <= old <= have and torch.equal(self.key[..., have - old :, :], call.key[..., :old, :]):
                return old
        return None

    def joined(self) -> ObservedCall:
        """All calls as one, with the rows of every call one after another."""
        if len(self.calls) == 1:
            return self.calls[0]
        query = torch.cat([call.query for call in self.calls], -2)
        statistics = [call.lse for call in self.calls if call.lse is not None]
        lse = torch.cat(statistics, -1) if len(statistics) == len(self.calls) else None
        visible = self._range_form() or recognise(self._dense())
        return replace(self.calls[0], query=query, key=self.key, visible=visible, bias=self._bias(visible), lse=lse)

    def _range_form(self) -> MaskForm | None:
        """The mask as one range of keys for each row and one set of hidden keys, if that is exact."""
        total = self.key.shape[-2]
        keys = torch.ones(1, 1, total, dtype=torch.bool, device=self.key.device)
        starts: list[Tensor] = []
        stops: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            if call.visible.pairs is not None:
                return None
            start, stop = call.visible.ranges(call.query.shape[-2], width, self.key.device)
            starts.append(start + shift)
            stops.append(stop + shift)
            if call.visible.keys is not None:
                own = pad(call.visible.keys, (shift, total - shift - width), value=True)
                keys = keys & own
        if not self._all_hide_as(keys):
            return None
        lead = torch.broadcast_shapes(*(edge.shape[:2] for edge in (*starts, *stops)))
        start, stop = (torch.cat([e.expand(*lead, -1) for e in edges], -1) for edges in (starts, stops))
        return from_ranges(start, stop, None if bool(keys.all()) else keys, total)

    def _all_hide_as(self, keys: Bool[Tensor, "batch heads keys"]) -> bool:
        """True if every call hid exactly these keys among its own."""
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            own = call.visible.keys
            expected = keys[..., shift : shift + width]
            if not bool((expected if own is None else expected == own).all()):
                return False
        return True

    def _dense(self) -> Bool[Tensor, "batch heads queries keys"]:
        """The whole mask, for those that have no short form."""
        total = self.key.shape[-2]
        rows: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            seen = call.visible.dense(call.query.shape[-2], width, self.key.device)
            rows.append(pad(seen, (shift, total - shift - width)))
        lead = torch.broadcast_shapes(*(row.shape[:2] for row in rows))
        return torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)

    def _bias(self, visible: MaskForm) -> ScoreBias | None:
        """The biases of all rows as one; it is read anew, since most are a table of distances."""
        if all(call.bias is None for call in self.calls):
            return None
        total = self.key.shape[-2]
        rows: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            n = call.query.shape[-2]
            numbers = self.key.new_zeros(1, 1, n, width) if call.bias is None else call.bias.dense(n, width)
            rows.append(pad(numbers.expand(-1, -1, n, -1), (shift, total - shift - width)))
        lead = torch.broadcast_shapes(*(row.shape[:2] for row in rows))
        numbers = torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)
        return read_bias(numbers, visible.dense(numbers.shape[-2], total, numbers.device))
