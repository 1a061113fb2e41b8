"""A sample made ready for sums by place: around its own middle, in units of the bandwidth, a row for each axis."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled

ROUNDING = 2.0**-53


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points that count, with values of mean 0 and deviation 1, and weights of at most 1. On the CPU, in float64."""

    x: Float[Tensor, "dim n"]
    low: Float[Tensor, " dim"]
    high: Float[Tensor, " dim"]
    values: Float[Tensor, "n columns"]
    log_weight: Float[Tensor, " n"] | None
    top: float  # the log of the largest weight, taken out
    mean: Float[Tensor, " columns"]  # taken out of the values
    unit: Float[Tensor, " columns"]

    @staticmethod
    def of(
        sample: Sample, query: Float[Tensor, "q dim"], counts: Bool[Tensor, " dim"]
    ) -> tuple[Cloud, Float[Tensor, "axes q"]]:
        """The sample and the queries in the same coordinates; only features that count."""
        x, values, log_weight, top = _counting(sample)
        mean, unit = values.mean(0), _unit(values)
        width, x, at = (t if bool(counts.all()) else t[..., counts] for t in (sample.bandwidth, x, query))
        width = width.cpu()
        low, high = extent(x.T) if len(x) else (torch.zeros_like(width), torch.zeros_like(width))
        # First the middle, then the width: a difference of nearby numbers is exact, a quotient of large ones is not.
        middle = low + (high - low) / 2
        rows, at_rows = (_rows(t.cpu(), middle, width) for t in (x, at))
        low, high = ((edge - middle) / width for edge in (low, high))
        return Cloud(rows, low, high, (values - mean) / unit, log_weight, top, mean, unit), at_rows

    @property
    def n(self) -> int:
        return self.x.shape[1]

    @property
    def columns(self) -> int:
        return self.values.shape[1]

    def restored(self, pooled: Pooled, device: torch.device) -> Pooled:
        """The same in the units that the caller knows."""
        mean = torch.addcmul(self.mean, pooled.mean, self.unit)
        lse, error = pooled.lse + self.top, pooled.error
        return Pooled(lse.to(device), mean.to(device), error.to(device))


def extent(rows: Float[Tensor, "dim n"]) -> tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]:
    """The smallest and the largest number of each row; one by one, that is several times as quick as along a dim."""
    low, high = zip(*(row.aminmax() for row in rows), strict=True)
    return torch.stack(low), torch.stack(high)


def _counting(sample: Sample) -> tuple[Tensor, Tensor, Tensor | None, float]:
    """Points and values without those of weight 0, the logs of their weights, at most 0, and what was taken off."""
    x, values, log_weight = sample.x.cpu(), sample.values.cpu(), sample.log_weight
    if log_weight is None:
        return x, values, None, 0.0
    log_weight = log_weight.cpu()
    some = torch.isfinite(log_weight)
    if not bool(some.all()):
        x, values, log_weight = x[some], values[some], log_weight[some]
    top = float(log_weight.max()) if len(log_weight) else 0.0
    return x, values, log_weight - top, top


def _unit(values: Float[Tensor, "n columns"]) -> Float[Tensor, " columns"]:
    """The deviation of each column; where that is only the rounding of equal numbers, what the rounding is."""
    if values.numel() == 0:
        return values.new_ones(values.shape[1])
    return torch.maximum(scale_of(values), 8 * ROUNDING * values.abs().amax(0))


def _rows(points: Tensor, middle: Tensor, width: Tensor) -> Float[Tensor, "dim n"]:
    rows = torch.empty(points.shape[1], len(points), dtype=torch.float64)
    for axis, row in enumerate(rows):
        torch.sub(points[:, axis], middle[axis], out=row).div_(width[axis])
    return rows
