"""Calls of one layer during generation with a cache, joined into one call.

A generating model calls a layer for every new token. A later call has all keys of the earlier one, or the last of
them with a sliding window, and one new key for each new query; in cross attention it has the same keys again. So every
key is stored once, and queries are appended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from regard.capture._mask_form import MaskForm, from_ranges, recognise
from regard.capture._observed_call import ObservedCall
from regard.capture._output_check import PooledOutput, require_equal
from regard.capture._score_bias import ScoreBias, read_bias
from regard.engine.versions import Versions, changed_tensor, versions_of
from regard.errors import RecordError
from regard.operands import broadcast_shapes


class GenerationSteps:
    """The calls of one layer so far."""

    def __init__(self, check: str) -> None:
        self.check = check  # how the first call was checked
        self.calls: list[ObservedCall] = []  # each with the keys that are new in it
        self.passes: list[int] = []  # number of the forward pass of each call
        self.shifts: list[int] = []  # index of each call's first key among all keys
        self.widths: list[int] = []  # number of keys of each call
        self.total = 0  # number of keys of all calls, each counted once
        self._keys: Tensor | None = None  # of the last call
        self._watched: Any = None  # its values, and its own copy of the last rows of its output
        self._versions: Versions = ()  # of these values

    def append(self, call: ObservedCall, watched: Any, number: int, order: Int[Tensor, " batch"] | None) -> None:
        """Add the call of a forward pass whose sequences continue those of the pass before in this order."""
        known = 0 if self._keys is None else self._known_keys(call, self._keys if order is None else self._keys[order])
        width = call.key.shape[-2]
        self.calls.append(replace(call, key=call.key[..., known:, :].clone()))  # a view would keep all keys
        self.passes.append(number)
        self.total += width - known
        self.widths.append(width)
        self.shifts.append(self.total - width)
        self._keys = call.key
        if isinstance(watched, PooledOutput):
            watched = watched.of_last_rows()
            self._versions = versions_of({"value": watched.value})
        self._watched = watched

    def _known_keys(self, call: ObservedCall, keys: Float[Tensor, "batch key_heads keys dim"]) -> int:
        """Number of the call's first keys that are the last ones of the call before.

        All of them in cross attention, which does not grow; else all but one for each query. Keys that were never more
        nor fewer are those of cross attention if they are equal, whatever the model calls it: where all keys are alike,
        both would fit. One at least is needed: no keys at all continue anything.
        """
        n, m, have = call.query.shape[-2], call.key.shape[-2], keys.shape[-2]
        never_grew = all(width == m for width in self.widths)
        for known in (m,) if call.cross else (m, m - n) if never_grew else (m - n, m):
            if 0 < known <= have and torch.equal(keys[..., have - known :, :], call.key[..., :known, :]):
                return known
        raise RecordError(
            f"it was called again, during generate(), with keys ({m} of them) that do not continue those of the call "
            f"before ({have}): record forward passes one by one, or generate(use_cache=False)"
        )

    def joined(self, rows: Mapping[int, Int[Tensor, " sequences"]] | None) -> ObservedCall:
        """All calls as one, with the rows of every call one after another.

        rows: for beam search, the sequences of each pass that are kept, as `Generation.chosen_rows` has them.
        """
        if rows is not None:
            calls = zip(self.calls, self.passes, self.widths, strict=True)
            self.calls = [_chosen(call, number, width, rows) for call, number, width in calls]
        if len(self.calls) == 1:
            return self.calls[0]
        query, key = (torch.cat([getattr(call, name) for call in self.calls], -2) for name in ("query", "key"))
        statistics = [call.lse for call in self.calls if call.lse is not None]
        lse = torch.cat(statistics, -1) if len(statistics) == len(self.calls) else None
        visible = self._range_form() or recognise(self._dense())
        return replace(self.calls[0], query=query, key=key, visible=visible, bias=self._bias(visible), lse=lse)

    def check_last_row(
        self, joined: ObservedCall, head: int, rows: Mapping[int, Int[Tensor, " sequences"]] | None
    ) -> None:
        """Compare the last row of the joined call with the output that it belongs to; head: that of its first head."""
        if not isinstance(self._watched, PooledOutput) or self.calls[-1].dropout or len(self.calls) == 1:
            return
        if changed_tensor(self._versions):
            return  # the values were in a cache that was emptied since
        origin = torch.arange(joined.query.shape[0]) if rows is None else rows[self.passes[-1]]
        alive = (origin >= 0).nonzero()
        if len(alive):
            sequence = int(alive[0])
            columns = slice(self.shifts[-1], self.shifts[-1] + self.widths[-1])
            error = self._watched.last_row_error(joined, (sequence, int(origin[sequence])), head, columns)
            require_equal(error, joined.query.dtype)

    @property
    def _device(self) -> torch.device:
        return self.calls[0].query.device

    def _range_form(self) -> MaskForm | None:
        """The mask as one range of keys for each row and one set of hidden keys, if that is exact."""
        total = self.total
        keys = torch.ones(1, 1, total, dtype=torch.bool, device=self._device)
        starts: list[Tensor] = []
        stops: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            if call.visible.pairs is not None:
                return None
            start, stop = call.visible.ranges(call.query.shape[-2], width, self._device)
            starts.append(start + shift)
            stops.append(stop + shift)
            if call.visible.keys is not None:
                own = pad(call.visible.keys, (shift, total - shift - width), value=True)
                keys = keys & own
        if not self._all_hide_as(keys):
            return None
        lead = broadcast_shapes(*(edge.shape[:2] for edge in (*starts, *stops)))
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
        total = self.total
        rows: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            seen = call.visible.dense(call.query.shape[-2], width, self._device)
            rows.append(pad(seen, (shift, total - shift - width)))
        lead = broadcast_shapes(*(row.shape[:2] for row in rows))
        return torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)

    def _bias(self, visible: MaskForm) -> ScoreBias | None:
        """The biases of all rows as one; it is read anew, since most are a table of distances."""
        if all(call.bias is None for call in self.calls):
            return None
        total = self.total
        rows: list[Tensor] = []
        for call, shift, width in zip(self.calls, self.shifts, self.widths, strict=True):
            n = call.query.shape[-2]
            numbers = call.query.new_zeros(1, 1, n, width) if call.bias is None else call.bias.dense(n, width)
            rows.append(pad(numbers.expand(-1, -1, n, -1), (shift, total - shift - width)))
        lead = broadcast_shapes(*(row.shape[:2] for row in rows))
        numbers = torch.cat([row.expand(*lead, -1, -1) for row in rows], -2)
        return read_bias(numbers, visible.dense(numbers.shape[-2], total, numbers.device))


def _chosen(call: ObservedCall, number: int, width: int, rows: Mapping[int, Int[Tensor, " sequences"]]) -> ObservedCall:
    """The call of the sequences that beam search returned; those that had ended before see nothing in it."""
    count = len(next(iter(rows.values())))
    if number not in rows:  # the encoder, which ran before there were beams
        return call.of_sequences(torch.arange(count) // (count // call.query.shape[0]))
    index = rows[number].to(call.query.device)
    chosen = call.of_sequences(index.clamp_min(0))
    if bool((index >= 0).all()):
        return chosen
    start, stop = chosen.visible.ranges(call.query.shape[-2], width, call.query.device)
    stop = torch.where(index[:, None, None] >= 0, stop, 0)
    return replace(chosen, visible=replace(chosen.visible, start=torch.zeros_like(stop) + start, stop=stop))
