"""Which executor serves a request, and why: a pure function of sizes and kinds, never of numbers in tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from regard.errors import PlanError

Executor = Literal["dense", "tiled", "fused"]
Form = Literal["whole", "causal", "keys", "pairs", "blocks"]  # how the fused kernel would be called

TILE = 1 << 20  # scores in a tile: two buffers of them stay in the cache
DENSE = 1 << 20  # up to here one tile holds everything
BUFFERS = 3  # tiles alive at once
BUFFERS_WITH_GRADIENT = 8
FEWEST_FUSED_KEYS = 16


@dataclass(frozen=True, slots=True)
class Request:
    """All that a plan may depend on."""

    forced: str
    formula: str
    obstacle: str | None  # why the score is not for a fused kernel
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
    traced: Literal["no", "compile", "transform"] = "no"
    plain: bool = True  # whether the score is q . k itself

    @property
    def scores(self) -> int:
        return math.prod(self.lead) * self.n * self.m


@dataclass(frozen=True, slots=True)
class Plan:
    """An executor, the scores a tile may hold, and the reason in words."""

    executor: Executor
    tile: int
    reason: str
    forced: str = "auto"  # the caller's choice
    form: Form | None = None  # how the fused kernel is called; None for the other executors

    def __str__(self) -> str:
        return f"{self.executor}: {self.reason}"


def plan(request: Request) -> Plan:
    """Choose the executor."""
    tile = tile_size(request.budget, request.itemsize, grad=request.grad)
    obstacle = fused_obstacle(request)
    if request.forced == "fused":
        if obstacle is not None:
            msg = f"plan='fused' cannot serve {request.formula}: {obstacle}; plan='auto' would"
            raise PlanError(msg)
        return Plan("fused", tile, _fused_reason(request), "fused", request.form)
    if request.forced == "dense":
        return Plan("dense", max(1, request.scores), f"asked for; one tile of {_sizes(request)} scores", "dense")
    if request.forced == "tiled":
        return Plan("tiled", tile, f"asked for; {_tiles(request, tile)}", "tiled")
    if obstacle is None:
        return Plan("fused", tile, _fused_reason(request), form=request.form)
    if request.scores <= min(DENSE, tile):
        return Plan("dense", max(1, request.scores), f"{_sizes(request)} scores are one tile ({obstacle})")
    return Plan("tiled", tile, f"{_tiles(request, tile)}, because {obstacle}")


def tile_size(budget: int, itemsize: int, *, grad: bool) -> int:
    """How many scores of `itemsize` bytes a tile may hold within a budget of bytes."""
    buffers = BUFFERS_WITH_GRADIENT if grad else BUFFERS
    return max(1, min(TILE, budget // (buffers * itemsize)))


def fused_obstacle(request: Request) -> str | None:
    """Why the fused kernel cannot run this, or None if it can."""
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
    if request.m < FEWEST_FUSED_KEYS:
        return f"with fewer than {FEWEST_FUSED_KEYS} keys the fused kernel hides NaN"
    if request.traced == "transform":
        return "function transforms do not see through the fused kernel"
    if request.traced == "compile" and not (request.plain and request.form in ("whole", "causal")):
        return "torch.compile cannot look at the numbers that this needs"
    return None


def _sizes(request: Request) -> str:
    if request.traced == "compile":  # there a size may be a symbol, which torch.compile cannot spell
        return "the compiled"
    return " x ".join(str(length) for length in (*request.lead, request.n, request.m))


def _tiles(request: Request, tile: int) -> str:
    mib = tile * request.itemsize / 2**20
    return f"{_sizes(request)} scores in tiles of at most {tile:,} ({mib:.2g} MiB)"


def _fused_reason(request: Request) -> str:
    how = {
        "whole": "in one call",
        "causal": "in one call, causal",
        "keys": "in one call with a bias on the keys",
        "pairs": "in one call with a bias on the pairs",
        "blocks": "block by block of queries, on the keys they may see",
    }[request.form]
    return f"{request.formula} over {_sizes(request)} runs on torch's kernel {how}"
