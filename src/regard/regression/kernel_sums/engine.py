"""One answer, whichever way it is computed: the kernel average of a sample at some queries."""

from __future__ import annotations

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from regard.engine import threads
from regard.regression.kernel_sums import fourier, fourier_gradient, pairwise, relative_weights
from regard.regression.kernel_sums.fourier_gradient import Slopes
from regard.regression.kernel_sums.plan import EXACT_PAIRS, Question, Way, choose
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.scaled import Scaled, scaled
from regard.regression.kernel_sums.selectivity import share_within_reach
from regard.regression.kernel_sums.state import Pooled


def pool(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Pooled:
    """The average at each query, with an error of at most `tol` standard deviations of each column.

    `plan` names the way: "pairs", "cells" or "fast"; "auto" takes the one that costs least.
    """
    with threads.one_thread():
        problem = scaled(sample, query)
        way = choose(_question(problem, tol, plan))
        if way.name == "cells":  # has workers, and a second thread of torch would still spin beside them
            return _by(way, sample, query, problem, tol)
    return _by(way, sample, query, problem, tol)


def _by(way: Way, sample: Sample, query: Float[Tensor, "q dim"], problem: Scaled, tol: float) -> Pooled:
    if not problem.x.shape[1]:
        return problem.lift(_everywhere_the_same(problem, tol))
    if way.name == "fast":
        found = fourier.pool(sample, query, tol)
    else:
        found = problem.lift(pairwise.pool(problem, tol, skip=way.name == "cells"))
    return relative_weights.mended(sample, query, found, tol)


def slopes(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Slopes | None:
    """How the average changes with the query, where the fast sum is the way to it; None where it is not."""
    if way_of(sample, query, tol=tol, plan=plan).name != "fast":
        return None
    return fourier_gradient.slopes(sample, query, tol)


def way_of(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Way:
    """The way that `pool` would take, and why."""
    return choose(_question(scaled(sample, query), tol, plan))


def _question(problem: Scaled, tol: float, plan: str) -> Question:
    x, query = problem.x, problem.query
    question = Question(
        queries=len(query),
        points=len(x),
        dim=x.shape[1],
        kernel=problem.kernel,
        tol=tol,
        device=x.device.type,
        columns=problem.values.shape[1],
        forced=plan,
    )
    if (question.pairs <= EXACT_PAIRS and plan == "auto") or not question.pairs or not question.dim:
        return question  # nothing more is asked: small problems are not made to wait
    return _measured(question, problem, tol)


def _measured(question: Question, problem: Scaled, tol: float) -> Question:
    extent = problem.x.amax(0) - problem.x.amin(0)
    return replace(question, extent=tuple(extent.tolist()), share=share_within_reach(problem, tol))


def _everywhere_the_same(problem: Scaled, tol: float) -> Pooled:
    """Without features every query has the same answer: the average of all."""
    count = len(problem.query)
    x = problem.x.new_zeros(len(problem.x), 1)
    found = pairwise.pool(replace(problem, x=x, query=x.new_zeros(min(1, count), 1)), tol)
    return Pooled(*(part.expand(count, *part.shape[1:]).contiguous() for part in found))
