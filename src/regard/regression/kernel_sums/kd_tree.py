"""The leaves of a kd-tree: points in an order in which neighbours lie together, cut into tiles with bounding boxes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

KERNEL_ROWS = 64  # queries that the fused kernel takes at once: large halves are multiples of it


class Tiles(NamedTuple):
    """Tile t holds the points order[start[t] : start[t + 1]], all of them between low[t] and high[t]."""

    order: Int[Tensor, " n"]
    start: tuple[int, ...]
    low: Float[Tensor, "tiles dim"]
    high: Float[Tensor, "tiles dim"]

    def __len__(self) -> int:
        return len(self.start) - 1

    def rows(self, tile: int) -> slice:
        """The rows of one tile, of a tensor in this order."""
        return slice(self.start[tile], self.start[tile + 1])

    def original_order(self, rows: Tensor) -> Tensor:
        """Rows in this order, put back into the order in which the points came."""
        result = torch.empty_like(rows)
        result[self.order] = rows
        return result


def tiles(points: Float[Tensor, "n dim"], largest: int) -> Tiles:
    """Halves at the median of the widest feature, and halves of these, until none has more than `largest` points.

    Medians follow the data, so that clusters and heavy tails make tiles of the same size as anything else.
    """
    coordinates = points.detach().numpy()
    order, starts = _split(coordinates, largest)
    coordinates = coordinates.take(order, axis=0)
    low = np.minimum.reduceat(coordinates, starts, axis=0) if starts else coordinates
    high = np.maximum.reduceat(coordinates, starts, axis=0) if starts else coordinates
    return Tiles(torch.from_numpy(order), (*starts, len(points)), torch.from_numpy(low), torch.from_numpy(high))


def _split(points: np.ndarray, largest: int) -> tuple[np.ndarray, list[int]]:
    """The order of the points and where each tile starts. One feature is sorted once instead of split."""
    line = points.shape[1] == 1
    order = np.argsort(points[:, 0], kind="stable") if line else np.arange(len(points))
    # A feature lies side by side, and single precision is enough to tell who is a neighbour.
    by_axis = points.T if line else np.ascontiguousarray(points.T, dtype=np.float32)
    starts: list[int] = []
    waiting = [(0, len(points))] if len(points) else []
    while waiting:
        low, high = waiting.pop()
        if high - low <= largest:
            starts.append(low)
            continue
        middle = _middle(low, high)
        if not line:
            part = by_axis[:, low:high]
            axis = int(np.argmax(part.max(1) - part.min(1)))
            moved = np.argpartition(part[axis], middle - low)
            by_axis[:, low:high], order[low:high] = part.take(moved, axis=1), order[low:high].take(moved)
        waiting += [(middle, high), (low, middle)]
    return order, starts


def _middle(low: int, high: int) -> int:
    half = (high - low) // 2
    return low + (half if half < 2 * KERNEL_ROWS else half // KERNEL_ROWS * KERNEL_ROWS)
