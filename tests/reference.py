"""The oracle: attention as the textbook writes it, dense, in float64, without regard.

Nothing here is clever: every score is its formula, every mask a boolean matrix, every question a sum over all of it.
"""

import math
from typing import NamedTuple

import entmax
import torch
from torch import Tensor

# --- scores: (..., n, d_q), (..., m, d_k) -> (..., n, m)


def dot(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("...id,...jd->...ij", q, k)


def scaled_dot(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    return dot(q, k) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)


def cosine(q: Tensor, k: Tensor, temperature: float = 1.0) -> Tensor:
    lengths = q.norm(dim=-1)[..., :, None] * k.norm(dim=-1)[..., None, :]
    return dot(q, k) / lengths / temperature


def general(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return torch.einsum("...id,de,...je->...ij", q, w, k)


def additive(q: Tensor, k: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor) -> Tensor:
    hidden = (q @ w_q.T)[..., :, None, :] + (k @ w_k.T)[..., None, :, :]
    return torch.tanh(hidden) @ v


def concat(q: Tensor, k: Tensor, w: Tensor, v: Tensor) -> Tensor:
    n, m = q.shape[-2], k.shape[-2]
    rows = q[..., :, None, :].expand(*q.shape[:-1], m, q.shape[-1])
    columns = k[..., None, :, :].expand(*k.shape[:-2], n, m, k.shape[-1])
    return torch.tanh(torch.cat([rows, columns], -1) @ w.T) @ v


def location(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return q @ w.T


def gaussian(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return -(difference(q, k) * w).pow(2).sum(-1) / 2


def uniform(q: Tensor, k: Tensor) -> Tensor:
    return dot(q, k) * 0


def difference(q: Tensor, k: Tensor) -> Tensor:
    return q[..., :, None, :] - k[..., None, :, :]


KERNELS = {
    "gaussian": lambda u: torch.exp(-(u**2) / 2),
    "laplace": lambda u: torch.exp(-u),
    "epanechnikov": lambda u: (1 - u**2) * (u <= 1),
    "boxcar": lambda u: (u <= 1).to(u.dtype),
    "triangular": lambda u: (1 - u) * (u <= 1),
    "biweight": lambda u: (1 - u**2) ** 2 * (u <= 1),
    "triweight": lambda u: (1 - u**2) ** 3 * (u <= 1),
    "tricube": lambda u: (1 - u**3) ** 3 * (u <= 1),
    "cosine": lambda u: torch.cos(math.pi * u / 2) * (u <= 1),
}
COMPACT = [name for name in KERNELS if name not in ("gaussian", "laplace")]


def kernel(q: Tensor, k: Tensor, name: str, bandwidth: Tensor) -> Tensor:
    return torch.log(KERNELS[name](difference(q, k).norm(dim=-1) / bandwidth))


def alibi(n: int, m: int, slopes: Tensor) -> Tensor:
    away = (torch.arange(n)[:, None] - torch.arange(m)[None, :]).abs()
    return -slopes[:, None, None] * away  # (heads, n, m)


def by_distance(n: int, m: int, table: Tensor, first: int) -> Tensor:
    rows = [[table[..., j - i - first] for j in range(m)] for i in range(n)]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)  # (heads, n, m)


def softcap(scores: Tensor, cap: float) -> Tensor:
    return cap * torch.tanh(scores / cap)


# --- masks: True where the key is visible


def relative(n: int, m: int, align: str | None) -> Tensor:
    """j - i, queries moved to the end of the keys for bottom-right."""
    shift = m - n if align == "bottom-right" else 0
    return torch.arange(m)[None, :] - (torch.arange(n)[:, None] + shift)


def causal(n: int, m: int, align: str | None = None) -> Tensor:
    return relative(n, m, align) <= 0


def window(n: int, m: int, left: int, right: int, align: str | None = None) -> Tensor:
    away = relative(n, m, align)
    return (-left <= away) & (away <= right)


def prefix(n: int, m: int, count: int) -> Tensor:
    return (torch.arange(m) < count).expand(n, m)


def from_the_left(ids: Tensor, dims: int) -> Tensor:
    """(B, ..., x) -> (B, ..., 1, x) with `dims` leading axes: ids meet the leading dimensions from the left."""
    return ids.reshape(*ids.shape[:-1], *(1,) * (dims - ids.ndim + 1), ids.shape[-1])


def padding(n: int, m: int, lengths: Tensor, dims: int) -> Tensor:
    lengths = lengths.reshape(*lengths.shape, *(1,) * (dims - lengths.ndim), 1, 1)
    return (torch.arange(m) < lengths).expand(*lengths.shape[:-2], n, m)


def ranges(m: int, start: Tensor, stop: Tensor, dims: int) -> Tensor:
    at = torch.arange(m)
    return (at >= from_the_left(start, dims)[..., None]) & (at < from_the_left(stop, dims)[..., None])


def segments(q_ids: Tensor, k_ids: Tensor, dims: int) -> Tensor:
    return from_the_left(q_ids, dims)[..., :, None] == from_the_left(k_ids, dims)[..., None, :]


# --- normalisers: scores and visible -> weights


def softmax(scores: Tensor, visible: Tensor) -> Tensor:
    scores = scores.masked_fill(~visible, -torch.inf)
    top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min) if scores.shape[-1] else 0
    powers = torch.exp(scores - top)
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, 1, total)


def over_visible(function, scores: Tensor, visible: Tensor) -> Tensor:
    """Apply a function of rows to what is visible (the rest at -inf); a row with nothing visible is all zero."""
    scores = scores.masked_fill(~visible, -torch.inf)
    empty = (scores == -torch.inf).all(-1, keepdim=True)
    return torch.where(empty, 0, function(torch.where(empty, 0, scores)))


def sparsemax(scores: Tensor, visible: Tensor) -> Tensor:
    return over_visible(lambda rows: entmax.sparsemax(rows, dim=-1), scores, visible)


def entmax15(scores: Tensor, visible: Tensor) -> Tensor:
    return over_visible(lambda rows: entmax.entmax15(rows, dim=-1), scores, visible)


def sigmoid(scores: Tensor, visible: Tensor, bias: float = 0.0) -> Tensor:
    return 1 / (1 + torch.exp(-(scores + bias))) * visible


def hard(scores: Tensor, visible: Tensor) -> Tensor:
    def first_maximum(rows: Tensor) -> Tensor:
        best = rows == rows.amax(-1, keepdim=True)
        return (best & (best.cumsum(-1) == 1)).to(rows.dtype)

    return over_visible(first_maximum, scores, visible)


# --- questions: asked of the whole matrix


def entropy(weights: Tensor) -> Tensor:
    return -torch.where(weights > 0, weights * torch.log(weights), 0).sum(-1)


def saturation(weights: Tensor) -> Tensor:
    return weights.pow(2).sum(-1)


def received(weights: Tensor) -> Tensor:
    return weights.sum(-2)


def distance(weights: Tensor, positions: Tensor | None = None) -> Tensor:
    n, m = weights.shape[-2:]
    positions = torch.arange(n) if positions is None else positions
    return (weights * (positions[..., :, None] - torch.arange(m)).abs()).sum(-1)


def mass(weights: Tensor, groups: Tensor) -> Tensor:
    groups = from_the_left(groups, weights.ndim - 2)[..., None, :]  # (B, ..., 1, m)
    return torch.stack([(weights * (groups == g)).sum(-1) for g in range(int(groups.max()) + 1)], -1)


def logsumexp(scores: Tensor, visible: Tensor) -> Tensor:
    return torch.logsumexp(scores.masked_fill(~visible, -torch.inf), -1)


def edges(size: int, bins: int) -> list[int]:
    return [b * size // bins for b in range(bins + 1)]


def heatmap(weights: Tensor, bins: int, pool: str) -> Tensor:
    n, m = weights.shape[-2:]
    rows, columns = edges(n, min(bins, n)), edges(m, min(bins, m))
    picture = weights.new_zeros(*weights.shape[:-2], len(rows) - 1, len(columns) - 1)
    for a in range(len(rows) - 1):
        for b in range(len(columns) - 1):
            cell = weights[..., rows[a] : rows[a + 1], columns[b] : columns[b + 1]].flatten(-2)
            picture[..., a, b] = {"mean": cell.mean(-1), "max": cell.amax(-1), "sum": cell.sum(-1)}[pool]
    return picture


# --- the whole


class Answer(NamedTuple):
    output: Tensor
    weights: Tensor
    scores: Tensor
    visible: Tensor


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Grouped-query heads: (..., H_kv, m, d) -> (..., heads, m, d), each key head serving heads / H_kv query heads."""
    return x if x.ndim < 4 or x.shape[-3] == heads else x.repeat_interleave(heads // x.shape[-3], dim=-3)


def attend(
    q: Tensor, k: Tensor, v: Tensor, score=scaled_dot, visible: Tensor | None = None, normalise=softmax
) -> Answer:
    q, k, v = q.double(), k.double(), v.double()
    heads = q.shape[-3] if q.ndim > 2 else 1
    k, v = repeat_heads(k, heads), repeat_heads(v, heads)
    scores = score(q, k)
    visible = torch.ones_like(scores, dtype=torch.bool) if visible is None else visible.expand(scores.shape)
    weights = normalise(scores, visible)
    return Answer(weights @ v, weights, scores, visible)
