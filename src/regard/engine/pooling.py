"""Pooling by plan: dense, tiled and fused are one tile, many tiles, and somebody else's step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from regard.engine.fold import Job, Output, run, survey
from regard.engine.fused import kernel
from regard.engine.plan import Plan
from regard.engine.reducers import Pool
from regard.engine.tiles import Problem, all_finite, replaced, zero_filled
from regard.masks import causal as causal_mask
from regard.normalisers import Softmax, softmax
from regard.operands import NEVER, Axis, Operand, Span, Tile
from regard.scores import Dot, Score
from regard.scores._compose import Bias
from regard.spec import Spec
from regard.tracing import is_tracing

with ThreadPoolExecutor(1) as new_thread:  # what torch's dispatcher leaves out in ordinary code, as it sees it
    OUTSIDE = new_thread.submit(torch._C._dispatch_tls_local_exclude_set).result()  # noqa: SLF001


def pool(
    spec: Spec,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lead: tuple[int, ...],
    plan: Plan,
    *,
    dropout_p: float = 0.0,
    draws: tuple[Operand, ...] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(output, log-sum-exp if it came for free). The inputs are of one dtype, at least float32."""
    careful = must_be_careful(spec, query, key, value)
    out_lead = tuple(torch.broadcast_shapes(lead, value.shape[:-2]))
    form = plan.form if out_lead == lead else None  # values with heads of their own are for tiles
    if form is not None and not careful:
        return kernel.pool(spec, query, key, value, lead, form, plan.tile)
    if form is not None and torch.compiler.is_compiling() and isinstance(spec.score, Dot):
        q, k, v = (t.expand(*lead, *t.shape[-2:]) for t in (query, key, value))
        return causal(q, k, v, spec.score.scale_for(key.shape[-1]), plan.tile)[0], None
    problem = Problem.build(spec, query, key, lead, careful=careful, draws=draws)
    tiles = _tiles(problem, out_lead, plan)
    if out_lead == lead and _rows_are_cut(problem, tiles, plan, dropout_p) and not _needs_gradient(problem, value):
        return survey(problem, [Pool(value)], plan.tile)[0], None
    return _rows(problem, value, out_lead, tiles, dropout_p), None


def spread(
    spec: Spec,
    query: Tensor,
    key: Tensor,
    x: Tensor,
    lead: tuple[int, ...],
    plan: Plan,
    draws: tuple[Operand, ...] | None,
) -> Tensor:
    """The transposed product: what each key gets of x, one row a query: (..., m, d)."""
    careful = must_be_careful(spec, query, key, x)
    problem = Problem.build(spec, query, key, lead, careful=careful, draws=draws)
    out_lead = tuple(torch.broadcast_shapes(lead, x.shape[:-2]))
    count = len(problem.operands)
    operands = (*problem.operands, *_values(x, Axis.QUERY, careful=careful))

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Tensor]:
        scores = problem.scores(tensors[:count], tile)
        out = problem.weights(scores, tensors[:count], tile).mT @ tensors[count]
        if not careful:
            return (out,)
        seen, broken = scores.mT != NEVER, problem.broken(tensors[:count], tile, scores)
        return (_restore(out, seen, tensors[count + 1 :], (seen & broken.mT).any(-1, keepdim=True)),)

    outputs = (Output(Axis.KEY, x.shape[-1]),)
    return run(Job(program, operands, outputs, _tiles(problem, out_lead, plan), out_lead, problem.size, x.dtype))[0]


