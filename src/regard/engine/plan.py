"""The plan of a call: which executor serves it, and why, from sizes and terms alone, never from numbers in tensors.

Sizes are counted in scores (entries of the n x m matrix, over all heads); a budget is in bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from regard.engine.costs import duration, estimate
from regard.errors import PlanError

Executor = Literal["dense", "tiled", "fused"]
Form = Literal["whole", "causal", "keys", "pairs", "relative", "blocks"]  # how the fused kernel would be called

TILE_SCORES = 1 << 20  # scores in a tile at most: two buffers of them stay in the processor's cache
DENSE_SCORES = 1 << 20  # up to so many scores, one tile holds the whole matrix
MAX_BIAS = 1 << 22  # numbers of a bias that is made in one piece: the fused kernel is fastest on many rows
BUFFERS = 3  # tiles in memory at once
BUFFERS_WITH_GRADIENT = 8  # the same while autograd records a tile
MIN_FUSED_KEYS = 16  # with fewer keys torch's kernel turns NaN into numbers


@dataclass(frozen=True, slots=True)
class Request:
    """All that a plan may depend on."""

    forced: str  # the caller's `plan`
    formula: str
    obstacle: str | None  # why the fused kernel cannot compute this score, or None
    form: Form
    softmax: bool
    lead: tuple[int, ...]
    n: int
    m: int
    itemsize: int
    budget: int
    grad: bool
    dropout: bool
    device: str
    tracing: Literal["no", "compile", "transform"] = "no"
    plain: bool = True  # True if the score is q . k itself
    visible: int | None = None  # scores that a mask may show, as far as sizes tell; None: all
    features: int = 64  # of keys and values, on average

    @property
    def scores(self) -> int:
        """The number of scores in the whole matrix."""
        return math.prod(self.lead) * self.n * self.m


@dataclass(frozen=True, slots=True)
class Plan:
    """An executor, how many scores a tile may hold, and the reason in words."""

    executor: Executor
    tile_scores: int
    reason: str
    forced: str = "auto"  # the caller's choice
    form: Form | None = None  # how the fused kernel is called; None for the other executors
    seconds: float | None = None  # of a forward pass on the machine of the benchmarks, by the cost model

    def __str__(self) -> str:
        time = "" if self.seconds is None else f"; about {duration(self.seconds)}"
        return f"{self.executor}: {self.reason}{time}"


def plan(request: Request) -> Plan:
    """The executor for a request; raises PlanError if the caller forces one that cannot serve it."""
    found = _choose(request)
    if request.tracing == "compile":  # there sizes may be symbols
        return found
    scores = request.scores if request.visible is None else request.visible
    return replace(found, seconds=estimate(found.executor, scores, request.n, request.features))


def _choose(request: Request) -> Plan:
    """The executor for a request, without what it costs."""
    tile_scores = scores_per_tile(request.budget, request.itemsize, grad=request.grad)
    obstacle = fused_obstacle(request)
    if request.forced == "fused":
        if obstacle is not None:
            msg = f"plan='fused' cannot serve {request.formula}: {obstacle}; plan='auto' would"
            raise PlanError(msg)
        return Plan("fused", tile_scores, _fused_reason(request), "fused", request.form)
    if request.forced == "dense":
        return Plan("dense", max(1, request.scores), f"asked for; one tile of {_sizes(request)} scores", "dense")
    if request.forced == "tiled":
        return Plan("tiled", tile_scores, f"asked for; {_tiles(request, tile_scores)}", "tiled")
    # In the order of their rates, which holds for every size.
    if obstacle is None:
        return Plan("fused", tile_scores, _fused_reason(request), form=request.form)
    if request.scores <= min(DENSE_SCORES, tile_scores):
        return Plan("dense", max(1, request.scores), f"{_sizes(request)} scores are one tile ({obstacle})")
    return Plan("tiled", tile_scores, f"{_tiles(request, tile_scores)}, because {obstacle}")


def scores_per_tile(budget: int, itemsize: int, *, grad: bool) -> int:
    """The number of scores of `itemsize` bytes that a tile may hold within a budget of bytes."""
    buffers = BUFFERS_WITH_GRADIENT if grad else BUFFERS
    return max(1, min(TILE_SCORES, budget // (buffers * itemsize)))


def max_bias_numbers(tile_scores: int) -> int:
    """The numbers of a bias that may be in memory at once, where a tile may hold so many scores."""
    return MAX_BIAS if tile_scores >= TILE_SCORES else tile_scores


def fused_obstacle(request: Request) -> str | None:
    """The reason why the fused kernel cannot serve a request, or None if it can."""
    if request.device != "cpu":
        return f"the fused path has not been tried on {request.device}"
    if not request.scores:
        return "there is nothing to compute"
    if not request.softmax:
        return "the fused kernel knows softmax alone"
    if request.obstacle is not None:
        return request.obstacle
    if request.dropout:
        return "the fused kernel takes no dropout"
    if request.m < MIN_FUSED_KEYS:
        return f"with fewer than {MIN_FUSED_KEYS} keys the fused kernel hides NaN"
    if request.tracing == "transform":
        return "function transforms do not see through the fused kernel"
    if request.tracing == "compile" and not (request.plain and request.form in ("whole", "causal")):
        return "torch.compile cannot look at the numbers that this needs"
    return None


def _sizes(request: Request) -> str:
    """The size of the score array in the words of a plan: "8 x 2000 x 2000"."""
    if request.tracing == "compile":  # there a size may be a symbol, which torch.compile cannot print
        return "the compiled"
    return " x ".join(str(length) for length in (*request.lead, request.n, request.m))


def _tiles(request: Request, tile_scores: int) -> str:
    """The size of the tiles in the words of a plan."""
    mib = tile_scores * request.itemsize / 2**20
    return f"{_sizes(request)} scores in tiles of at most {tile_scores:,} ({mib:.2g} MiB)"


def _fused_reason(request: Request) -> str:
    """Why and how the fused kernel serves a request, in the words of a plan."""
    how = {
        "whole": "in one call",
        "causal": "in one call, causal",
        "keys": "in one call with a bias on the keys",
        "pairs": "in one call with a bias on the pairs",
        "relative": "with a bias that is a view of one number for each j - i",
        "blocks": "block by block of queries, on the keys they may see",
    }[request.form]
    return f"{request.formula} over {_sizes(request)} runs on torch's kernel {how}"
