"""One call of attention as a route sees it, before it is known where it belongs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard import normalisers, scores
from regard.capture._mask_form import Visible
from regard.capture._score_bias import Bias
from regard.recording._call import Call
from regard.spec import Spec


@dataclass(frozen=True, eq=False)
class Part:
    """Queries of every head against keys, and what was done to their scores."""

    query: Tensor  # (batch, heads, n, dim)
    key: Tensor  # (batch, key heads, m, dim)
    scale: float
    visible: Visible
    bias: Bias | None = None
    softcap: float | None = None
    lse: Tensor | None = None  # (batch, heads, n)
    cross: bool = False

    def kept(self, dtype: torch.dtype | None) -> Part:
        """The same in memory of its own: what the model does to its tensors later changes nothing."""
        query, key = (
            t.detach().to(dtype or t.dtype, copy=True, memory_format=torch.contiguous_format)
            for t in (self.query, self.key)
        )
        # The statistic belongs to the digits it was computed from.
        lse = None if self.lse is None or query.dtype != self.query.dtype else self.lse.detach().clone()
        return replace(self, query=query, key=key, lse=lse)

    def of_heads(self, heads: tuple[int, ...]) -> Part:
        """Some of the query heads, each with its own keys."""
        group = self.query.shape[1] // self.key.shape[1]
        index = torch.tensor(heads, device=self.query.device)
        bias = self.bias and Bias(_some(self.bias.table, index), self.bias.first, _some(self.bias.pairs, index))
        seen = self.visible
        visible = replace(
            seen, **{name: _some(getattr(seen, name), index) for name in ("start", "stop", "keys", "pairs")}
        )
        return replace(
            self,
            query=self.query.index_select(1, index),
            key=self.key.index_select(1, index // group),
            visible=visible,
            bias=bias,
            lse=_some(self.lse, index),
        )

    def call(self, name: str, step: int, heads: tuple[int, ...] | None) -> Call:
        n, m = self.query.shape[-2], self.key.shape[-2]
        score: Any = scores.scaled_dot(self.scale)
        if self.softcap is not None:
            score = scores.softcap(score, self.softcap)
        if self.bias is not None:
            score = score + self.bias.score()
        spec = Spec(score, self.visible.mask(n, m), normalisers.softmax())
        return Call(name, step, self.query, self.key, spec, self._statistic(n, m), self.cross, heads)

    def _statistic(self, n: int, m: int) -> Tensor | None:
        """The kernel's, with -inf where a query sees nothing, for which kernels say this or that."""
        if self.lse is None or bool(self.lse.isnan().any()):
            return None
        return self.lse.masked_fill(self.visible.empty(n, m, self.lse.device), -torch.inf)


def _some(tensor: Tensor | None, index: Tensor) -> Tensor | None:
    return tensor if tensor is None or tensor.shape[1] == 1 else tensor.index_select(1, index)
