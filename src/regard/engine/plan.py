"""The plan of a call: which executor serves it, and why, from sizes and terms alone, never from numbers in tensors.

Sizes are counted in scores (entries of the n x m matrix, over all heads); a budget is in bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from regard.errors import PlanError

Executor = Literal["dense", "tiled", "fused"]
Form = Literal["whole", "causal", "keys", "pairs", "blocks"]  # how the fused kernel would be called

TILE_SCORES = 1 << 20  # scores in a tile at most: two buffers of them stay in the processor's cache
DENSE_SCORES = 1 << 20  # up to so many scores, one tile holds the whole matrix
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

    def __str__(self) -> str:
        return f"{self.executor}: {self.reason}"


def plan(request: Request) -> Plan:
    """The executor for a request; raises PlanError if the caller forces one that cannot serve it."""
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
    if obstacle is None:
        return Plan("fused", tile_scores, _fused_reason(request), form=request.form)
    if request.scores <= min(DENSE_SCORES, tile_scores):
        return Plan("dense", max(1, request.scores), f"{_sizes(request)} scores are one tile ({obstacle})")
    return Plan("tiled", tile_scores, f"{_tiles(request, tile_scores)}, because {obstacle}")


def scores_per_tile(budget: int, itemsize: int, *, grad: bool) -> int:
    """The number of scores of `itemsize` bytes that a tile may hold within a budget of bytes."""
    buffers = BUFFERS_WITH_GRADIENT if grad else BUFFERS
    return max(1, min(TILE_SCORES, budget // (buffers * itemsize)))


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
    if request.tracing == "compile":  # there a size may be a symbol, which torch.compile cannot print
        return "the compiled"
    return " x ".join(str(length) for length in (*request.lead, request.n, request.m))


def _tiles(request: Request, tile_scores: int) -> str:
    mib = tile_scores * request.itemsize / 2**20
    return f"{_sizes(request)} scores in tiles of at most {tile_scores:,} ({mib:.2g} MiB)"


def _fused_reason(request: Request) -> str:
    how = {
        "whole": "in one call",
        "causal": "in one call, causal",
        "keys": "in one call with a bias on the keys",
        "pairs": "in one call with a bias on the pairs",
        "blocks": "block by block of queries, on the keys they may see",
    }[request.form]
    return f"{request.formula} over {_sizes(request)} runs on torch's kernel {how}"
