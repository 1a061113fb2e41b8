"""One call of attention as a route observes it, before it has a name and a step."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard import normalisers, scores
from regard.capture._mask_form import MaskForm
from regard.capture._output_check import KnownByType, WatchedOutput, shared_heads
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
    watched: WatchedOutput | KnownByType | None = None  # an output that the model computed with these weights
    dropout: bool = False  # True if that output was computed with dropout
    rounded: bool = False  # True if the scores may have been rounded to the dtype of the queries, as no kernel does
    function: int = 0  # id of the attention function that a library let compute it

    joins: ClassVar[bool] = True  # calls of one generate() become one

    @property
    def kind(self) -> Hashable:
        """Calls of one layer that differ in this are computed in different ways, and checked each."""
        n, m = self.query.shape[-2], self.key.shape[-2]
        form, softcap = self.visible.kind, self.softcap is not None
        terms = self.bias is not None, softcap, self.lse is not None
        return self.query.dtype, self.cross, n == 1, n == m, form, *terms, self.function

    def weight_rows(self, batch: int, heads: slice, rows: slice) -> Iterator[Float[Tensor, "some_heads rows keys"]]:
        """Weights of some rows, straight from the formula: exp(score - lse), or softmax where no lse is recorded.

        Where the model may have rounded its scores, those weights follow that rounded scores give: in bfloat16 a score
        of 40 is off by up to 0.1. heads: some with keys of their own, or one. The weights are float32, or float64 for
        a call in float64.
        """
        dtype = torch.promote_types(self.query.dtype, torch.float32)
        hidden = self.visible.hidden_rows(batch, heads, rows, self.key.shape[-2], self.key.device)
        for score_dtype in (dtype, self.query.dtype) if self.rounded and dtype != self.query.dtype else (dtype,):
            scores = self._score_rows(batch, heads, rows, score_dtype).to(dtype)
            if hidden is not None:
                scores.masked_fill_(hidden, -torch.inf)
            lse = None if self.lse is None else self.lse[batch, heads, rows, None]
            weights = scores.softmax(-1) if lse is None else scores.sub_(lse).exp_()
            yield weights if hidden is None else weights.masked_fill_(hidden, 0.0)

    def _score_rows(
        self, batch: int, heads: slice, rows: slice, dtype: torch.dtype
    ) -> Float[Tensor, "some_heads rows keys"]:
        """Scores of some rows, every step of which is rounded to a dtype."""
        own = shared_heads(heads, self.query.shape[1], self.key.shape[1])
        query, key = self.query[batch, heads, rows].to(dtype), self.key[batch, own].to(dtype)
        scores = (query @ key.mT).mul_(self.scale)
        if self.softcap is not None:
            scores = (scores / self.softcap).tanh() * self.softcap
        if self.bias is not None:
            scores = scores + self.bias.rows(batch, heads, rows, key.shape[-2]).to(dtype)
        return scores

    def of_sequences(self, index: Int[Tensor, " chosen"]) -> ObservedCall:
        """The call of these sequences of the batch."""
        return replace(
            self,
            query=self.query.index_select(0, index),
            key=self.key.index_select(0, index),
            visible=self.visible.map(lambda tensor: _select(tensor, index, 0)),
            bias=self.bias and self.bias.map(lambda tensor: _select(tensor, index, 0)),
            lse=_select(self.lse, index, 0),
            watched=None,
        )

    def copied(self, dtype: torch.dtype | None) -> ObservedCall:
        """A copy in memory of its own, which the model cannot change later."""
        query, key = (
            t.detach().to(dtype or t.dtype, copy=True, memory_format=torch.contiguous_format)
            for t in (self.query, self.key)
        )
        # In another dtype the scores are others, and so is their log-sum-exp.
        lse = None if self.lse is None or query.dtype != self.query.dtype else self.lse.detach().clone()
        return replace(self, query=query, key=key, lse=lse, watched=None)

    def of_heads(self, heads: tuple[int, ...]) -> ObservedCall:
        """The call of these query heads, each with its own keys."""
        group = self.query.shape[1] // self.key.shape[1]
        index = torch.tensor(heads, device=self.query.device)
        return replace(
            self,
            query=self.query.index_select(1, index),
            key=self.key.index_select(1, index // group),
            visible=self.visible.map(lambda tensor: _select(tensor, index, 1)),
            bias=self.bias and self.bias.map(lambda tensor: _select(tensor, index, 1)),
            lse=_select(self.lse, index, 1),
        )

    def to_call(self, name: str, step: int, heads: tuple[int, ...] | None, check: str) -> Call:
        """The call as a recording keeps it; heads: which of the layer's heads these are, None for all."""
        n, m = self.query.shape[-2], self.key.shape[-2]
        score: Any = scores.scaled_dot(self.scale)
        if self.softcap is not None:
            score = scores.softcap(score, self.softcap)
        if self.bias is not None:
            score = score + self.bias.score()
        spec = Spec(score, self.visible.mask(n, m), normalisers.softmax())
        lse = self._row_statistic(n, m)
        return Call(name, step, self.query, self.key, spec, lse, self.cross, heads, check=check)

    def _row_statistic(self, n: int, m: int) -> Float[Tensor, "batch heads queries"] | None:
        """The kernel's log-sum-exp, with -inf for queries that see no key, where kernels differ."""
        if self.lse is None or bool(self.lse.isnan().any()):
            return None
        return self.lse.masked_fill(self.visible.empty(n, m, self.lse.device), -torch.inf)


def _select(
    tensor: Shaped[Tensor, "batch heads ..."] | None, index: Int[Tensor, " chosen"], dim: int
) -> Shaped[Tensor, "_ _ ..."] | None:
    return tensor if tensor is None or tensor.shape[dim] == 1 else tensor.index_select(dim, index)
