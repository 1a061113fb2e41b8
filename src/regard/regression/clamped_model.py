"""A fit that may be asked from anywhere: queries too far for float64 are brought nearer, which changes no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.regression.kernel_sums import clamp
from regard.regression.kernel_sums.clamp import Limits
from regard.regression.local.squared_weights import Noise


@dataclass(frozen=True, eq=False)
class Anywhere:
    """A Local or a Streamed, which are asked at most as far from the box around the data as the limits say."""

    local: Any
    box: tuple[Float[Tensor, " features"], Float[Tensor, " features"]]
    width: Float[Tensor, " features"]
    limits: Limits

    @classmethod
    def of(cls, local: Any) -> Anywhere:
        data = local.data
        width = data.spread_out(data.sample.bandwidth.unsqueeze(0).unsqueeze(2)).squeeze(2).squeeze(0)
        return cls(local, clamp.ends(data.table()), width, clamp.EXACT)  # NaN for categories, which are not measured

    @classmethod
    def of_blocks(cls, model: Any, streamed: Any) -> Anywhere:
        width, x = streamed.recipe.bandwidth, model.summary_.x
        return cls(streamed, (x.low.to(width.device), x.high.to(width.device)), width, clamp.BY_SQUARES)

    def predict(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q outputs"]:
        return self.local.predict(self._near(query))

    def noise(self, query: Float[Tensor, "q features"], variance: Float[Tensor, "n outputs"]) -> Noise:
        return self.local.noise(self._near(query), variance)

    def derivative(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features outputs"]:
        return self.local.derivative(clamp.within(query, self.box, self.width, clamp.BY_DISTANCES))

    def weights(self, query: Float[Tensor, "q features"]) -> Any:
        return self.local.weights(self._near(query))

    def leverage(self) -> Float[Tensor, " n"]:
        return self.local.leverage()

    def _near(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features"]:
        return clamp.within(query, self.box, self.width, self.limits)
