"""Questions about a matrix of weights: one shared pass for those asked most, row questions with a gradient, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index as as_index
from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.engine.fold import Output, TileJob, fold, run_job
from regard.engine.plan import TILE_SCORES
from regard.engine.reducers import (
    Entropy,
    Heatmap,
    MeanScore,
    PeakScore,
    Received,
    Reducer,
    SquaredWeight,
    Top,
)
from regard.engine.tiles import Problem, replace_values
from regard.errors import ChoiceError, DeviceError, DtypeError, ShapeError
from regard.normalisers import Normaliser, Softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.term import type_name

BINS, TOP = 256, 8  # of the heatmap and of the top keys that `overview` computes
ENTROPY_ERROR = 8e-6  # where scores round by more, entropy is not computed as log-sum-exp - mean score


def overview(problem: Problem, tile_scores: int) -> dict[str, Any]:
    """Top keys, heatmap, received weight and row statistics from one pass: the tiles cost more than the reducers."""
    reducers: dict[str, Reducer[Any]] = {
        "top": top_reducer(problem.spec.normaliser, TOP),
        "heatmap": Heatmap(BINS, "sum", problem.size),
        "received": Received(),
    }
    if problem.spec.normaliser.normalised:
        reducers["saturation"] = SquaredWeight()
        if isinstance(problem.spec.normaliser, Softmax):
            reducers |= {"peak": PeakScore(), "mean": MeanScore()}
        else:
            reducers["entropy"] = Entropy()
    answers = dict(zip(reducers, fold(problem, list(reducers.values()), tile_scores), strict=True))
    if "mean" in answers:
        peak, weight = answers.pop("peak"), answers["top"][0][..., 0]
        answers["logsumexp"] = lse = torch.where(peak == NEVER, NEVER, peak - weight.log())
        entropy = torch.where(lse == NEVER, 0.0, (lse - answers.pop("mean")).clamp_min(0))
        cancelled = lse.abs() * torch.finfo(lse.dtype).eps > ENTROPY_ERROR
        if bool((cancelled & (lse != NEVER)).any()):  # a bias of the lowest number there is, for one
            (exact,) = fold(problem, [Entropy()], tile_scores)
            entropy = torch.where(cancelled, exact, entropy)
        answers["entropy"] = entropy
    return answers


def top_reducer(normaliser: Normaliser, k: int) -> Top:
    """The reducer for the k largest weights. It ranks by score if it can: then weights of 0 have an order too."""
    return Top(k, by_weight=not normaliser.monotone)


@torch.no_grad()
def rows_without_keys(problem: Problem) -> Bool[Tensor, "*batch queries"]:
    """True for queries from which the mask hides every key. No score is computed."""
    shape = (*problem.lead, problem.size.n)
    if problem.spec.mask is None:
        return torch.full(shape, not problem.size.m, device=problem.size.device)
    empty = torch.ones(shape, dtype=torch.bool, device=problem.size.device)
    for tile in problem.tiles(4 * TILE_SCORES, overhead=16 * TILE_SCORES):  # a mask costs little, a tile costs much
        tensors = [tile.cut(o) for o in problem.operands]
        seen = sum(high - low for low, high in tile.masked) < len(tile.cols)  # then all rows see a whole block
        for low, high in () if seen else tile.masked:
            seen = seen | problem.visible(tensors, tile, low, high).any(-1)
        part = tile.rows.take(tile.heads(empty, trailing=1), -1)
        part.copy_(~torch.as_tensor(seen, device=empty.device).expand(part.shape))
    return empty


# (scores, weights, tile, extra operands) -> answer (*batch, rows, 1)
RowQuestion = Callable[[Tensor, Tensor, Tile, Sequence[Tensor]], Tensor]


def _entropy(
    scores: Float[Tensor, "... rows cols"], weights: Float[Tensor, "... rows cols"], tile: Tile, extra: Sequence[Tensor]
) -> Float[Tensor, "... rows 1"]:
    """-sum_j p_j log p_j of each row."""
    del scores, tile, extra
    times_log: Any = WeightTimesLog if torch.compiler.is_compiling() else WeightTimesLogEagerly
    terms: Tensor = times_log.apply(weights)
    return terms.sum(-1, keepdim=True).neg().clamp_min(0)


class WeightTimesLog(torch.autograd.Function):
    """p log p with the derivative log p instead of log p + 1.

    Rows sum to 1, so the 1 changes nothing in exact arithmetic; in a sharp row it would round log p away.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return weights * _log(weights)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        del output
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (weights,) = ctx.saved_tensors
        return grad * _log(weights)


