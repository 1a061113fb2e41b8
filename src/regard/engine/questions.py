"""Questions about a matrix of weights, each in one pass over its tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor

from regard.engine.fold import Job, Output, run, survey
from regard.engine.plan import TILE
from regard.engine.reducers import (
    Heatmap,
    MeanScore,
    PeakScore,
    Received,
    Reducer,
    SquaredWeight,
    Surprise,
    Top,
)
from regard.engine.tiles import Problem, replaced
from regard.errors import ChoiceError, DeviceError, DtypeError, ShapeError
from regard.normalisers import Normaliser, Softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.term import type_name

BINS, TOP = 256, 8  # what a pass answers without being asked
DIGITS = 8e-6  # of an entropy: where the scores of a row round by more, it is not to be had from their mean


def overview(problem: Problem, cap: int) -> dict[str, Any]:
    """One pass for the questions that people ask together: they share the tile, which is what costs."""
    wanted: dict[str, Reducer[Any]] = {
        "top": top(problem.spec.normaliser, TOP),
        "heatmap": Heatmap(BINS, "sum", problem.size),
        "received": Received(),
    }
    if problem.spec.normaliser.normalised:
        wanted["saturation"] = SquaredWeight()
        if isinstance(problem.spec.normaliser, Softmax):
            wanted |= {"peak": PeakScore(), "mean": MeanScore()}
        else:
            wanted["entropy"] = Surprise()
    answers = dict(zip(wanted, survey(problem, list(wanted.values()), cap), strict=True))
    if "mean" in answers:
        peak, weight = answers.pop("peak"), answers["top"][0][..., 0]
        answers["logsumexp"] = lse = torch.where(peak == NEVER, NEVER, peak - weight.log())
        entropy = torch.where(lse == NEVER, 0.0, (lse - answers.pop("mean")).clamp_min(0))
        cancelled = lse.abs() * torch.finfo(lse.dtype).eps > DIGITS
        if bool((cancelled & (lse != NEVER)).any()):  # a bias of the lowest number there is, for one
            (exact,) = survey(problem, [Surprise()], cap)
            entropy = torch.where(cancelled, exact, entropy)
        answers["entropy"] = entropy
    return answers


def top(normaliser: Normaliser, k: int) -> Top:
    """The k largest weights, by score wherever that is the same: weights of 0 have an order then too."""
    return Top(k, by_weight=not normaliser.monotone)


@torch.no_grad()
def unseen(problem: Problem) -> Tensor:
    """Queries from which a mask hides every key, (..., n). No score is made."""
    shape = (*problem.lead, problem.size.n)
    if problem.spec.mask is None:
        return torch.full(shape, not problem.size.m, device=problem.size.device)
    found = torch.ones(shape, dtype=torch.bool, device=problem.size.device)
    for tile in problem.tiles(4 * TILE, call=16 * TILE):  # bits are cheap, and a call is not
        tensors = [tile.cut(o) for o in problem.operands]
        seen = sum(high - low for low, high in tile.masked) < len(tile.cols)  # then a block is visible to all of them
        for low, high in () if seen else tile.masked:
            seen = seen | problem.visible(tensors, tile, low, high).any(-1)
        here = tile.rows.take(tile.heads(found, trailing=1), -1)
        here.copy_(~torch.as_tensor(seen, device=found.device).expand(here.shape))
    return found


RowQuestion = Callable[[Tensor, Tensor, Tile, Sequence[Tensor]], Tensor]


def _entropy(scores: Tensor, weights: Tensor, tile: Tile, extra: Sequence[Tensor]) -> Tensor:
    del scores, tile, extra
    times_log: Any = WeightTimesLog if torch.compiler.is_compiling() else WeightTimesLogEagerly
    terms: Tensor = times_log.apply(weights)
    return terms.sum(-1, keepdim=True).neg().clamp_min(0)


class WeightTimesLog(torch.autograd.Function):
    """p log p with log p for a derivative, not log p + 1: rows sum to 1, so the 1 does nothing.

    It does harm though: in a sharp row log p is so small that 1 would round it away.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weights: Tensor) -> Tensor:
        return weights * _log(weights)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        del output
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (weights,) = ctx.saved_tensors
        return grad * _log(weights)


