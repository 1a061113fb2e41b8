"""The non-uniform Fourier transform in plain torch: spread each point over a few cells of a grid, FFT, undo the spread.

The spreading kernel is phi(z) = exp(beta (sqrt(1 - z^2) - 1)) on [-1, 1], w cells wide on a grid twice as fine as the
modes need (Barnett, Magland and af Klinteberg 2019); its error falls like 10^(1 - w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 2**21  # cells touched at once: what fits into the cache of a core a few times over
RUN = 2_000  # points added into a fresh grid before that is added to the rest, as in `_nufft`
WIDEST = 16


@dataclass(frozen=True, eq=False)
class Grid:
    """The fine grid for some modes, and the kernel on it."""

    modes: tuple[int, ...]
    width: int

    @staticmethod
    def of(modes: tuple[int, ...], eps: float) -> Grid:
        return Grid(modes, min(WIDEST, math.ceil(-math.log10(eps)) + 2))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(smooth_length(max(2 * count, 2 * self.width)) for count in self.modes)

    @property
    def beta(self) -> float:
        return 2.30 * self.width

    def kernel(self, z: Tensor) -> Tensor:
        return torch.exp(self.beta * (torch.sqrt((1 - z * z).clamp_min_(0.0)) - 1))

    def undo(self, like: Tensor) -> Tensor:
        """One over the kernel's Fourier transform at every mode: what removes the spread."""
        factor = like.new_ones((), dtype=torch.float64)
        for axis, (count, cells) in enumerate(zip(self.modes, self.shape, strict=True)):
            one = 1 / self._transform(count, cells).to(like.device)
            factor = factor.unsqueeze(-1) * one if axis else one
        return factor

    def _transform(self, count: int, cells: int) -> Tensor:
        nodes, weights = quadrature(2 * WIDEST + 32)
        frequency = math.pi * self.width / cells * frequencies(count)
        return self.width / 2 * (torch.cos(frequency.unsqueeze(-1) * nodes) @ (weights * self.kernel(nodes)))

    def cells(self, points: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """For a chunk of points after another: which cells each touches, and how strongly. Both (points, w^dim)."""
        step = min(RUN, max(1, CHUNK // self.width ** len(self.modes)))
        for start in range(0, points.shape[1], step):
            part = slice(start, min(start + step, points.shape[1]))
            yield part, *self._touched(points[:, part])

    def _touched(self, points: Tensor) -> tuple[Tensor, Tensor]:
        index = torch.zeros(points.shape[1], 1, dtype=torch.int64, device=points.device)
        share = points.new_ones(points.shape[1], 1)
        steps = torch.arange(self.width, device=points.device)
        for axis, cells in zip(points, self.shape, strict=True):
            turns = axis / (2 * math.pi)
            place = (turns - turns.floor()).unsqueeze(-1) * cells
            cell = torch.ceil(place - self.width / 2) + steps  # (points, w)
            amount = self.kernel((cell - place) * (2 / self.width))
            where = cell.to(torch.int64).remainder(cells)
            index = (index.unsqueeze(-1) * cells + where.unsqueeze(1)).flatten(1)
            share = (share.unsqueeze(-1) * amount.unsqueeze(1)).flatten(1)
        return index, share


def planned(kind: int, points: Tensor, modes: tuple[int, ...], eps: float, rows: int) -> Callable[[Tensor], Tensor]:
    del rows
    grid = Grid.of(modes, eps)
    undo = grid.undo(points)
    return (lambda c: undo * spread(grid, points, c)) if kind == 1 else (lambda f: read(grid, points, undo * f))


def spread(grid: Grid, points: Tensor, strengths: Tensor) -> Tensor:
    """The modes of what stands on the grid after every point was spread over its cells."""
    total = strengths.new_zeros(len(strengths), math.prod(grid.shape))
    fresh, added = torch.zeros_like(total), 0
    for part, index, share in grid.cells(points):
        for row, strength in zip(fresh, strengths[:, part], strict=True):
            row.index_add_(0, index.flatten(), (share * strength.unsqueeze(-1)).flatten())
        added += len(index)
        if added >= RUN:
            total += fresh
            fresh.zero_()
            added = 0
    total += fresh
    axes = tuple(range(1, len(grid.shape) + 1))
    spectrum = torch.fft.fftn(total.view(-1, *grid.shape), dim=axes)
    return spectrum[(slice(None), *torch.meshgrid(*_places(grid, points), indexing="ij"))]


def read(grid: Grid, points: Tensor, coefficients: Tensor) -> Tensor:
    """What stands on the grid for these modes, read at the points."""
    spectrum = coefficients.new_zeros(len(coefficients), *grid.shape)
    spectrum[(slice(None), *torch.meshgrid(*_places(grid, points), indexing="ij"))] = coefficients
    axes = tuple(range(1, len(grid.shape) + 1))
    field = torch.fft.ifftn(spectrum, dim=axes, norm="forward").flatten(1)
    out = coefficients.new_empty(len(coefficients), points.shape[1])
    for part, index, share in grid.cells(points):
        for row, values in zip(out, field, strict=True):
            row[part] = (values[index] * share).sum(-1)
    return out


def _places(grid: Grid, like: Tensor) -> list[Tensor]:
    pairs = zip(grid.modes, grid.shape, strict=True)
    return [frequencies(count).to(like.device, torch.int64).remainder(cells) for count, cells in pairs]


def frequencies(count: int) -> Tensor:
    """-(count // 2) .. (count - 1) // 2."""
    return torch.arange(-(count // 2), (count - 1) // 2 + 1, dtype=torch.float64)


def quadrature(order: int) -> tuple[Tensor, Tensor]:
    """Gauss and Legendre's nodes and weights on [-1, 1]."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(order)
    return torch.from_numpy(nodes), torch.from_numpy(weights)


def smooth_length(least: int) -> int:
    """The next even length without prime factors above 5: an FFT of it is fast."""
    length = least + least % 2
    while not _is_smooth(length):
        length += 2
    return length


def _is_smooth(length: int) -> bool:
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    return length == 1
