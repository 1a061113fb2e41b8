"""Masks are read once for all the layers that share them."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.capture._mask_form import Visible
from regard.capture._score_bias import Bias, read_mask

KEPT = 8  # masks that are remembered: models have one for each kind of layer


class MaskReader:
    """Remembers what it has read, for as long as the mask's numbers stay what they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[Tensor | None, tuple[Visible, Bias | None]]] = {}

    def read(self, mask: Tensor | None, *, causal: bool, n: int, m: int) -> tuple[Visible, Bias | None]:
        if mask is None:
            return read_mask(None, causal=causal, n=n, m=m)
        version = 0 if mask.is_inference() else mask._version  # noqa: SLF001
        key = (mask.data_ptr(), mask.shape, mask.stride(), mask.dtype, version, causal, n, m)
        if key not in self._known:
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            # The mask is kept too: another must not come to lie at the same place meanwhile.
            self._known[key] = mask, read_mask(mask, causal=causal, n=n, m=m)
        return self._known[key][1]

    def filled(self, mask: Tensor | None, n: int, m: int) -> int:
        """How many keys there are: a static cache comes with room behind them, which no query sees."""
        if mask is None or m <= n or mask.shape[-1] == 1:
            return m
        visible, _ = self.read(mask, causal=False, n=n, m=m)
        stop = visible.ranges(n, m, mask.device)[1]
        seen = torch.arange(m, device=mask.device) < int(stop.max())
        for some in (visible.keys, None if visible.pairs is None else visible.pairs.any(-2)):
            seen = seen if some is None else seen & some.flatten(0, -2).any(0)
        return max(n, int(seen.nonzero().max()) + 1) if bool(seen.any()) else m