class WeightTimesLogEagerly(WeightTimesLog):
    """The same with a forward derivative, which torch.compile does not take."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        WeightTimesLog.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (weights,) = ctx.saved_tensors
        return tangent * _log(weights)


def _log(weights: Tensor) -> Tensor:
    """log p, and a finite number where p is 0: it is only ever multiplied by p."""
    return weights.clamp_min(torch.finfo(weights.dtype).tiny).log()


def _saturation(scores: Tensor, weights: Tensor, tile: Tile, extra: Sequence[Tensor]) -> Tensor:
    del scores, tile, extra
    return weights.square().sum(-1, keepdim=True)


def _logsumexp(scores: Tensor, weights: Tensor, tile: Tile, extra: Sequence[Tensor]) -> Tensor:
    del weights, tile, extra
    empty = (scores.detach() == NEVER).all(-1, keepdim=True)
    return torch.where(empty, NEVER, torch.logsumexp(scores.masked_fill(empty, 0), -1, keepdim=True))


def _distance(scores: Tensor, weights: Tensor, tile: Tile, extra: Sequence[Tensor]) -> Tensor:
    del scores
    gap = (extra[0] - tile.cols.positions(weights.device)).abs().to(weights.dtype)
    return (weights * gap).sum(-1, keepdim=True)


ROW_QUESTIONS: dict[str, RowQuestion] = {
    "entropy": _entropy,
    "saturation": _saturation,
    "logsumexp": _logsumexp,
    "distance": _distance,
}


def differentiable(
    problem: Problem,
    question: str,
    cap: int,
    extra: tuple[Operand, ...] = (),
    tiles: tuple[Tile, ...] | None = None,
) -> Tensor:
    """The answer (..., n) with a graph behind it; tiles are made again in the backward pass.

    With `tiles` given, it is the answer for the rows in them alone.
    """
    ask, count = ROW_QUESTIONS[question], len(problem.operands)

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Tensor]:
        scores = problem.scores(tensors[:count], tile)
        answer = ask(scores, problem.weights(scores, tensors[:count], tile), tile, tensors[count:])
        if problem.careful:
            broken = problem.broken(tensors[:count], tile, scores)
            answer = replaced(answer, broken, torch.full_like(answer, math.nan))
        return (answer,)

    fill = NEVER if question == "logsumexp" else 0.0
    tiles = tuple(problem.tiles(cap)) if tiles is None else tiles
    job = Job(
        program,
        (*problem.operands, *extra),
        (Output(Axis.QUERY, 1, fill),),
        tiles,
        problem.lead,
        problem.size,
        problem.dtype,
    )
    return run(job)[0].squeeze(-1)


def dense(problem: Problem, cap: int) -> Tensor:
    """All weights (..., n, m) with a graph behind them; tiles are made again in the backward pass."""
    m = problem.size.m

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Tensor]:
        scores = problem.scores(tensors, tile)
        weights = problem.weights(scores, tensors, tile)
        if problem.careful:
            broken = problem.broken(tensors, tile, scores) & (scores != NEVER)
            weights = replaced(weights, broken, torch.full_like(weights, math.nan))
        return (_among_all(weights, tile.cols, m),)

    outputs = (Output(Axis.QUERY, m),)
    tiles = tuple(problem.tiles(cap))
    return run(Job(program, problem.operands, outputs, tiles, problem.lead, problem.size, problem.dtype))[0]


def _among_all(weights: Tensor, cols: Span, m: int) -> Tensor:
    """The weights of some columns at their places among all m, 0 elsewhere."""
    if cols.index is None:
        return torch.nn.functional.pad(weights, (cols.start, m - cols.stop))
    return weights.new_zeros(*weights.shape[:-1], m).index_add(-1, cols.index, weights)


def chosen(problem: Problem, cap: int) -> tuple[Operand, ...]:
    """The keys that a normaliser takes, found once: whoever looks again, in other tiles or digits, sees the same."""
    count, normaliser = len(problem.operands) - problem.spec.normaliser.arity, problem.spec.normaliser

    def program(tensors: Sequence[Tensor], tile: Tile) -> tuple[Tensor]:
        return (normaliser.chosen(problem.scores(tensors, tile), tile.cols, tensors[count:]),)

    outputs = (Output(Axis.QUERY, 1, -1),)
    if 0 < math.prod((*problem.lead, problem.size.n, problem.size.m)) <= cap:  # many heads of few rows are one tile too
        whole = problem.tile(tuple(slice(0, length) for length in problem.lead), Span(0, problem.size.n))
        tiles = () if whole is None else (whole,)
    else:
        tiles = tuple(problem.tiles(cap))
    (keys,) = run(Job(program, problem.operands, outputs, tiles, problem.lead, problem.size, torch.int64))
    return chosen_operands(keys, problem.size.m)


def chosen_operands(keys: Tensor, m: int) -> tuple[Operand, ...]:
    """Operands of a normaliser that took these keys, (..., n, 1), among m."""
    positions = torch.arange(m, device=keys.device).unsqueeze(-1)
    return Operand(keys, Axis.QUERY), Operand(positions, Axis.KEY)


def _integers(groups: object) -> TypeGuard[Tensor]:
    return isinstance(groups, Tensor) and not (
        groups.is_floating_point() or groups.is_complex() or groups.dtype == torch.bool
    )


def _same_device(name: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.device != device:
        msg = f"{name} must be on the device of the weights, {device}, but it is on {tensor.device}"
        raise DeviceError(msg)


def positions(given: Tensor | None, lead: tuple[int, ...], size: Size) -> Tensor:
    """Where the queries stand among the keys, (..., n)."""
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


def membership(groups: Tensor, lead: tuple[int, ...], size: Size) -> Tensor:
    """One column a group, 1 where a key belongs to it: (..., m, g)."""
    m = size.m
    if not _integers(groups):
        msg = f"groups must be a tensor of integer ids, one a key, but it is {type_name(groups)}"
        raise DtypeError(msg)
    _same_device("groups", groups, size.device)
    groups = groups.long()
    if groups.shape[-1:] != (m,) or groups.dim() - 1 > len(lead):
        msg = f"groups needs one id for each of {m} keys, (m,) or (B, m), but its shape is {tuple(groups.shape)}"
        raise ShapeError(msg)
    if groups.dim() > 1 and any(a not in (1, b) for a, b in zip(groups.shape[:-1], lead, strict=False)):
        msg = f"groups {tuple(groups.shape)} must follow the leading dimensions {lead} from the left"
        raise ShapeError(msg)
    if groups.numel() and int(groups.min()) < -1:
        msg = f"groups are numbered from 0, and -1 is none, but there is a {int(groups.min())}"
        raise ChoiceError(msg)
    count = int(groups.max()) + 1 if groups.numel() else 0
    marks = groups.unsqueeze(-1) == torch.arange(count, device=groups.device)
    missing = len(lead) - (groups.dim() - 1) if groups.dim() > 1 else 0
    return marks.reshape(*marks.shape[:-2], *[1] * missing, *marks.shape[-2:])
