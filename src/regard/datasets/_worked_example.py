"""Five tokens whose attention can be computed by hand."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class WorkedExample(NamedTuple):
    """Tokens, their scaled scores and their softmax weights."""

    tokens: Float[Tensor, "5 4"]
    scores: Float[Tensor, "5 5"]
    weights: Float[Tensor, "5 5"]


def worked_example() -> WorkedExample:
    """Make five tokens of width 4 that attend to each other without projections: query = key = value = tokens.

    `scores` is tokens @ tokens.mT / sqrt(4), and `weights` its softmax, rounded to four decimals. The first token gives
    itself the largest weight; the fifth gives tokens 1, 3 and 5 the same.

    >>> import regard as rg
    >>> example = worked_example()
    >>> rg.Weights(example.tokens, example.tokens)[0]
    tensor([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
    """
    tokens = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]]
    scores = [
        [1.00, 0.00, 0.50, 0.50, 0.75],
        [0.00, 1.00, 0.50, 0.50, 0.25],
        [0.50, 0.50, 1.00, 0.00, 0.75],
        [0.50, 0.50, 0.00, 1.00, 0.25],
        [0.75, 0.25, 0.75, 0.25, 0.75],
    ]
    weights = [
        [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
        [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
        [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
        [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
        [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
    ]
    return WorkedExample(torch.tensor(tokens), torch.tensor(scores), torch.tensor(weights))
