"""One call of attention as a route observes it, before it has a name and a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard import normalisers, scores
from regard.capture._mask_form import MaskForm
from regard.capture._score_bias import ScoreBias
from regard.recording import Call
from regard.spec import Spec


@dataclass(frozen=True, eq=False)
class ObservedCall:
    """Queries and keys of every head, and how the model turned their products into weights."""

    query: Float[Tensor, "batch heads queries dim"]
    key: Float[Tensor, "batch key_heads keys dim"]
    scale: float
    visible: MaskForm
    bias: ScoreBias | None = None
    softcap: float | None = None
    lse: Float[Tensor, "batch heads queries"] | None = None  # row statistic, if the kernel returned it
    cross: bool = False

    def copied(self, dtype: torch.dtype | None) -> ObservedCall:
        """A copy in memory of its own, which the model cannot change later."""
        query, key = (
            t.detach().to(dtype or t.dtype, copy=True, memory_format=torch.contiguous_format)
            for t in (self.query, self.key)
        )
        # In another dtype the scores are others, and so is their log-sum-exp.
        lse = None if self.lse is None or query.dtype != self.query.dtype else self.lse.detach().clone()
        return replace(self, query=query, key=key, lse=lse)

    def of_heads(self, heads: tuple[int, ...]) -> ObservedCall:
        """The call of these query heads, each with its own keys."""
        group = self.query.shape[1] // self.key.shape[1]
        index = torch.tensor(heads, device=self.query.device)
        bias = self.bias and ScoreBias(
            _select(self.bias.table, index), self.bias.first, _select(self.bias.pairs, index)
        )
        form = self.visible
        tensors = {name: _select(getattr(form, name), index) for name in ("start", "stop", "keys", "pairs")}
        return replace(
            self,
            query=self.query.index_select(1, index),
            key=self.key.index_select(1, index // group),
            visible=replace(form, **tensors),
            bias=bias,
            lse=_select(self.lse, index),
        )

    def to_call(self, name: str, step: int, heads: tuple[int, ...] | None) -> Call:
        """The call as a recording keeps it; heads: which of the layer's heads these are, None for all."""
        n, m = self.query.shape[-2], self.key.shape[-2]
        score: Any = scores.scaled_dot(self.scale)
        if self.softcap is not None:
            score = scores.softcap(score, self.softcap)
        if self.bias is not None:
            score = score + self.bias.score()
        spec = Spec(score, self.visible.mask(n, m), normalisers.softmax())
        return Call(name, step, self.query, self.key, spec, self._row_statistic(n, m), self.cross, heads)

    def _row_statistic(self, n: int, m: int) -> Float[Tensor, "batch heads queries"] | None:
        """The kernel's log-sum-exp, with -inf for queries that see no key, where kernels differ."""
        if self.lse is None or bool(self.lse.isnan().any()):
            return None
        return self.lse.masked_fill(self.visible.empty(n, m, self.lse.device), -torch.inf)


def _select(
    tensor: Shaped[Tensor, "batch heads ..."] | None, index: Int[Tensor, " chosen"]
) -> Shaped[Tensor, "batch _ ..."] | None:
    return tensor if tensor is None or tensor.shape[1] == 1 else tensor.index_select(1, index)
