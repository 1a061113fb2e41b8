"""Attention rollout and its transpose: how tokens reach each other through all layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.analysis._layer_weights import LayerWeights, Patterns, Recorded, by_head, one_step
from regard.analysis._table import Table
from regard.display.progress import progress
from regard.errors import ChoiceError
from regard.weights import Weights


class TokenRow(NamedTuple):
    """One token of a sequence and its share."""

    position: int
    token: str  # its text, or its id where no text is known
    share: float


@dataclass(frozen=True, eq=False, repr=False)
class TokenTable(Table[TokenRow]):
    """Tokens in their order with their shares; `depths` are the shares after each layer, (layers, tokens).

    Where there is no room for all tokens, those with the largest shares are shown, largest first.
    """

    depths: Float[Tensor, "layers tokens"]
    layers: tuple[str, ...]
    in_text_order: bool = True  # False for rows that were sorted or chosen

    columns: ClassVar[tuple[str, ...]] = TokenRow._fields

    def most(self, count: int) -> TokenTable:
        """The `count` tokens with the largest shares, largest first."""
        ranked = sorted(self.rows, key=lambda row: -row.share)
        return self._with_rows(ranked[:count])

    def _shown_rows(self, count: int) -> Sequence[TokenRow]:
        return self.most(count).rows if len(self) > count and self.in_text_order else self.rows[:count]

    def _with_rows(self, rows: Sequence[TokenRow]) -> TokenTable:
        return replace(self, rows=tuple(rows), in_text_order=False)


def rollout(
    recording: Recorded,
    token: int,
    *,
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
    residual: float = 0.5,
) -> TokenTable:
    """Attention rollout: the shares of all input tokens in the last layer's output at one token.

    It is row `token` of A_L ... A_2 A_1, with A_l = residual I + (1 - residual) mean_h P_l,h and P_l,h the weights
    of head h in layer l (Abnar and Zuidema 2020). A vector of n numbers goes through the layers from the last to the
    first, v -> A_l^T v; no n x n matrix is built. The shares sum to 1. A query that sees no key keeps what it has.

    token: its position, from the end if negative. sequence: which one of the batch, from 0. layers: the self-attention
    layers of the stack, by name or pattern; an encoder and a decoder are two stacks: layers="encoder.*". step: the
    forward pass, needed if there are several. residual: the share that passes by the attention of a layer.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> round(sum(rg.analysis.rollout(recording, token=-1).column("share")), 4)
    1.0
    """
    stack = _stack(recording, layers, step)
    return _propagate(recording, stack[::-1], token, sequence, residual, transposed=True)


def flow(
    recording: Recorded,
    token: int,
    *,
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
    residual: float = 0.5,
) -> TokenTable:
    """The share of one input token in the last layer's output at every token: where its information goes.

    It is column `token` of A_L ... A_2 A_1, with A_l = residual I + (1 - residual) mean_h P_l,h and P_l,h the weights
    of head h in layer l. A vector goes through the layers from the first to the last, x -> A_l x; no n x n matrix is
    built. `rollout` gives a row of the same product. This is not the maximum flow that is also called attention flow.

    token: its position, from the end if negative. sequence: which one of the batch, from 0. layers: the self-attention
    layers of the stack, by name or pattern. step: the forward pass, needed if there are several. residual: the share
    that passes by the attention of a layer.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> len(rg.analysis.flow(recording, token=0))
    5
    """
    stack = _stack(recording, layers, step)
    return _propagate(recording, stack, token, sequence, residual, transposed=False)


def _stack(recording: Recorded, layers: Patterns, step: int | None) -> list[LayerWeights]:
    """The chosen layers, all of them self attention over the same tokens."""
    stack = list(one_step(recording, layers, step))
    if layers is None and any(layer.cross for layer in stack):
        raise ChoiceError("the recording has cross attention: choose one stack of layers, e.g. layers='encoder.*'")
    sizes = {layer.weights.shape[-2:] for layer in stack}
    if any(layer.cross for layer in stack) or len(sizes) > 1 or any(n != m for n, m in sizes):
        listed = ", ".join(f"{n} x {m}" for n, m in sorted(sizes))
        raise ChoiceError(
            f"a stack is self attention over the same tokens, and these layers are {listed}: choose others"
        )
    return stack


@torch.no_grad()
def _propagate(
    recording: Recorded, stack: Sequence[LayerWeights], token: int, sequence: int, residual: float, *, transposed: bool
) -> TokenTable:
    """Multiply the unit vector of a token by A_l, or by its transpose, for one layer of the stack after the other."""
    n, batch = stack[0].weights.shape[-1], stack[0].batch
    if not -n <= token < n:
        raise ChoiceError(f"token={token} is not in a sequence of {n}")
    if not 0 <= residual <= 1:
        raise ChoiceError(f"residual is a share from 0 to 1, {residual} came")
    if not 0 <= sequence < batch:
        raise ChoiceError(f"sequence={sequence} is not in a batch of {batch}")
    vector = torch.zeros(batch, n, dtype=torch.float64)
    vector[sequence, token] = 1.0
    depths: list[Tensor] = []
    with progress("multiplying layers", len(stack)) as advance:
        for layer in stack:
            vector = _through_layer(layer.weights, vector, residual, transposed=transposed)
            depths.append(vector[sequence])
            advance()
    labels, shares = stack[0].key_tokens.labels(recording, sequence), depths[-1].tolist()
    rows = (TokenRow(i, label, share) for i, (label, share) in enumerate(zip(labels, shares, strict=True)))
    return TokenTable(tuple(rows), torch.stack(depths), tuple(layer.layer for layer in stack))


def _through_layer(
    weights: Weights, vector: Float[Tensor, "batch tokens"], residual: float, *, transposed: bool
) -> Float[Tensor, "batch tokens"]:
    """A v, or its transpose times v, with A = residual I + (1 - residual) mean_h P_h, in double precision."""
    if weights.dtype.itemsize < 4:  # through many layers half precision would lose its digits
        spec = weights.spec
        weights = Weights(weights.query.float(), weights.key.float(), spec.score, spec.mask, spec.normaliser)
    lead = weights.shape[:-2]
    shape = (*lead[:-1], 1, *vector.shape[-1:], 1) if len(lead) > 1 else (*lead, vector.shape[-1], 1)
    column = vector.reshape(shape).expand(*lead, -1, 1).to(weights.device, weights.dtype)
    moved = (weights.mT if transposed else weights) @ column
    empty = weights.empty_rows().double()  # a query that sees no key keeps what it has
    means = [by_head(t.double(), lead).mean(0).cpu() for t in (moved.squeeze(-1), empty)]
    return residual * vector + (1 - residual) * (means[0] + means[1] * vector)