def must_be_careful(spec: Spec, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether something hidden may be NaN or inf, or nobody can tell. A kernel that ends hides, and -inf in a bias."""
    if not spec.hides_keys:
        return False
    if is_tracing():
        return True
    # A NaN query reaches gradients of keys hidden from it, and a fused kernel hides it where it sees few keys.
    return not all_finite(query, key, value) or not all(_hides_at_most(leaf) for leaf in spec.score.leaves())


def _hides_at_most(score: Score) -> bool:
    """Whether a bias is made of numbers and -inf: where a mask hides NaN or +inf, adding -inf would not.

    One that learns goes into the features of the kernel, which then cannot tell a row that sees only -inf.
    """
    if not isinstance(score, Bias) or not score.t.numel():
        return True
    low, high = (end.item() for end in score.t.detach().aminmax())
    return high < math.inf and not (low == NEVER and score.t.requires_grad and torch.is_grad_enabled())


def _tiles(problem: Problem, lead: tuple[int, ...], plan: Plan) -> tuple[Tile, ...]:
    if plan.executor != "dense":
        return tuple(problem.tiles(plan.tile, lead=lead))
    tile = None if 0 in lead else problem.tile(tuple(slice(0, length) for length in lead), Span(0, problem.size.n))
    return () if tile is None else (tile,)


def _rows_are_cut(problem: Problem, tiles: tuple[Tile, ...], plan: Plan, dropout_p: float) -> bool:
    """Whether a single row is longer than a tile, and softmax can be merged from parts of it."""
    longest = max([0, *[len(tile.cols) for tile in tiles]])
    plain = isinstance(problem.spec.normaliser, Softmax) and not dropout_p and not problem.careful
    return plan.executor != "dense" and plain and longest > plan.tile


def _needs_gradient(problem: Problem, value: Tensor) -> bool:
    tensors = (value, *(operand.tensor for operand in problem.operands))
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _rows(problem: Problem, value: Tensor, lead: tuple[int, ...], tiles: tuple[Tile, ...], dropout_p: float) -> Tensor:
    count = len(problem.operands)
    values = _values(value, Axis.KEY, careful=problem.careful)
    last = count + len(values)
    coins = _dropout_operands(lead, value.device) if dropout_p else []

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Tensor]:
        scores = problem.scores(tensors[:count], tile)
        weights = problem.weights(scores, tensors[:count], tile)
        if dropout_p:
            weights = weights * _kept(tensors[last], tensors[last + 1], tile, problem, dropout_p)
        out = weights @ tensors[count]
        if not problem.careful:
            return (out,)
        broken = problem.broken(tensors[:count], tile, scores)
        return (_restore(out, scores != NEVER, tensors[count + 1 : last], broken),)

    outputs = (Output(Axis.QUERY, value.shape[-1]),)
    operands = (*problem.operands, *values, *coins)
    return run(Job(program, operands, outputs, tiles, lead, problem.size, value.dtype))[0]


def _values(value: Tensor, axis: Axis, *, careful: bool) -> list[Operand]:
    """What is pooled; if careful, without NaN and inf, followed by marks of where they were."""
    if not careful:
        return [Operand(value, axis)]
    found = value.detach()
    marks = (found.isnan(), found == math.inf, found == NEVER)
    return [Operand(zero_filled(value), axis), *(Operand(mark.to(value.dtype), axis) for mark in marks)]


def _restore(out: Tensor, seen: Tensor, marks: Sequence[Tensor], broken: Tensor) -> Tensor:
    """Pooling left NaN and inf out, so that hidden ones do no harm; those that are seen come back here."""
    seen = seen.to(out.dtype)
    nan, plus, minus = ((seen @ mark) > 0 for mark in marks)
    nan = nan | (plus & minus) | broken
    value = torch.where(nan, math.nan, torch.where(plus, math.inf, NEVER)).to(out.dtype)
    return replaced(out, nan | plus | minus, value)


def _dropout_operands(lead: tuple[int, ...], device: torch.device) -> list[Operand]:
    heads = torch.arange(math.prod(lead), device=device).reshape(*lead, 1, 1)
    return [Operand(heads, Axis.PAIR), Operand(torch.randint(1 << 62, (1,), device=device), Axis.FIXED)]


def _kept(heads: Tensor, seed: Tensor, tile: Tile, problem: Problem, p: float) -> Tensor:
    """0 or 1 / (1 - p), from a hash of seed and position: the same in whatever tile a weight falls."""
    rows = tile.rows.positions(heads.device)[:, None]
    bits = (heads * problem.size.n + rows) * problem.size.m + tile.cols.positions(heads.device) + seed
    for factor in (-49064778989728563, -4265267296055464877):  # the finaliser of MurmurHash3
        bits = (bits ^ ((bits >> 33) & 0x7FFFFFFF)) * factor
    bits = (bits ^ (bits >> 33)) & 0xFFFFFF
    return (bits >= round(p * (1 << 24))).to(problem.dtype) / (1 - p)


@torch.library.custom_op("regard::causal", mutates_args=())
def causal(query: Tensor, key: Tensor, value: Tensor, scale: float, tile: int) -> tuple[Tensor, Tensor]:
    """Causal attention for torch.compile, which cannot branch on whether a number is NaN; in here one can."""
    spec = Spec(Dot(scale), causal_mask("top-left"), softmax())
    lead = tuple(query.shape[:-2])
    out, lse = pool(spec, query, key, value, lead, Plan("fused", tile, "compiled", form="causal"))
    return out.contiguous(), query.new_zeros(query.shape[:-1]) if lse is None else lse.contiguous()


@causal.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, scale: float, tile: int) -> tuple[Tensor, Tensor]:
    del key, scale, tile
    return query.new_empty(*query.shape[:-1], value.shape[-1]), query.new_empty(query.shape[:-1])


@torch.library.custom_op("regard::causal_backward", mutates_args=())
def causal_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float, tile: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The same computation again, with a graph."""
    leaves = [t.detach().requires_grad_() for t in (query, key, value)]
    spec = Spec(Dot(scale), causal_mask("top-left"), softmax())
    # Inside an operator torch records no graph; the dispatcher's ordinary state brings recording back.
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), OUTSIDE), torch.enable_grad():  # noqa: SLF001
        plan = Plan("fused", tile, "compiled", form="causal")
        out, _ = pool(spec, leaves[0], leaves[1], leaves[2], tuple(query.shape[:-2]), plan)
        found = torch.autograd.grad(out, leaves, grad)
    return tuple(part.contiguous() for part in found)  # pyright: ignore[reportReturnType]


@causal_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float, tile: int
) -> tuple[Tensor, Tensor, Tensor]:
    del grad, scale, tile
    return tuple(t.new_empty(t.shape) for t in (query, key, value))  # pyright: ignore[reportReturnType]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    del output
    ctx.save_for_backward(*inputs[:3])
    ctx.scale, ctx.tile = inputs[3:]


def _gradient(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return (*causal_backward(grad.contiguous(), *ctx.saved_tensors, ctx.scale, ctx.tile), None, None)


causal.register_autograd(_gradient, setup_context=_save)
