"""Products with the matrix of weights, by plan: dense is one tile, tiled many tiles, fused torch's kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine import additive
from regard.engine.fold import Output, TileJob, fold, run_job
from regard.engine.fused import forms
from regard.engine.plan import Plan
from regard.engine.reducers import Pool
from regard.engine.tiles import Problem, all_finite, replace_values, zero_non_finite
from regard.normalisers import Softmax
from regard.operands import NEVER, Axis, Operand, Span, Tile, broadcast_shapes
from regard.scores import Bias, Dot, Score
from regard.spec import Spec
from regard.tracing import is_tracing


def pool(
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    lead: tuple[int, ...],
    plan: Plan,
    *,
    dropout_p: float = 0.0,
    draws: tuple[Operand, ...] | None = None,
) -> tuple[Float[Tensor, "... queries dim_v"], Float[Tensor, "... queries"] | None]:
    """weights @ value, and the log-sum-exp of each row if the fused kernel returned it, else None.

    The inputs have one dtype, float32 at least. `lead` are the leading dimensions of the weights; `draws` are the
    random operands of the normaliser, if they were drawn before.
    """
    if plan.form == "whole" and spec.mask is not None:  # it hides nothing
        spec = Spec(spec.score, None, spec.normaliser)
    out_lead = broadcast_shapes(lead, value.shape[:-2])
    form = plan.form if out_lead == lead else None  # values with heads of their own are for tiles
    output_tells = form is not None and _output_tells_of_nan(spec, query, key, value)
    nan_safe = not output_tells and needs_nan_safety(spec, query, key, value)
    if form is not None and not nan_safe:
        out, lse = forms.pool(spec, query, key, value, lead, form, plan.tile_scores)
        if not output_tells or all_finite(out):
            return out, lse
        nan_safe = True
    if form is not None and torch.compiler.is_compiling() and isinstance(spec.score, Dot):
        q, k, v = (t.expand(*lead, *t.shape[-2:]) for t in (query, key, value))
        # see compiled_causal
        return torch.ops.regard.causal(q, k, v, spec.score.scale_for(key.shape[-1]), plan.tile_scores)[0], None
    if not nan_safe and not dropout_p and additive.serves(spec, query, key, value, lead, plan):
        return additive.pool(spec, query, key, value), None
    problem = Problem.build(spec, query, key, lead, nan_safe=nan_safe, draws=draws)
    tiles = _tiles(problem, out_lead, plan)
    if out_lead == lead and _rows_are_cut(problem, tiles, plan, dropout_p) and not _needs_gradient(problem, value):
        return fold(problem, [Pool(value)], plan.tile_scores)[0], None
    return _pool_tiles(problem, value, out_lead, tiles, dropout_p), None


def spread(
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    x: Float[Tensor, "... queries dim"],
    lead: tuple[int, ...],
    plan: Plan,
    draws: tuple[Operand, ...] | None,
) -> Float[Tensor, "... keys dim"]:
    """weights.mT @ x, the transposed product."""
    nan_safe = needs_nan_safety(spec, query, key, x)
    problem = Problem.build(spec, query, key, lead, nan_safe=nan_safe, draws=draws)
    out_lead = broadcast_shapes(lead, x.shape[:-2])
    count = len(problem.operands)
    operands = (*problem.operands, *value_operands(x, Axis.QUERY, nan_safe=nan_safe))

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Float[Tensor, "... cols dim"]]:
        scores = problem.scores(tensors[:count], tile)
        out = problem.weights(scores, tensors[:count], tile).mT @ tensors[count]
        if not nan_safe:
            return (out,)
        seen, rows_with_nan = scores.mT != NEVER, problem.rows_with_nan(tensors[:count], tile, scores)
        return (restore_non_finite(out, seen, tensors[count + 1 :], (seen & rows_with_nan.mT).any(-1, keepdim=True)),)

    outputs = (Output(Axis.KEY, x.shape[-1]),)
    return run_job(
        TileJob(program, operands, outputs, _tiles(problem, out_lead, plan), out_lead, problem.size, x.dtype)
    )[0]


def _output_tells_of_nan(spec: Spec, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """True if a hidden NaN or inf that does harm is seen in the output, where looking for it takes the least time.

    Gradients may suffer from one that the output does not show.
    """
    if not spec.hides_keys or is_tracing() or not all(_has_safe_bias(leaf) for leaf in spec.score.leaves()):
        return False
    return not (torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value, *spec.tensors().values())))


def needs_nan_safety(
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... rows dim_v"],
) -> bool:
    """True if a hidden number may be NaN or inf, or if that cannot be known, as under torch.compile.

    Not only masks hide keys: kernels of finite reach do, and -inf in a bias.
    """
    if not spec.hides_keys:
        return False
    if is_tracing():
        return True
    # A NaN query reaches the gradients of keys hidden from it; with few keys the fused kernel returns numbers for it.
    return not all_finite(query, key, value) or not all(_has_safe_bias(leaf) for leaf in spec.score.leaves())


def _has_safe_bias(score: Score) -> bool:
    """True unless the score is a bias with NaN or +inf, which stays where a mask adds -inf.

    A learned bias must not hold -inf either: it becomes a feature of the kernel, which then does not notice a row that
    sees no key.
    """
    if not isinstance(score, Bias) or not score.t.numel():
        return True
    low, high = (end.item() for end in score.t.detach().aminmax())
    return high < math.inf and not (low == NEVER and score.t.requires_grad and torch.is_grad_enabled())


def _tiles(problem: Problem, lead: tuple[int, ...], plan: Plan) -> tuple[Tile, ...]:
    """The tiles of a plan: one for dense, otherwise as many as its tile size requires."""
    if plan.executor != "dense":
        return tuple(problem.tiles(plan.tile_scores, lead=lead))
    tile = None if 0 in lead else problem.tile(tuple(slice(0, length) for length in lead), Span(0, problem.size.n))
    return () if tile is None else (tile,)


def _rows_are_cut(problem: Problem, tiles: tuple[Tile, ...], plan: Plan, dropout_p: float) -> bool:
    """True if a row is longer than a tile, and its softmax can be merged from parts."""
    longest = max([0, *[len(tile.cols) for tile in tiles]])
    plain = isinstance(problem.spec.normaliser, Softmax) and not dropout_p and not problem.nan_safe
    return plan.executor != "dense" and plain and longest > plan.tile_scores


def _needs_gradient(problem: Problem, value: Float[Tensor, "... keys dim_v"]) -> bool:
    """True if autograd has to record the product."""
    tensors = (value, *(operand.tensor for operand in problem.operands))
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _pool_tiles(
    problem: Problem,
    value: Float[Tensor, "... keys dim_v"],
    lead: tuple[int, ...],
    tiles: tuple[Tile, ...],
    dropout_p: float,
) -> Float[Tensor, "*batch queries dim_v"]:
    """weights @ value from tiles of whole rows; differentiable."""
    count = len(problem.operands)
    values = value_operands(value, Axis.KEY, nan_safe=problem.nan_safe)
    last = count + len(values)
    random = dropout_operands(lead, value.device) if dropout_p else []

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Float[Tensor, "... rows dim_v"]]:
        scores = problem.scores(tensors[:count], tile)
        weights = problem.weights(scores, tensors[:count], tile)
        if dropout_p:
            kept = kept_by_dropout(tensors[last], tensors[last + 1], tile, problem.size.n, dropout_p)
            weights = weights * kept.to(weights.dtype)
        out = weights @ tensors[count]
        if dropout_p:
            out = out / (1 - dropout_p)
        if not problem.nan_safe:
            return (out,)
        rows_with_nan = problem.rows_with_nan(tensors[:count], tile, scores)
        return (restore_non_finite(out, scores != NEVER, tensors[count + 1 : last], rows_with_nan),)

    outputs = (Output(Axis.QUERY, value.shape[-1]),)
    operands = (*problem.operands, *values, *random)
    return run_job(TileJob(program, operands, outputs, tiles, lead, problem.size, value.dtype))[0]


def value_operands(value: Float[Tensor, "... rows dim"], axis: Axis, *, nan_safe: bool) -> list[Operand]:
    """The values as operands; if NaN-safe, with 0 for NaN and inf, and with marks of where they were."""
    if not nan_safe:
        return [Operand(value, axis)]
    detached = value.detach()
    marks = (detached.isnan(), detached == math.inf, detached == NEVER)
    return [Operand(zero_non_finite(value), axis), *(Operand(mark.to(value.dtype), axis) for mark in marks)]


def restore_non_finite(
    out: Float[Tensor, "*batch rows dim"],
    seen: Bool[Tensor, "... rows cols"],
    marks: Sequence[Tensor],
    rows_with_nan: Bool[Tensor, "... rows 1"],
) -> Float[Tensor, "*batch rows dim"]:
    """The output with NaN and inf again where a row sees such values; hidden ones did no harm."""
    counted = seen.to(out.dtype)
    nan, plus, minus = ((counted @ mark) > 0 for mark in marks)
    nan = nan | (plus & minus) | rows_with_nan
    value = torch.where(nan, math.nan, torch.where(plus, math.inf, NEVER)).to(out.dtype)
    return replace_values(out, nan | plus | minus, value)


def dropout_operands(lead: tuple[int, ...], device: torch.device) -> list[Operand]:
    """The number of each head, and a random seed."""
    return [Operand(head_numbers(lead, device), Axis.PAIR), Operand(dropout_seed(device), Axis.FIXED)]


def head_numbers(lead: tuple[int, ...], device: torch.device) -> Int[Tensor, "... 1 1"]:
    """The number of each head."""
    return torch.arange(math.prod(lead), device=device).reshape(*lead, 1, 1)


def dropout_seed(device: torch.device) -> Int[Tensor, " 1"]:
    """A random seed."""
    return torch.randint(1 << 62, (1,), device=device)


def kept_by_dropout(
    heads: Int[Tensor, "... 1 1"], seed: Int[Tensor, " 1"], tile: Tile, n: int, p: float
) -> Bool[Tensor, "... rows cols"]:
    """True for weights that stay, from a hash of seed and position, so that it does not depend on the tiles.

    `heads` are the numbers of the heads, and n is the number of queries in the whole matrix.
    Row and column are hashed with 64 bits; for each weight a step with 32 bits joins them.
    """
    rows = tile.rows.positions(heads.device)[:, None]
    bits = _hash(heads * n + rows + seed) ^ _hash(tile.cols.positions(heads.device) - seed)
    bits *= 0x45D9F3B
    bits ^= bits >> 15
    bits *= 0x2C1B3C6D
    return bits >= round(p * (1 << 32)) - (1 << 31)


def _hash(positions: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Random numbers of 31 bits, the same for equal positions."""
    bits = positions
    for factor in (-49064778989728563, -4265267296055464877):  # the finaliser of MurmurHash3
        bits = (bits ^ ((bits >> 33) & 0x7FFFFFFF)) * factor
    return ((bits ^ (bits >> 33)) & 0x7FFFFFFF).to(torch.int32)
