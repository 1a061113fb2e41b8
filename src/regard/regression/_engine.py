"""One answer, whichever way it is computed: the kernel average of a sample at some queries."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.attention import attend
from regard.regression._sample import Sample
from regard.regression._state import Pooled


def pool(sample: Sample, query: Float[Tensor, "q dim"], *, tol: float = 1e-6, plan: str = "auto") -> Pooled:
    """The average at each query, with an error of at most `tol` standard deviations of each column."""
    del tol, plan
    answer = attend(sample.scaled(query), sample.scaled(sample.x), sample.values, score=sample.score())
    lse = answer.weights.logsumexp()
    return Pooled(lse, answer.output, lse.new_zeros(len(query)))
