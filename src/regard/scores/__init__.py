r"""Scores say how well a query and a key fit: the first of the four steps score -> mask -> normalise -> pool.

A score turns queries and keys into operands once, in O((n + m) d), and then computes any block of the n x m matrix
from slices of them. Scores add: ``scaled_dot() + bias(t)``.

>>> import torch
>>> from regard import scores
>>> scores.scaled_dot() + scores.alibi(torch.tensor([0.5, 0.25]))
q·k / √d - slope |i - j|
"""

from __future__ import annotations

import math

from jaxtyping import Float, Shaped
from torch import Tensor

from regard import kernels
from regard.errors import ChoiceError, DtypeError, ShapeError
from regard.scores._additive import Additive, Concat, Tanh, is_large, tanh_score_gradients, tanh_score_values  # noqa: F401  the engine takes them here
from regard.scores._base import Features, Score
from regard.scores._compose import Alibi, Bias, Relative, Softcap
from regard.scores._distance import Gaussian, KernelScore, squared_distance  # noqa: F401  regression takes it here
from regard.scores._linear import Cosine, Dot, General, Location, Uniform
from regard.term import as_float, check_ordinary, type_name

__all__ = [
    "Dot",
    "Features",
    "Score",
    "additive",
    "alibi",
    "bias",
    "concat",
    "cosine",
    "dot",
    "gaussian",
    "general",
    "kernel",
    "location",
    "relative",
    "scaled_dot",
    "softcap",
    "uniform",
]


def dot() -> Score:
    """q · k."""
    return Dot(1.0)


def scaled_dot(scale: float | None = None) -> Score:
    """scale · q · k, with scale = 1 / √d_k unless given."""
    factor = None if scale is None else as_float(scale, "scaled_dot(scale)")
    if factor is not None and not math.isfinite(factor):
        msg = f"scaled_dot(scale) needs a finite number, but scale is {scale}"
        raise ChoiceError(msg)
    return Dot(factor)


def cosine(temperature: float = 1.0) -> Score:
    """cos(q, k) / temperature; a zero vector has cosine 0 with everything."""
    divisor = as_float(temperature, "cosine(temperature)")
    if not divisor > 0:
        msg = f"cosine(temperature) needs a positive number, but temperature is {temperature}"
        raise ChoiceError(msg)
    return Cosine(divisor)


def general(w: Float[Tensor, "d_q d_k"]) -> Score:
    """q · W k, Luong's general score: w is (d_q, d_k)."""
    return General(_tensor(w, "w of general", 2))


def additive(w_q: Float[Tensor, "h d_q"], w_k: Float[Tensor, "h d_k"] | None, v: Float[Tensor, " h"]) -> Score:
    """v · tanh(W_q q + W_k k), Bahdanau's score: w_q is (h, d_q), w_k is (h, d_k), v is (h,).

    With w_k = None the keys are projected already, (..., m, h): v · tanh(W_q q + k). A decoder projects them once for
    all its steps.
    """
    _tensor(w_q, "w_q of additive", 2)
    _tensor(v, "v of additive", 1)
    if w_k is not None:
        _tensor(w_k, "w_k of additive", 2)
    if not w_q.shape[0] == v.shape[0] == (v if w_k is None else w_k).shape[0]:
        shapes = ", ".join("None" if t is None else str(tuple(t.shape)) for t in (w_q, w_k))
        msg = (
            f"additive needs w_q (h, d_q), w_k (h, d_k) and v (h,) with one h, "
            f"but they are {shapes} and {tuple(v.shape)}"
        )
        raise ShapeError(msg)
    return Additive(w_q, w_k, v)


def concat(w: Float[Tensor, "h width"], v: Float[Tensor, " h"]) -> Score:
    """v · tanh(W [q; k]), Luong's concat score: w is (h, d_q + d_k), v is (h,)."""
    _tensor(w, "w of concat", 2)
    _tensor(v, "v of concat", 1)
    if w.shape[0] != v.shape[0]:
        msg = f"concat needs w (h, d_q + d_k) and v (h,) with one h, but they are {tuple(w.shape)} and {tuple(v.shape)}"
        raise ShapeError(msg)
    return Concat(w, v)


