"""Problems of leave-one-out and searches for a bandwidth from bare tensors."""

import torch
from torch import Tensor

from regard.regression.bandwidth import search
from regard.regression.bandwidth.leave_one_out.problem import Problem, Rows
from regard.regression.bandwidth.search import Selection
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.sample import Sample


def sample_of(x: Tensor, y: Tensor, kernel: str = "gaussian", log_weight: Tensor | None = None) -> Sample:
    """Rows whose bandwidth is not known yet."""
    return Sample(x, y, torch.ones(x.shape[1], dtype=torch.float64), kernel, log_weight)


def problem_of(
    x: Tensor,
    y: Tensor,
    kernel: str = "gaussian",
    degree: int = 0,
    log_weight: Tensor | None = None,
    left_out: Tensor | None = None,
    categories: Categories | None = None,
) -> Problem:
    return Problem.of(Rows(sample_of(x, y, kernel, log_weight), left_out, categories), degree)


def select(
    x: Tensor, y: Tensor, kernel: str = "gaussian", degree: int = 0, categories: Categories | None = None, **options
) -> Selection:
    return search.select(Rows(sample_of(x, y, kernel), None, categories), degree, **options)
