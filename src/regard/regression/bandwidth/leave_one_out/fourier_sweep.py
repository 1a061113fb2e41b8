"""From the sums at all points to residuals, and to what each sum does to the value: one pass, block by block.

A block of rows stays near while a dozen small steps go over it. The same steps over a million rows at once would each
wait for memory, and together take as long as the transforms that made the sums. Blocks are dealt out to workers, and
not each step to torch's threads: those go on waiting for more work when a step is done, on the processors that the
transforms need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine import threads

BLOCK = 2**16  # rows: fewer, and starting each step takes longer than the step; more, and memory is asked for anew


class Rows(NamedTuple):
    """What is known of each row before any bandwidth is; outputs in standard deviations."""

    values: Float[Tensor, "n outputs"]
    left_out: Float[Tensor, " n"]  # weight that goes with the row itself
    share: Float[Tensor, " n"]  # of the row in the value
    deviation: Float[Tensor, " outputs"]
    pulls: list[float]  # d value / d fit of an output, for a residual and a share of 1


class Certain(NamedTuple):
    """When an average is good enough: its error is below `tol`, each sum being off by at most its own."""

    error: Sequence[float]  # of each complex row of sums
    tol: float

    def at(self, weight: Float[Tensor, "*n"], fit: Float[Tensor, "*n"], row: int) -> Bool[Tensor, "*n"]:
        """Whether (error_row + error_0 |fit|) / (weight - error_0) <= tol. It is not where anything is NaN."""
        return self.tol * (weight - self.error[0]) >= self.error[0] * fit.abs() + self.error[row]

    def throughout(self, weight: Float[Tensor, " n"], fit: Float[Tensor, " n"], row: int) -> bool:
        """Whether it is so even for the least weight together with the largest fit: quicker, and nearly always so."""
        lowest, highest = torch.aminmax(fit)
        return bool(self.at(weight.amin(), torch.maximum(-lowest, highest), row))


class Found(NamedTuple):
    """Residuals, what each sum does to the value, and the rows that are left for others to find."""

    residuals: Float[Tensor, "n outputs"]
    pull: Tensor | None  # packed as the sums are; 0 in poor rows
    poor: Int[Tensor, " some"]
    least: Float[Tensor, " some"]  # weight of the others that is surely there, in poor rows


def sweep(sums: Float[Tensor, "rows n 2"], rows: Rows, certain: Certain, *, gradient: bool) -> Found:
    """All rows. The sums hold the weight in [0, :, 0] and one output after the other behind it."""
    n = sums.shape[1]
    residuals = torch.empty_like(rows.values)
    pull = None
    if gradient:  # written everywhere, unless the last number of each row has no output
        pull = torch.empty_like(sums) if rows.values.shape[1] % 2 else torch.zeros_like(sums)
    found = threads.each(lambda block: _block(block, sums, rows, certain, residuals, pull), _blocks(n))
    poor = torch.cat([torch.empty(0, dtype=torch.int64), *(rows for rows, _ in found)])
    least = torch.cat([rows.share[:0], *(weight for _, weight in found)])
    return Found(residuals, None if pull is None else torch.view_as_complex(pull), poor, least)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(n, start + BLOCK))


def _block(
    block: slice, sums: Tensor, rows: Rows, certain: Certain, residuals: Tensor, pull: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Write the residuals and the pulls of some rows; which of them are poor, and their least weight."""
    left_out = rows.left_out[block]
    weight = sums[0, block, 0] - left_out
    per_weight = weight.reciprocal()
    own = None
    certainly = True
    for column, (deviation, of_fit) in enumerate(zip(rows.deviation.tolist(), rows.pulls, strict=True)):
        row, part = divmod(column + 1, 2)
        value = rows.values[block, column]
        fit = torch.addcmul(sums[row, block, part], left_out, value, value=-1).mul_(per_weight)
        residual = value - fit
        torch.mul(residual, deviation, out=residuals[block, column])
        certainly = certainly and certain.throughout(weight, fit, row)
        if pull is not None:
            pulled = residual.mul_(per_weight).mul_(rows.share[block]).mul_(of_fit)
            pull[row, block, part] = pulled
            own = fit.mul_(pulled) if own is None else own.addcmul_(fit, pulled)
    if pull is not None and own is not None:
        torch.neg(own, out=pull[0, block, 0])
    if certainly:
        return left_out.new_empty(0, dtype=torch.int64), weight[:0]
    return _poor(block, weight, sums, rows, certain, pull)


def _poor(
    block: slice, weight: Tensor, sums: Tensor, rows: Rows, certain: Certain, pull: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The rows of a block that are not certain; what they pull is set to 0."""
    good = torch.ones_like(weight, dtype=torch.bool)
    for column in range(rows.values.shape[1]):
        row, part = divmod(column + 1, 2)
        fit = (sums[row, block, part] - rows.left_out[block] * rows.values[block, column]) / weight
        good &= certain.at(weight, fit, row)
    some = (~good).nonzero().flatten()
    if pull is not None:
        pull[:, block][:, some] = 0.0
    return some + block.start, weight[some] - certain.error[0]