def location(w: Float[Tensor, "keys d_q"]) -> Score:
    """(W q)_j, Luong's location score, which looks at no key: w is (m, d_q)."""
    return Location(_tensor(w, "w of location", 2))


def gaussian(w: Shaped[Tensor, ""] | Float[Tensor, " dim"] | float = 1.0) -> Score:
    """-(w |q - k|)² / 2, the log of the Gaussian kernel of width 1 / w: w is one number, or one for each feature."""
    width = _width(w, "w of gaussian")
    if isinstance(width, float) and not math.isfinite(width):
        msg = f"gaussian(w) needs a finite number, but w is {width}"
        raise ChoiceError(msg)
    return Gaussian(width)


def kernel(kernel: kernels.Kernel | str, bandwidth: Shaped[Tensor, ""] | Float[Tensor, " dim"] | float = 1.0) -> Score:
    """log K(|q - k| / bandwidth), and -inf where a compact kernel does not reach: K by name, or from regard.kernels."""
    width = _width(bandwidth, "bandwidth of kernel")
    if isinstance(width, float) and not width > 0:
        msg = f"kernel needs a positive bandwidth, but it is {width:g}"
        raise ChoiceError(msg)
    record = kernels.get(kernel)
    return Gaussian(width, inverse=True) if record is kernels.gaussian else KernelScore(record.name, width)


def uniform() -> Score:
    """0 everywhere: average pooling."""
    return Uniform()


def bias(t: Float[Tensor, "..."]) -> Score:
    """t itself, broadcast to (..., n, m): ``scaled_dot() + bias(t)``."""
    if not isinstance(t, Tensor) or not t.is_floating_point():
        msg = f"t of bias must be a floating point tensor, but it is {type_name(t)} (to hide keys, use regard.masks)"
        raise DtypeError(msg)
    check_ordinary(t, "t of bias")
    return Bias(t)


def alibi(slopes: Float[Tensor, " heads"]) -> Score:
    """-slope |i - j|, one slope a head: slopes is (H,), along the third dimension from the end."""
    return Alibi(_tensor(slopes, "slopes of alibi", 1))


def relative(table: Float[Tensor, "... distances"], first: int) -> Score:
    """A number for each distance, t(j - i) = table[..., j - i - first]: table is (..., distances)."""
    if not isinstance(table, Tensor) or not table.is_floating_point() or not table.dim():
        msg = f"table of relative must be a floating point tensor (..., distances), but it is {type_name(table)}"
        raise DtypeError(msg)
    check_ordinary(table, "table of relative")
    return Relative(table, int(first))


def softcap(score: Score, c: float) -> Score:
    """c · tanh(score / c): the scores stay between -c and c."""
    if not isinstance(score, Score):
        msg = f"softcap bends a score from regard.scores, but it was given {type(score).__name__}"
        raise DtypeError(msg)
    cap = as_float(c, "softcap(score, c)")
    if not 0 < cap < math.inf:
        msg = f"softcap needs a positive, finite cap, but c is {c}"
        raise ChoiceError(msg)
    return Softcap(score, cap)


def _tensor(value: object, name: str, dims: int) -> Float[Tensor, "..."]:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        msg = f"{name} must be a floating point tensor, but it is {type_name(value)}"
        raise DtypeError(msg)
    check_ordinary(value, name)
    if value.dim() != dims:
        msg = f"{name} must have {dims} dimension{'s' * (dims != 1)}, but its shape is {tuple(value.shape)}"
        raise ShapeError(msg)
    return value


def _width(value: Tensor | float, name: str) -> Shaped[Tensor, ""] | Float[Tensor, " dim"] | float:
    if not isinstance(value, Tensor):
        return as_float(value, name)
    check_ordinary(value, name)
    return value if value.dim() == 0 else _tensor(value, name, 1)