class WeightTimesLogEagerly(WeightTimesLog):
    """WeightTimesLog with a forward derivative, which torch.compile does not support."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        WeightTimesLog.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, tangent: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (weights,) = ctx.saved_tensors
        return tangent * _log(weights)


def _log(weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """log p, and a finite number where p is 0; the result is only multiplied by p."""
    return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()


def _saturation(
    scores: Float[Tensor, "... rows cols"], weights: Float[Tensor, "... rows cols"], tile: Tile, extra: Sequence[Tensor]
) -> Float[Tensor, "... rows 1"]:
    """sum_j p_j^2 of each row."""
    del scores, tile, extra
    return weights.square().sum(-1, keepdim=True)


def _logsumexp(
    scores: Float[Tensor, "... rows cols"], weights: Float[Tensor, "... rows cols"], tile: Tile, extra: Sequence[Tensor]
) -> Float[Tensor, "... rows 1"]:
    """log sum_j exp(s_j) of each row; -inf for an empty row."""
    del weights, tile, extra
    empty = (scores.detach() == NEVER).all(-1, keepdim=True)
    return torch.where(empty, NEVER, torch.logsumexp(scores.masked_fill(empty, 0), -1, keepdim=True))


def _distance(
    scores: Float[Tensor, "... rows cols"], weights: Float[Tensor, "... rows cols"], tile: Tile, extra: Sequence[Tensor]
) -> Float[Tensor, "... rows 1"]:
    """sum_j p_j |i - j| of each row, with the position i of the query in `extra`."""
    del scores
    distance = (extra[0] - tile.cols.positions(weights.device)).abs().to(weights.dtype)
    return (weights * distance).sum(-1, keepdim=True)


ROW_QUESTIONS: dict[str, RowQuestion] = {
    "entropy": _entropy,
    "saturation": _saturation,
    "logsumexp": _logsumexp,
    "distance": _distance,
}


def row_question_with_graph(
    problem: Problem,
    question: str,
    tile_scores: int,
    extra: tuple[Operand, ...] = (),
    tiles: tuple[Tile, ...] | None = None,
) -> Float[Tensor, "*batch queries"]:
    """The differentiable answer to one of ROW_QUESTIONS; tiles are computed again in the backward pass.

    `extra` are operands of the question itself. With `tiles`, only the rows in these tiles have an answer.
    """
    formula, count = ROW_QUESTIONS[question], len(problem.operands)

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Float[Tensor, "... rows 1"]]:
        scores = problem.scores(tensors[:count], tile)
        answer = formula(scores, problem.weights(scores, tensors[:count], tile), tile, tensors[count:])
        if problem.nan_safe:
            rows_with_nan = problem.rows_with_nan(tensors[:count], tile, scores)
            answer = replace_values(answer, rows_with_nan, torch.full_like(answer, math.nan))
        return (answer,)

    fill = NEVER if question == "logsumexp" else 0.0
    tiles = tuple(problem.tiles(tile_scores)) if tiles is None else tiles
    job = TileJob(
        program,
        (*problem.operands, *extra),
        (Output(Axis.QUERY, 1, fill),),
        tiles,
        problem.lead,
        problem.size,
        problem.dtype,
    )
    return run_job(job)[0].squeeze(-1)


def dense_with_graph(problem: Problem, tile_scores: int) -> Float[Tensor, "*batch queries keys"]:
    """The whole matrix, differentiable; tiles are computed again in the backward pass."""
    m = problem.size.m

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Float[Tensor, "... rows keys"]]:
        scores = problem.scores(tensors, tile)
        weights = problem.weights(scores, tensors, tile)
        if problem.nan_safe:
            rows_with_nan = problem.rows_with_nan(tensors, tile, scores) & (scores != NEVER)
            weights = replace_values(weights, rows_with_nan, torch.full_like(weights, math.nan))
        return (_scatter_columns(weights, tile.cols, m),)

    outputs = (Output(Axis.QUERY, m),)
    tiles = tuple(problem.tiles(tile_scores))
    return run_job(TileJob(program, problem.operands, outputs, tiles, problem.lead, problem.size, problem.dtype))[0]


def _scatter_columns(weights: Float[Tensor, "*rows cols"], cols: Span, m: int) -> Float[Tensor, "*rows {m}"]:
    """The weights of some columns at their places among all m, and 0 in the others."""
    if cols.index is None:
        return torch.nn.functional.pad(weights, (cols.start, m - cols.stop))
    return weights.new_zeros(*weights.shape[:-1], m).index_add(-1, cols.index, weights)


def choose_keys(problem: Problem, tile_scores: int) -> tuple[Operand, ...]:
    """The keys that a normaliser takes, as operands: later passes, in other tiles or digits, take the same keys."""
    count, normaliser = len(problem.operands) - problem.spec.normaliser.arity, problem.spec.normaliser

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Int[Tensor, "... rows 1"]]:
        return (normaliser.chosen(problem.scores(tensors, tile), tile.cols, tensors[count:]),)

    outputs = (Output(Axis.QUERY, 1, -1),)
    if (
        0 < math.prod((*problem.lead, problem.size.n, problem.size.m)) <= tile_scores
    ):  # many heads of few rows are one tile too
        whole = problem.tile(tuple(slice(0, length) for length in problem.lead), Span(0, problem.size.n))
        tiles = () if whole is None else (whole,)
    else:
        tiles = tuple(problem.tiles(tile_scores))
    (keys,) = run_job(TileJob(program, problem.operands, outputs, tiles, problem.lead, problem.size, torch.int64))
    return chosen_operands(keys, problem.size.m)


def chosen_operands(keys: Int[Tensor, "*batch queries 1"], m: int) -> tuple[Operand, ...]:
    """The operands of a normaliser that took one of m keys for each query."""
    positions = torch.arange(m, device=keys.device).unsqueeze(-1)
    return Operand(keys, Axis.QUERY), Operand(positions, Axis.KEY)


def whole_number(value: object, name: str) -> int:
    """A whole number, such as the index of a head, from anything that is one; ChoiceError for what is none."""
    try:
        if not isinstance(value, bool):
            return as_index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        pass
    msg = f"{name} is a whole number, counted from 0, not {value!r:.40}"
    raise ChoiceError(msg)


def _integers(groups: object) -> TypeGuard[Tensor]:
    """True for a tensor of integers."""
    return isinstance(groups, Tensor) and not (
        groups.is_floating_point() or groups.is_complex() or groups.dtype == torch.bool
    )


def _same_device(name: str, tensor: Tensor, device: torch.device) -> None:
    """Refuse a tensor that is not on the device of the weights."""
    if tensor.device != device:
        msg = f"{name} must be on the device of the weights, {device}, but it is on {tensor.device}"
        raise DeviceError(msg)


def check_query_positions(
    given: Shaped[Tensor, "..."] | None, lead: tuple[int, ...], size: Size
) -> Float[Tensor, "... queries"]:
    """The position of each query among the keys, after a check; 0, 1, 2, ... if none were given."""
    if given is None:
        if size.n != size.m:
            msg = (
                f"distance() with {size.n} queries and {size.m} keys needs query_positions, "
                f"the place of each query among the keys"
            )
            raise ShapeError(msg)
        return torch.arange(size.n, device=size.device, dtype=torch.float64)
    if not isinstance(given, Tensor) or given.is_complex() or given.dtype == torch.bool:
        msg = f"query_positions must be a tensor of numbers, one a query, but it is {type_name(given)}"
        raise DtypeError(msg)
    _same_device("query_positions", given, size.device)
    if given.shape[-1:] != (size.n,):
        msg = f"query_positions needs one place for each of {size.n} queries, but its shape is {tuple(given.shape)}"
        raise ShapeError(msg)
    own = tuple(given.shape[:-1])
    if len(own) > len(lead) or any(a not in (1, b) for a, b in zip(reversed(own), reversed(lead), strict=False)):
        msg = f"query_positions {tuple(given.shape)} must broadcast to (..., queries) = {(*lead, size.n)}"
        raise ShapeError(msg)
    return given.to(torch.float64)


def check_groups(groups: Shaped[Tensor, "..."], lead: tuple[int, ...], size: Size) -> int:
    """The number of groups, after a check that there is one id for each key."""
    m = size.m
    if not _integers(groups):
        msg = f"groups must be a tensor of integer ids, one a key, but it is {type_name(groups)}"
        raise DtypeError(msg)
    _same_device("groups", groups, size.device)
    if groups.shape[-1:] != (m,) or groups.dim() - 1 > len(lead):
        msg = f"groups needs one id for each of {m} keys, (m,) or (B, m), but its shape is {tuple(groups.shape)}"
        raise ShapeError(msg)
    if groups.dim() > 1 and any(a not in (1, b) for a, b in zip(groups.shape[:-1], lead, strict=False)):
        msg = f"groups {tuple(groups.shape)} must follow the leading dimensions {lead} from the left"
        raise ShapeError(msg)
    groups = groups.long()
    if groups.numel() and int(groups.min()) < -1:
        msg = f"groups are numbered from 0, and -1 is none, but there is a {int(groups.min())}"
        raise ChoiceError(msg)
    return int(groups.max()) + 1 if groups.numel() else 0


def group_indicators(
    groups: Shaped[Tensor, "..."], count: int, lead: tuple[int, ...]
) -> Bool[Tensor, "... keys groups"]:
    """One column for each of `count` groups of keys, True where a key belongs to it."""
    marks = groups.long().unsqueeze(-1) == torch.arange(count, device=groups.device)
    missing = len(lead) - (groups.dim() - 1) if groups.dim() > 1 else 0
    return marks.reshape(*marks.shape[:-2], *[1] * missing, *marks.shape[-2:])
