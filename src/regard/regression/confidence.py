r"""How sure a prediction is: its standard error, and a band around the curve.

A prediction is linear in y, f(x) = sum_i l_i(x) y_i, so with independent noise its variance is sum_i l_i^2 sigma_i^2.
The noise near x is measured by what the data near x missed when it was left out,

    se(x)^2 = sigma^2(x) sum_i l_i(x)^2 / s_i,    sigma^2(x) = sum_i p_i(x) e_i^2,

with e the leave-one-out residuals: it may differ from place to place, and a fit that follows its own noise does not
look better for it. Residuals within the fit (they are too small) and one variance for all places (too wide a band
where it is quiet, too narrow where it is loud) covered less in simulation; tests hold the coverage.

A level is turned into a band by Student's t with as many degrees of freedom as rows of equal weight are behind
sigma^2(x), less one: 1 / sum_i p_i^2 - 1.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from regard.regression.local.squared_weights import Noise


def standard_error(noise: Noise) -> Float[Tensor, "q outputs"]:
    return (noise.variance * noise.kept.unsqueeze(1)).clamp_min(0).sqrt()


def half_width(noise: Noise, level: float) -> Float[Tensor, "q outputs"]:
    """Half of a band that holds the curve with probability `level`, point by point."""
    freedom = (noise.rows - 1).clamp_min(1.0).numpy(force=True)
    quantile = np.asarray(stdtrit(freedom, (1 + level) / 2))
    return standard_error(noise) * torch.from_numpy(quantile).to(noise.kept.device).unsqueeze(1)
