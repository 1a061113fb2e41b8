"""Somebody else's step: torch's fused attention kernel, wherever a score is an inner product of features.

The kernel takes (batch, heads, n, d) with values as wide as keys, one scale, the causal mask of the top left
corner, and a bias that has no gradient. What does not fit is made to fit: values are padded, a learned bias of
the keys becomes one more feature, a small mask that the caller has written out is turned into a bias, and any other
is run block by block of queries on the keys they see.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.engine import versions as versions_module
from regard.engine.fused import wide_values
from regard.engine.plan import BUFFERS, TILE, Form
from regard.engine.tile_batches import Run, runs
from regard.engine.tiles import Problem
from regard.masks import Band, Mask
from regard.masks._rules import Allow
from regard.normalisers import softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.scores import Features, Score, uniform
from regard.scores._compose import Bias as Given
from regard.spec import Spec

CANCELS = 64.0  # half squares of features above this leave fewer than five digits of a score in float32
PAIRS = 1 << 22  # numbers of a bias that is made in one piece; above, blocks of it come and go
ALIGNED = 16  # widths up to this are padded to it: the kernel is faster and more accurate there
flash = torch._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default  # noqa: SLF001


def is_causal(mask: Mask | None, n: int, m: int) -> bool:
    """Whether a mask is the causal one that the kernel knows."""
    return isinstance(mask, Band) and mask.left is None and mask.right == 0 and (n == m or mask.align == "top-left")


def form(spec: Spec, lead: tuple[int, ...], n: int, m: int, cap: int) -> Form:
    """How the kernel has to be called, from sizes and kinds alone; a tile may hold `cap` scores."""
    if not spec.score.is_pairwise:
        if spec.mask is None:
            return "whole"
        if is_causal(spec.mask, n, m):
            return "causal"
        if spec.mask.per_key:
            return "keys"
    return "pairs" if _is_written_out(spec, lead, n * m, PAIRS if cap >= TILE else cap) else "blocks"


def _is_written_out(spec: Spec, lead: tuple[int, ...], pairs: int, most: int) -> bool:
    """Whether what varies by query and key is in tensors of the caller's, and at most so many numbers as one."""
    scores = [leaf for leaf in spec.score.leaves() if leaf.is_pairwise]
    hiding = [] if spec.mask is None else list(spec.mask.leaves())
    if len(lead) > 2 or pairs > most:
        return False
    if not all(isinstance(leaf, Given) for leaf in scores) or not all(isinstance(leaf, Allow) for leaf in hiding):
        return False
    leads = [tensor.shape[:-2] for leaf in (*scores, *hiding) for tensor in leaf.tensors().values()]
    return math.prod(torch.broadcast_shapes(*leads)) * pairs <= most


