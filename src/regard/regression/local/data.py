"""The data of a fit, and the ways in which it is asked: every average of this package goes through here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from regard.attention import attend
from regard.regression.kernel_sums import clamp, engine, relative_weights
from regard.regression.kernel_sums.fourier_gradient import Slopes
from regard.regression.kernel_sums.plan import EXACT_PAIRS
from regard.regression.kernel_sums.relative_weights import Answer
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.linear_fourier import Lines, lines_if_cheapest
from regard.weights import Weights


@dataclass(frozen=True, eq=False)
class Data:
    """A sample whose values are y, and how its averages are to be found."""

    sample: Sample
    tol: float = 1e-6
    plan: str = "auto"
    outside: str = "nearest"  # what a query gets that no point reaches

    def points(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        """These features of a table."""
        return table

    def table(self) -> Float[Tensor, "n features"]:
        """The data itself as queries."""
        return self.sample.x

    def spread_out(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        """Slopes of the features with distances, among all features."""
        return slopes

    def squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Data:
        """The same points under the square of their kernel, which is `kernel` with a narrower bandwidth."""
        width = self.sample.bandwidth / narrower
        return replace(self, sample=replace(self.sample, values=values, kernel=kernel, bandwidth=width))

    def share(self) -> Float[Tensor, " n"]:
        """The weight of each point among all, before any kernel."""
        return self.sample.share()

    def pool(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None, tol: float | None = None
    ) -> Pooled:
        """The kernel average of y, or of other values, at each query."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        return engine.pool(sample, query, tol=tol or self.tol, plan=self.plan)

    def slopes(self, query: Float[Tensor, "q dim"]) -> Slopes | None:
        """df/dx by the fast sum, each query with its bound; None where another way is better."""
        return engine.slopes(self.sample, query, tol=self.tol, plan=self.plan)

    def lines(self, query: Float[Tensor, "q dim"]) -> Lines | None:
        """The local line at each query by the fast sum, with its bound; None where another way is better."""
        return lines_if_cheapest(self.sample, query, tol=self.tol, plan=self.plan)

    def near(self, query: Float[Tensor, "q dim"], answer: Answer) -> tuple[Tensor, ...]:
        """The log of the total weight at each query, and what `answer` makes of the points around it: exactly."""
        return relative_weights.answered(self.sample, query, answer)

    def few(self, query: Float[Tensor, "q dim"]) -> bool:
        """Whether every pair is looked at."""
        return len(query) * len(self.sample.x) <= EXACT_PAIRS

    def differentiable(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"]
    ) -> Float[Tensor, "q columns"]:
        """The same average with a gradient for the query; all pairs, tile by tile."""
        sample = self.sample
        return attend(sample.scaled(query), sample.scaled(sample.x), values, score=sample.score()).output

    def weights(self, query: Float[Tensor, "q dim"]) -> Weights:
        """The weight of each point for each query as a matrix that is never built."""
        sample = self.sample
        return Weights(self.told(query), sample.scaled(sample.x), score=sample.score())

    def told(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Points in units of the bandwidth, from no farther than what the kernel is told of them keeps digits."""
        sample = self.sample
        far, beside = clamp.BY_DISTANCES if sample.kernel == "laplace" else clamp.BY_SQUARES
        box = clamp.ends(sample.x)
        return sample.scaled(clamp.brought(points, box, far * sample.bandwidth, beside * sample.bandwidth))
