"""Random draws that are the same in every version of Python: only `Random.random()` promises that."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random


def below(count: int, random: Random) -> int:
    """A random integer from 0 to count - 1."""
    return int(random.random() * count)


def weighted(weights: Sequence[float], random: Random) -> int:
    """A random position, drawn with these weights."""
    sums = list(accumulate(weights))
    return bisect_right(sums, random.random() * sums[-1])
