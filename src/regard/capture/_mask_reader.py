"""A cache of masks that have been read in one forward pass: the layers of a model share theirs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard.capture._mask_form import MaskForm
from regard.capture._score_bias import ScoreBias, read_mask

CACHED = 8  # masks; a model has one for each kind of layer


class _ReadMask(NamedTuple):
    """A mask that has been read."""

    mask: Tensor  # kept alive, so that no other gets the same address
    version: int | None  # torch's count of changes in place; None in inference mode, which keeps no count
    copy: Tensor | None  # the mask as it was, where there is no count
    terms: tuple[MaskForm, ScoreBias | None]

    @classmethod
    def of(cls, mask: Tensor, terms: tuple[MaskForm, ScoreBias | None]) -> _ReadMask:
        counted = not mask.is_inference()
        return cls(mask, mask._version if counted else None, None if counted else mask.clone(), terms)  # noqa: SLF001

    def is_current(self, mask: Tensor) -> bool:
        """True if the mask still holds the numbers that were read."""
        if self.copy is not None:
            return torch.equal(self.copy, mask)
        return not mask.is_inference() and mask._version == self.version  # noqa: SLF001


class MaskReader:
    """Reads masks, and remembers each within a forward pass for as long as its numbers do not change.

    torch does not count what is changed through `.data` or a NumPy view, as some models refill a mask for every pass.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], _ReadMask] = {}

    def forget(self) -> None:
        """Read every mask anew, for another forward pass."""
        self._known.clear()

    def read(self, mask: Tensor | None, *, causal: bool, n: int, m: int) -> tuple[MaskForm, ScoreBias | None]:
        """Form and bias of a mask that broadcasts to (batch, heads, n, m), as `read_mask` gives them."""
        if mask is None:
            return read_mask(None, causal=causal, n=n, m=m)
        key = (mask.data_ptr(), mask.shape, mask.stride(), mask.dtype, causal, n, m)
        known = self._known.get(key)
        if known is None or not known.is_current(mask):
            self._known.pop(key, None)
            if len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            known = self._known[key] = _ReadMask.of(mask, read_mask(mask, causal=causal, n=n, m=m))
        return known.terms

    def filled(self, mask: Tensor | None, n: int, m: int) -> int:
        """Number of keys without the empty end of a static cache, which no query sees."""
        if mask is None or m <= n or mask.shape[-1] == 1:
            return m
        visible, _ = self.read(mask, causal=False, n=n, m=m)
        stop = visible.ranges(n, m, mask.device)[1]
        used = torch.arange(m, device=mask.device) < int(stop.max())
        for flags in (visible.keys, None if visible.pairs is None else visible.pairs.any(-2)):
            used = used if flags is None else used & flags.flatten(0, -2).any(0)
        return max(n, int(used.nonzero().max()) + 1) if bool(used.any()) else m
