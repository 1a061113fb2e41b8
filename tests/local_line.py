"""The textbook's local line with sixty digits: weighted least squares, and no slope where points hardly differ."""

from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

DIGITS = 60
LAST_DIGITS = 1e-13
FLAT = mpf("1e-12")  # of the square of the distance to the points: a direction that varies less has no slope

KERNELS = {  # of u
    "gaussian": lambda u: mpmath.exp(-u * u / 2),
    "laplace": lambda u: mpmath.exp(-u),
    "boxcar": lambda u: mpf(u <= 1),
    "epanechnikov": lambda u: max(1 - u * u, mpf(0)),
    "biweight": lambda u: max(1 - u * u, mpf(0)) ** 2,
    "triweight": lambda u: max(1 - u * u, mpf(0)) ** 3,
    "triangular": lambda u: max(1 - u, mpf(0)),
    "tricube": lambda u: max(1 - u**3, mpf(0)) ** 3,
    "cosine": lambda u: mpmath.cos(mpmath.pi / 2 * u) if u < 1 else mpf(0),
}


class Line(NamedTuple):
    rows: np.ndarray  # (q, n): l
    near: np.ndarray  # (q, n): p
    lost: np.ndarray  # (q,): what float64 may lose of 1: more where points vary much less in one direction than another
    close: np.ndarray  # (q,): whether a direction is so nearly flat, or an edge so near, that rounding decides


def local_line(x, query, bandwidth, kernel="gaussian", weight=None) -> Line:
    """Rows of zeros where no point is in reach."""
    with mpmath.workdps(DIGITS):
        weight = np.ones(len(x)) if weight is None else weight
        widths = np.broadcast_to(bandwidth, x.shape[1])
        found = [_row(x.tolist(), at, widths.tolist(), kernel, weight.tolist()) for at in query.tolist()]
    return Line(*(np.array(part) for part in zip(*found, strict=True)))


def _row(x, at, widths, kernel, weight):
    dims = range(len(at))
    apart = [[mpf(point[k]) - mpf(at[k]) for k in dims] for point in x]
    far = [mpmath.sqrt(sum((a[k] / mpf(widths[k])) ** 2 for k in dims)) for a in apart]
    mass = [mpf(s) * KERNELS[kernel](u) for s, u in zip(weight, far, strict=True)]
    close = any(s and abs(u - 1) < 1e-13 for s, u in zip(weight, far, strict=True))
    total = sum(mass)
    if not total:
        return [0.0] * len(x), [0.0] * len(x), LAST_DIGITS, close
    p = [m / total for m in mass]
    mean = [sum(w * a[k] for w, a in zip(p, apart, strict=True)) for k in dims]
    around = [[a[k] - mean[k] for k in dims] for a in apart]
    spread = [[sum(w * a[k] * a[j] for w, a in zip(p, around, strict=True)) for j in dims] for k in dims]
    unit = [mpmath.sqrt(spread[k][k] + mean[k] ** 2) or mpf(1) for k in dims]
    strength, direction = mpmath.eigsy(mpmath.matrix([[spread[k][j] / unit[k] / unit[j] for j in dims] for k in dims]))
    aim = [sum(direction[k, i] * -mean[k] / unit[k] for k in dims) for i in dims]
    kept = [i for i in dims if strength[i] > FLAT]
    tilt = [sum(direction[k, i] * aim[i] / strength[i] for i in kept) / unit[k] for k in dims]
    rows = [w * (1 + sum(t * v for t, v in zip(tilt, a, strict=True))) for w, a in zip(p, around, strict=True)]
    close = close or any(FLAT / 2 < s < FLAT * 2 for s in strength)
    least = float(min([strength[i] for i in kept], default=1)) if len(dims) > 1 else 1.0
    return list(map(float, rows)), list(map(float, p)), LAST_DIGITS / least, close


def allowed(line: Line, y: np.ndarray) -> np.ndarray:
    """What float64 may lose of a line: some units of the last digit, times how far least squares carries them."""
    return line.lost * (np.abs(line.rows) @ np.abs(y) + np.abs(y).max())