def pool(
    spec: Spec, query: Tensor, key: Tensor, value: Tensor, lead: tuple[int, ...], called: Form, cap: int
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp (..., n), which has no gradient."""
    features = spec.score.features(query, key)
    n, m = query.shape[-2], key.shape[-2]
    if _cancels(features):
        features = spec.score.features(query.double(), key.double())
    q, k, bias, scale = absorb(features, query, key)
    kind = q.dtype
    cap = max(1, cap * query.element_size() // q.element_size())  # float64 where float32 would cancel
    wide = called in ("whole", "causal") and bias is None and wide_values.serves(q, k, value)
    width = q.shape[-1] if wide else _width(q.shape[-1], value.shape[-1])
    q, k, v = _widen(q, width), _widen(k.to(kind), width), _widen(value.to(kind), width)
    if wide:
        out, lse = _wide_values(q, k, v, lead, causal=called == "causal", scale=scale, cap=cap)
    elif called == "blocks":
        out, lse = _by_blocks(spec, features.rest, (q, k, v), bias, scale, lead, cap)
    else:
        if called == "pairs":
            bias = _pair_bias(features.rest, m, bias, kind)
        if called in ("keys", "pairs") and spec.mask is not None:
            bias = _masked(spec.mask, Size(n, m, query.device), lead, bias, kind)
        rows = n if called == "causal" else None
        out, lse = whole(q, k, v, lead, causal=rows is not None, scale=scale, bias=Bias.of(bias, rows))
    if features.row is not None:
        lse = lse + features.row.detach()
    return out[..., : value.shape[-1]].to(value.dtype), lse.to(value.dtype)


def whole(
    q: Tensor, k: Tensor, v: Tensor, lead: tuple[int, ...], *, causal: bool, scale: float, bias: Bias
) -> tuple[Tensor, Tensor]:
    """One call of the kernel."""
    q, scale = _rescaled(q, scale, causal=causal)
    four = None if bias.added is None else _four(bias.added.to(q.dtype), lead, expand=False)
    out, lse = flash(_four(q, lead), _four(k, lead), _four(v, lead), 0.0, causal, attn_mask=four, scale=scale)
    if bias.empty is not None:
        lse = lse.masked_fill(_four(bias.empty, lead, expand=False).squeeze(-1), NEVER)
    return _unfour(out, lse, lead)


def _wide_values(
    q: Tensor, k: Tensor, v: Tensor, lead: tuple[int, ...], *, causal: bool, scale: float, cap: int
) -> tuple[Tensor, Tensor]:
    """One call of the kernel, and a way back of our own."""
    q, scale = _rescaled(q, scale, causal=causal)
    called: Any = wide_values.WideValues.apply
    out, lse = called(_four(q, lead), _four(k, lead), _four(v, lead), scale, causal, cap)
    return _unfour(out, lse, lead)


def _rescaled(q: Tensor, scale: float, *, causal: bool) -> tuple[Tensor, float]:
    """The kernel scales the -inf of what is hidden too: by next to nothing it becomes NaN, or +inf."""
    return (q * scale, 1.0) if causal and scale < torch.finfo(q.dtype).tiny else (q, scale)


def _unfour(out: Tensor, lse: Tensor, lead: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """(batch, heads, ...) -> (..., ...)."""
    if len(lead) == 2:
        return out, lse
    return out.reshape(*lead, *out.shape[-2:]), lse.reshape(*lead, lse.shape[-1])


def _readable(tensor: Tensor) -> Tensor:
    """The kernel takes the numbers of a row to lie side by side, and reads others where they do not."""
    return tensor if tensor.is_contiguous() or tensor.stride(-1) == 1 else tensor.contiguous()


def _four(tensor: Tensor, lead: tuple[int, ...], *, expand: bool = True) -> Tensor:
    """(..., rows, d) -> (batch, heads, rows, d)."""
    tensor = _readable(tensor)
    if tensor.dim() == 4 and len(lead) == 2 and (not expand or tensor.shape[:2] == lead):
        return tensor
    if expand or len(lead) > 2:
        tensor = tensor.expand(*lead, *tensor.shape[-2:])
    if len(lead) > 2:
        return tensor.reshape(math.prod(lead[:-1]), lead[-1], *tensor.shape[-2:])
    return tensor.reshape(*[1] * (4 - tensor.dim()), *tensor.shape)


def absorb(features: Features, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor | None, float]:
    """Features of both sides, what is added, and the scale; a bias of the keys that learns becomes one feature more."""
    q = query.new_zeros(*query.shape[:-1], 1) if features.query is None else features.query
    k = key.new_zeros(*key.shape[:-1], 1) if features.key is None else features.key
    bias = features.key_bias
    if bias is None or not (features.row is not None or (bias.requires_grad and torch.is_grad_enabled())):
        return q, k, bias, features.scale
    lead = torch.broadcast_shapes(k.shape[:-2], bias.shape[:-2])
    column = bias.mT.expand(*lead, k.shape[-2], 1)
    # The scale goes onto the queries: the bias cannot be divided by one that is 0, or next to it.
    scaled = q if features.scale == 1 else q * features.scale
    return (
        torch.cat([scaled, torch.ones_like(q[..., :1])], -1),
        torch.cat([k.expand(*lead, *k.shape[-2:]), column], -1),
        None,
        1.0,
    )


def _cancels(features: Features) -> bool:
    """Whether squares of features, which cancel, would eat the digits of float32."""
    row, bias = features.row, features.key_bias
    if row is None or bias is None or row.dtype != torch.float32 or not row.numel() or not bias.numel():
        return False
    reach = torch.maximum(bias.detach().abs().amax(), row.detach().abs().amax())
    return not reach.item() < CANCELS


def _width(features: int, values: int) -> int:
    width = max(features, values)
    return max(ALIGNED, width)


def _widen(tensor: Tensor, width: int) -> Tensor:
    return tensor if tensor.shape[-1] >= width else pad(tensor, (0, width - tensor.shape[-1]))


def _pair_bias(rest: tuple[Score, ...], m: int, key_bias: Tensor | None, kind: torch.dtype) -> Tensor | None:
    """The sum of what the caller has written out, (..., n, m), and of a bias of the keys."""
    added = [leaf.t.to(kind).expand(*leaf.t.shape[:-1], m) for leaf in rest if isinstance(leaf, Given)]
    if len(added) == 1 and key_bias is None and torch.is_grad_enabled():
        return added[0].detach().clone()  # the backward pass needs it as it is now, and the caller may change his own
    return reduce(add, added if key_bias is None else [*added, key_bias]) if added else key_bias


def _masked(mask: Mask, size: Size, lead: tuple[int, ...], bias: Tensor | None, kind: torch.dtype) -> Tensor:
    """The bias with -inf where a mask hides: (..., n, m), or (..., 1, m) if it hides a key from every query."""
    operands = [o.tensor for o in mask.operands(lead)]
    visible = mask.tile(operands, Span(0, 1 if mask.per_key else size.n), Span(0, size.m), size)
    visible = visible.expand(*visible.shape[:-1], size.m)
    if bias is None:
        return torch.zeros(visible.shape, dtype=kind, device=size.device).masked_fill_(~visible, NEVER)
    return torch.where(visible, bias, NEVER)


class Bias(NamedTuple):
    """What is added to a block of scores, and the rows (..., rows, 1) that see nothing: the kernel's lse is 0 there."""

    added: Tensor | None
    empty: Tensor | None

    @classmethod
    def of(cls, added: Tensor | None, causal_rows: int | None = None) -> Bias:
        """With `causal_rows`, a bias of the keys for so many rows, of which row i sees the keys up to i."""
        if added is None:
            return cls(None, None)
        if causal_rows is None:
            empty = added.amax(-1, keepdim=True) == NEVER
        else:
            last = torch.arange(causal_rows, device=added.device).clamp_max(added.shape[-1] - 1)
            empty = (added.cummax(-1).values == NEVER).mT.index_select(-2, last)
        return cls(added, empty if bool(empty.any()) else None)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Queries block by block, each with the keys it may see and what is added to their scores."""

    problem: Problem  # its scores are the bias: position scores, and -inf where hidden
    bias: Tensor | None
    scale: float
    rest: bool  # whether there are position scores
    versions: versions_module.Versions  # of the caller's tensors behind them: autograd sees none of these
    known: dict[Hashable, Bias] = field(default_factory=dict)

    def runs(self, cap: int, width: int) -> tuple[Run, ...]:
        """All tiles, those with one bias together; as many numbers are found at a time as the budget's tiles hold."""
        return runs(self.problem.tiles(cap), width, BUFFERS * cap if self._relative else 0)

    def bias_of(self, tile: Tile, kind: torch.dtype) -> Bias:
        """The bias of a tile; for a window it is the same for every block of queries but those at the ends."""
        if not self._relative or tile.cols.index is not None:
            return Bias.of(self._make(tile, kind))
        place = (len(tile.rows), len(tile.cols), tile.cols.start - tile.rows.start, tile.masked)
        if place not in self.known:
            self.known.clear()
            self.known[place] = Bias.of(self._make(tile, kind))
        return self.known[place]

    @property
    def _relative(self) -> bool:
        """Whether there is nothing but a mask that looks at j - i alone."""
        mask = self.problem.spec.mask
        return mask is not None and mask.relative and self.bias is None and not self.rest

    def _make(self, tile: Tile, kind: torch.dtype) -> Tensor | None:
        bias = None if self.bias is None else tile.cut(Operand(self.bias, Axis.PAIR)).to(kind)
        if tile.masked or self.rest:
            block = self.problem.scores([tile.cut(o) for o in self.problem.operands], tile).to(kind)
            bias = block if bias is None else bias + block
        return bias


def _by_blocks(
    spec: Spec,
    rest: tuple[Score, ...],
    inputs: tuple[Tensor, Tensor, Tensor],
    bias: Tensor | None,
    scale: float,
    lead: tuple[int, ...],
    cap: int,
) -> tuple[Tensor, Tensor]:
    q, k, v = (t.expand(*lead, *t.shape[-2:]) for t in inputs)
    score = reduce(add, rest) if rest else uniform()
    with torch.no_grad():
        problem = Problem.build(
            Spec(score, spec.mask, softmax()), q.new_zeros(q.shape[-2], 1), k.new_zeros(k.shape[-2], 1), lead
        )
    held = [operand.tensor for operand in problem.operands] + ([] if bias is None else [bias])
    blocks = Blocks(problem, bias, scale, bool(rest), _versions(spec, held))
    return FlashBlocks.apply(blocks, blocks.runs(cap, q.shape[-1]), q, k, v)  # pyright: ignore[reportReturnType]


def _versions(spec: Spec, held: list[Tensor]) -> versions_module.Versions:
    """Of those tensors of the caller whose memory is held; what was copied may change."""
    memory = {t.untyped_storage().data_ptr() for t in held}
    return versions_module.versions(
        {name: t for name, t in spec.tensors().items() if t.untyped_storage().data_ptr() in memory}
    )


class FlashBlocks(torch.autograd.Function):
    """The kernel on one run of blocks of queries after another."""

    @staticmethod
    def forward(
        ctx: Any, blocks: Blocks, cuts: tuple[Run, ...], q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        out = q.new_zeros(*q.shape[:-1], v.shape[-1])
        lse = q.new_full(q.shape[:-1], NEVER)
        for run in cuts:
            parts, bias, lead = _cut(blocks, run, q, k, v)
            part, part_lse = whole(parts[0], parts[1], parts[2], lead, causal=False, scale=blocks.scale, bias=bias)
            run.rows(out).copy_(part)
            run.rows(lse, trailing=1).copy_(part_lse)
        ctx.blocks, ctx.cuts = blocks, cuts
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, out, lse = ctx.saved_tensors
        versions_module.check(ctx.blocks.versions, versions_module.GRADIENT)
        lse = torch.where(lse == NEVER, 0.0, lse)  # as the kernel has it where nothing is seen
        grads = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (q, k, v)]
        for run in ctx.cuts:
            parts, bias, lead = _cut(ctx.blocks, run, q, k, v)
            rows, row_lse = [run.rows(t) for t in (grad, out)], run.rows(lse, trailing=1)
            found = _block_backward(ctx.blocks.scale, parts, bias, lead, rows, row_lse)
            for total, part, axis in zip(grads, found, (Axis.QUERY, Axis.KEY, Axis.KEY), strict=True):
                run.add(total, axis, part)
        return (None, None, *grads)


def _cut(blocks: Blocks, run: Run, q: Tensor, k: Tensor, v: Tensor) -> tuple[list[Tensor], Bias, tuple[int, ...]]:
    parts = [run.cut(t, axis) for t, axis in ((q, Axis.QUERY), (k, Axis.KEY), (v, Axis.KEY))]
    return parts, blocks.bias_of(run.first, q.dtype), tuple(parts[0].shape[:-2])


def _block_backward(
    scale: float, parts: list[Tensor], bias: Bias, lead: tuple[int, ...], rows: list[Tensor], lse: Tensor
) -> list[Tensor]:
    grad, out = (_four(t, lead) for t in rows)
    four_lse = _four(lse.unsqueeze(-1), lead).squeeze(-1)
    four = None if bias.added is None else _four(bias.added, lead, expand=False)
    found = flash_backward(
        grad, *(_four(t, lead) for t in parts), out, four_lse, 0.0, False, attn_mask=four, scale=scale
    )
    return [part.reshape(t.shape) for part, t in zip(found, parts, strict=True)]
