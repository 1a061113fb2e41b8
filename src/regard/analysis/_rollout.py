"""How tokens reach each other through all layers: vectors times lazy matrices, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.analysis._layer_weights import Matrix, Patterns, Recorded, by_head, heads_in, one_step, texts
from regard.analysis._table import Table
from regard.errors import ChoiceError
from regard.weights import Weights

SHOWN = 20  # lines that are printed


class TokenRow(NamedTuple):
    """One token of a sequence."""

    position: int
    token: str  # its text, or its id where no text is known
    share: float


@dataclass(frozen=True, eq=False)
class TokenTable(Table[TokenRow]):
    """Tokens in their order, and `depths`: the same after each layer, (layers, tokens)."""

    rows: tuple[TokenRow, ...]
    depths: Tensor
    layers: tuple[str, ...]

    columns = TokenRow._fields

    def most(self, count: int) -> TokenTable:
        """The tokens with the largest shares, largest first."""
        ranked = sorted(self.rows, key=lambda row: -row.share)
        return TokenTable(tuple(ranked[:count]), self.depths, self.layers)

    def __str__(self) -> str:
        width = max([len("token"), *(len(row.token) for row in self.rows)])
        shown = self.rows if len(self.rows) <= SHOWN else self.most(SHOWN).rows
        lines = [f"{row.position:>8}  {row.token:<{width}}{row.share:>10.4f}" for row in shown]
        left = len(self.rows) - len(shown)
        return "\n".join(
            [f"{'position':>8}  {'token':<{width}}{'share':>10}", *lines, *([f"... {left} more"] if left else [])]
        )


def rollout(
    recording: Recorded,
    token: int,
    *,
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
    residual: float = 0.5,
) -> TokenTable:
    """What the last layer's output at `token` is made of: its shares of the input tokens (Abnar and Zuidema 2020),

        row `token` of  A_L ... A_2 A_1,   A_l = residual I + (1 - residual) mean_h P_l,h.

    The vector goes through the layers from the last to the first, v -> A_l^T v: n numbers, never n x n. A query that
    sees no key keeps what it has. The shares sum to 1.

    layers: which self-attention layers make up the stack; an encoder and a decoder are two: layers="encoder.*".

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> round(sum(rg.analysis.rollout(recording, token=-1).column("share")), 4)
    1.0
    """
    stack = _stack(recording, layers, step)
    return _walk(recording, stack[::-1], token, sequence, residual, backwards=True)


def flow(
    recording: Recorded,
    token: int,
    *,
    sequence: int = 0,
    layers: Patterns = None,
    step: int | None = None,
    residual: float = 0.5,
) -> TokenTable:
    """Where the input at `token` goes: its share in the last layer's output at every token,

        column `token` of  A_L ... A_2 A_1,   A_l = residual I + (1 - residual) mean_h P_l,h.

    The vector goes through the layers from the first to the last, x -> A_l x. (It is the other side of `rollout`, not
    the maximum flow that is also called attention flow.)

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> len(rg.analysis.flow(recording, token=0))
    5
    """
    stack = _stack(recording, layers, step)
    return _walk(recording, stack, token, sequence, residual, backwards=False)


def _stack(recording: Recorded, layers: Patterns, step: int | None) -> list[Matrix]:
    found = list(one_step(recording, layers, step))
    if layers is None and any(matrix.cross for matrix in found):
        raise ChoiceError("the recording has cross attention: choose one stack of layers, e.g. layers='encoder.*'")
    sizes = {matrix.weights.shape[-2:] for matrix in found}
    if any(matrix.cross for matrix in found) or len(sizes) > 1 or any(n != m for n, m in sizes):
        listed = ", ".join(f"{n} x {m}" for n, m in sorted(sizes))
        raise ChoiceError(
            f"a stack is self attention over the same tokens, and these layers are {listed}: choose others"
        )
    return found


@torch.no_grad()
def _walk(
    recording: Recorded, stack: Sequence[Matrix], token: int, sequence: int, residual: float, *, backwards: bool
) -> TokenTable:
    n = stack[0].weights.shape[-1]
    if not -n <= token < n:
        raise ChoiceError(f"token={token} is not in a sequence of {n}")
    if not 0 <= residual <= 1:
        raise ChoiceError(f"residual is a share from 0 to 1, {residual} came")
    batch = _batch(stack[0])
    if not 0 <= sequence < batch:
        raise ChoiceError(f"sequence={sequence} is not in a batch of {batch}")
    vector = torch.zeros(batch, n, dtype=torch.float64)
    vector[sequence, token] = 1.0
    depths: list[Tensor] = []
    for matrix in stack:
        vector = _through(matrix, vector, residual, backwards=backwards)
        depths.append(vector[sequence])
    words = texts(recording, stack[0], n, sequence)
    rows = (TokenRow(i, word, share) for i, (word, share) in enumerate(zip(words, depths[-1].tolist(), strict=True)))
    return TokenTable(tuple(rows), torch.stack(depths), tuple(matrix.layer for matrix in stack))


def _batch(matrix: Matrix) -> int:
    lead = matrix.weights.shape[:-2]
    return lead.numel() // heads_in(matrix.weights)


def _precise(weights: Weights) -> Weights:
    """In float32 at least: a vector that goes through many layers would lose its digits."""
    if weights.dtype.itemsize >= 4:
        return weights
    spec = weights.spec
    return Weights(weights.query.float(), weights.key.float(), spec.score, spec.mask, spec.normaliser)


def _through(matrix: Matrix, vector: Tensor, residual: float, *, backwards: bool) -> Tensor:
    """One layer, (batch, n) -> (batch, n)."""
    weights = _precise(matrix.weights)
    lead = weights.shape[:-2]
    shape = (*lead[:-1], 1, *vector.shape[-1:], 1) if len(lead) > 1 else (*lead, vector.shape[-1], 1)
    column = vector.reshape(shape).expand(*lead, -1, 1).to(weights.device, weights.dtype)
    moved = (weights.mT if backwards else weights) @ column
    alone = weights.empty_rows().double()  # rows that see nothing keep what they have
    means = [by_head(t.double(), lead).mean(0).cpu() for t in (moved.squeeze(-1), alone)]
    return residual * vector + (1 - residual) * (means[0] + means[1] * vector)
