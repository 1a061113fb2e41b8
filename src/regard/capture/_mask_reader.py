"""A cache of masks that have been read: the layers of a model share theirs."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.capture._mask_form import MaskForm
from regard.capture._score_bias import ScoreBias, read_mask

CACHED = 8  # masks; a model has one for each kind of layer


class MaskReader:
    """Reads masks, and remembers each for as long as its numbers do not change."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Tensor | None, tuple[MaskForm, ScoreBias | None]]] = {}

    def read(self, mask: Tensor | None, *, causal: bool, n: int, m: int) -> tuple[MaskForm, ScoreBias | None]:
        """Form and bias of a mask that broadcasts to (batch, heads, n, m), as `read_mask` gives them."""
        if mask is None:
            return read_mask(None, causal=causal, n=n, m=m)
        version = 0 if mask.is_inference() else mask._version  # noqa: SLF001
        key = (mask.data_ptr(), mask.shape, mask.stride(), mask.dtype, version, causal, n, m)
        if key not in self._known:
            if len(self._known) >= CACHED:
                del self._known[next(iter(self._known))]
            # The mask is kept alive, so that no other gets the same address.
            self._known[key] = mask, read_mask(mask, causal=causal, n=n, m=m)
        return self._known[key][1]

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
