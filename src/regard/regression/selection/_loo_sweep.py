"""From the sums at all points to residuals, and to what each sum does to the value: one pass, block by block.

A block of rows stays near while a dozen small steps go over it. The same steps over a million rows at once would each
wait for memory, and together take as long as the transforms that made the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 2**17  # rows: fewer, and starting each step takes longer than the step; more, and memory is asked for anew


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
    found = [_block(block, sums, rows, certain, residuals, pull) for block in _blocks(n)]
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
    per_weight = rows.share[block] / weight
    own = torch.zeros_like(weight)
    surely = weight * certain.tol
    least_slack = None
    for column, (deviation, of_fit) in enumerate(zip(rows.deviation.tolist(), rows.pulls, strict=True)):
        row, part = divmod(column + 1, 2)
        value = rows.values[block, column]
        fit = torch.addcmul(sums[row, block, part], left_out, value, value=-1).div_(weight)
        residual = value - fit
        torch.mul(residual, deviation, out=residuals[block, column])
        # The error of a fit is at most (error_row + error_0 |fit|) / (weight - error_0): is that at most tol?
        slack = torch.sub(surely, fit.abs(), alpha=certain.error[0]).sub_(certain.error[row])
        least_slack = slack if least_slack is None else torch.minimum(least_slack, slack)
        if pull is not None:
            pulled = residual.mul_(per_weight).mul_(of_fit)
            pull[row, block, part] = pulled
            own.addcmul_(pulled, fit, value=-1)
    enough = certain.tol * certain.error[0]
    if pull is not None:
        pull[0, block, 0] = own
    if least_slack is None or float(least_slack.amin()) >= enough:  # no output, or no poor row: NaN is not enough
        return left_out.new_empty(0, dtype=torch.int64), weight[:0]
    some = (~(least_slack >= enough)).nonzero().flatten()
    if pull is not None:
        pull[:, block][:, some] = 0.0
    return some + block.start, weight[some] - certain.error[0]
