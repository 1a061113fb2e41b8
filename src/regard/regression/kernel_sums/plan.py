"""Which way a kernel average is computed, and why: a pure function of a few numbers, by cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.errors import ChoiceError, PlanError
from regard.regression.kernel_sums import fourier

Name = Literal["pairs", "cells", "fast"]
NAMES: tuple[Name, ...] = ("pairs", "cells", "fast")

EXACT_PAIRS = 10**7  # up to here every pair is taken, in float64
SINGLE_TOL = 1e-5  # what single precision can promise

# Seconds on two cores, all in one place: only their ratios matter.
PAIR_SINGLE = 0.65e-9
PAIR_DOUBLE = 2.6e-9
PAIR_DIRECT = 8e-9  # a kernel other than the Gaussian
PAIR_DIRECT_FEATURE = 1e-9  # more for each feature
CELL_PAIR = 1.1  # times as much as the same pair among all: blocks are small
CELL_POINT = 1e-6  # to order a point or a query, and to look at boxes


@dataclass(frozen=True, slots=True)
class Question:
    """All that the choice may depend on."""

    queries: int
    points: int
    dim: int  # features of finite bandwidth
    kernel: str
    tol: float
    columns: int = 1  # that are averaged
    extent: tuple[float, ...] = ()  # of the points, in bandwidths, one a feature
    share: float = 1.0  # of all pairs in tiles within each other's reach, about
    device: str = "cpu"
    forced: str = "auto"

    @property
    def pairs(self) -> int:
        return self.queries * self.points


@dataclass(frozen=True, slots=True)
class Way:
    """One of three ways to the same answer, and the reason in words."""

    name: Name
    reason: str
    seconds: float  # about

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose(question: Question) -> Way:
    """The cheapest way that can serve, or the one that is asked for."""
    if question.forced != "auto":
        return _forced(question)
    if question.pairs <= EXACT_PAIRS:
        few = f"{_sizes(question)} pairs are few enough to take every one, in float64"
        return Way("pairs", few, seconds("pairs", question))
    offered: list[Name] = [name for name in NAMES if obstacle(name, question) is None]
    if question.tol < fourier.FINEST and "fast" in offered:
        offered.remove("fast")  # it would redo every query, which its cost does not know of
    costs: dict[Name, float] = {name: seconds(name, question) for name in offered}
    best = min(offered, key=costs.__getitem__)
    return Way(best, _reason(best, question, costs), costs[best])


def _forced(question: Question) -> Way:
    if question.forced not in NAMES:
        raise ChoiceError(f"plan must be 'auto' or one of {', '.join(map(repr, NAMES))}, but it is {question.forced!r}")
    name: Name = question.forced
    why_not = obstacle(name, question)
    if why_not is not None:
        can = [repr(other) for other in ("auto", *NAMES) if other == "auto" or obstacle(other, question) is None]
        raise PlanError(f"plan={name!r} cannot serve this: {why_not}; {' or '.join(can)} would")
    return Way(name, f"asked for; {_sizes(question)} pairs", seconds(name, question))


def obstacle(name: Name, question: Question) -> str | None:
    """Why a way cannot serve, or None if it can."""
    if name == "pairs":
        return None
    if question.device != "cpu":
        return f"it runs on the processor, and the data is on {question.device}"
    if question.dim == 0:
        return "no feature has a finite bandwidth, so every query has the same answer"
    return None if name == "cells" else _fast_obstacle(question)


def _fast_obstacle(question: Question) -> str | None:
    if question.kernel != "gaussian":
        return f"the fast sum knows the Gaussian kernel alone, and the kernel is {question.kernel}"
    if question.dim > 3:
        return f"the fast sum works in 1 to 3 dimensions, and {question.dim} features matter here"
    if not fourier.offered(question.kernel, question.extent, question.tol):
        return f"the data is {_extent(question)} bandwidths wide, which takes too many frequencies"
    return None


def seconds(name: Name, question: Question) -> float:
    """What a way costs, about."""
    everything = question.points + question.queries
    if name == "fast":
        return fourier.cost(question.points, question.queries, question.extent, question.columns, question.tol)
    if name == "cells":
        return question.pairs * question.share * pair(question) * CELL_PAIR + everything * CELL_POINT
    return question.pairs * pair(question)


def pair(question: Question) -> float:
    """What one pair costs."""
    if question.kernel != "gaussian":
        return PAIR_DIRECT + PAIR_DIRECT_FEATURE * question.dim
    return PAIR_DOUBLE if question.pairs <= EXACT_PAIRS or question.tol < SINGLE_TOL else PAIR_SINGLE


def _reason(name: Name, question: Question, costs: dict[Name, float]) -> str:
    others = ", ".join(f"{other} {_duration(cost)}" for other, cost in costs.items() if other != name)
    beside = f", against {others}" if others else ""
    what = {
        "pairs": f"every one of {_sizes(question)} pairs",
        "cells": f"about {question.share:.1%} of {_sizes(question)} pairs are within the kernel's reach, which",
        "fast": f"a sum over frequencies instead of {_sizes(question)} pairs",
    }[name]
    return f"{what} takes about {_duration(costs[name])}{beside}"


def _duration(cost: float) -> str:
    return f"{cost * 1e3:.0f} ms" if cost < 1 else f"{cost:.1f} s"


def _extent(question: Question) -> str:
    return " x ".join(f"{extent:.3g}" for extent in question.extent)


def _sizes(question: Question) -> str:
    return f"{question.queries:,} x {question.points:,}"
