r"""Standard error of a prediction, and confidence bands for the curve.

A prediction is linear in y, f(x) = sum_i l_i(x) y_i, so with independent noise its variance is sum_i l_i^2 sigma_i^2.
The noise near x comes from leave-one-out residuals e near x:

    se(x)^2 = sigma^2(x) sum_i l_i(x)^2 / s_i,    sigma^2(x) = sum_i p_i(x) e_i^2,

with the weights p of degree 0. So the noise may differ from place to place, and a fit that follows its own noise does
not get a narrower band. Two alternatives covered the curve less often in simulation: residuals of the fit itself, which
are too small, and one variance for all places. Tests check the coverage.

The half width of a band is Student's t times se(x), with 1 / sum_i p_i^2 - 1 degrees of freedom: the effective number
of rows behind sigma^2(x), less one.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from regard.regression.local.data import Noise


def standard_error(noise: Noise) -> Float[Tensor, "q outputs"]:
    """Standard error of the prediction at each query."""
    return (noise.variance * noise.kept.unsqueeze(1)).clamp_min(0).sqrt()


def half_width(noise: Noise, level: float) -> Float[Tensor, "q outputs"]:
    """Half the width of a band that holds the curve with probability `level` at each query."""
    freedom = (noise.rows - 1).clamp_min(1.0).numpy(force=True)
    quantile = np.asarray(stdtrit(freedom, (1 + level) / 2))
    return standard_error(noise) * torch.from_numpy(quantile).to(noise.kept.device).unsqueeze(1)
