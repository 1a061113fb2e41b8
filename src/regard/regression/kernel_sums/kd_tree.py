"""Points in an order in which neighbours lie together, cut into tiles that each know the box around them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

ROWS = 64  # that the fused kernel takes at once


class Tiles(NamedTuple):
    """Tile t holds the points order[start[t] : start[t + 1]], all of them between low[t] and high[t]."""

    order: Int[Tensor, " n"]
    start: tuple[int, ...]
    low: Float[Tensor, "tiles dim"]
    high: Float[Tensor, "tiles dim"]

    def __len__(self) -> int:
        return len(self.start) - 1

    def cut(self, tile: int) -> slice:
        return slice(self.start[tile], self.start[tile + 1])

    def back(self, found: Tensor) -> Tensor:
        """What was found for the points in this order, in the order they came in."""
        placed = torch.empty_like(found)
        placed[self.order] = found
        return placed


def tiles(points: Float[Tensor, "n dim"], largest: int) -> Tiles:
    """Halves at the median of the widest feature, and halves of these, until none has more than `largest` points.

    Medians follow the data, so that clusters and heavy tails make tiles of the same size as anything else.
    """
    numbers = points.detach().numpy()
    if points.shape[1] == 1:
        order, starts = np.argsort(numbers[:, 0], kind="stable"), [low for low, _ in _leaves(len(points), largest)]
    else:
        order, starts = _split(numbers, largest)
    place = numbers.take(order, axis=0)
    low = np.minimum.reduceat(place, starts, axis=0) if starts else place
    high = np.maximum.reduceat(place, starts, axis=0) if starts else place
    return Tiles(torch.from_numpy(order), (*starts, len(points)), torch.from_numpy(low), torch.from_numpy(high))


def _leaves(count: int, largest: int) -> list[tuple[int, int]]:
    if not count:
        return []
    found: list[tuple[int, int]] = []
    waiting = [(0, count)]
    while waiting:
        low, high = waiting.pop()
        if high - low <= largest:
            found.append((low, high))
        else:
            middle = _middle(low, high)
            waiting += [(middle, high), (low, middle)]
    return found


def _middle(low: int, high: int) -> int:
    """Halfway; large halves are whole numbers of rows that the kernel takes at once."""
    half = (high - low) // 2
    return low + (half if half < 2 * ROWS else half // ROWS * ROWS)


def _split(points: np.ndarray, largest: int) -> tuple[np.ndarray, list[int]]:
    # A feature lies side by side, and single precision is enough to tell who is a neighbour.
    order, place = np.arange(len(points)), np.ascontiguousarray(points.T, dtype=np.float32)
    starts: list[int] = []
    waiting = [(0, len(points))] if len(points) else []
    while waiting:
        low, high = waiting.pop()
        if high - low <= largest:
            starts.append(low)
            continue
        part, middle = place[:, low:high], _middle(low, high)
        axis = int(np.argmax(part.max(1) - part.min(1)))
        moved = np.argpartition(part[axis], middle - low)
        place[:, low:high], order[low:high] = part.take(moved, axis=1), order[low:high].take(moved)
        waiting += [(middle, high), (low, middle)]
    return order, starts
