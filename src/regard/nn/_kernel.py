"""Kernel regression (Nadaraya-Watson) as a layer that learns its bandwidth."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from regard import masks, scores
from regard.attention import Attention
from regard.errors import ChoiceError
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._attention_layer import AttentionLayer
from regard.scores import Score


class KernelPooling(AttentionLayer):
    r"""Nadaraya-Watson kernel regression as a layer: a Gaussian kernel with a learned inverse bandwidth w.

    output_i = sum_j softmax_j(-(w |q_i - k_j|)² / 2) v_j, the Gaussian kernel of bandwidth 1 / w. `w` is its initial
    value; with learn=False it stays constant. With `dim` there is one w for each feature, inside the norm.

    Shapes: query (..., n, d), key (..., m, d), value (..., m, d_v); output (..., n, d_v), weights (..., n, m), lazy.
    Parameter: w, a scalar or (dim,).

    To learn w from samples use `leave_one_out`: a sample that sees itself would only copy its own value.

    >>> import torch
    >>> from regard import datasets
    >>> from regard.nn import KernelPooling
    >>> data = datasets.sine()
    >>> x, y = data.x_train[:, None], data.y_train[:, None]
    >>> layer = KernelPooling()
    >>> error = (layer.leave_one_out(x, y).output - y).square().mean()
    >>> error.backward()
    >>> bool(layer.w.grad < 0)  # a sharper kernel would fit better
    True
    >>> layer(data.x_test[:, None], x, y).output.shape
    torch.Size([50, 1])
    """

    w: Tensor

    def __init__(
        self,
        w: float = 1.0,
        dim: int | None = None,
        learn: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dim is not None:
            _parameters.check_sizes("KernelPooling", dim=dim)
        if not math.isfinite(w):
            msg = f"KernelPooling needs a finite number to start from, but w is {w}"
            raise ChoiceError(msg)
        self.initial: float = float(w)
        self.dim: int | None = dim
        self.learn: bool = learn
        w_initial = _parameters.empty_parameter(*(() if dim is None else (dim,)), device=device, dtype=dtype)
        if learn:
            self.w = w_initial
        else:
            self.register_buffer("w", w_initial.detach())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial parameters."""
        nn.init.constant_(self.w, self.initial)

    def score(self, keys: int) -> Score:
        """The score -(w |q - k|)² / 2, for any number of keys."""
        del keys
        return scores.gaussian(self.w)

    def leave_one_out(
        self,
        x: Float[Tensor, "*lead keys dim"],
        y: Float[Tensor, "*value_lead keys value_dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Predict each y from all the others by the distances of their x: the loss for learning w."""
        others = ~masks.window(0, 0)
        return self(x, x, y, others if mask is None else mask & others, valid_lens)

    def extra_repr(self) -> str:
        """Formula and the initial w, as `print(layer)` shows them."""
        width = "" if self.dim is None else f", dim={self.dim}"
        kept = "" if self.learn else ", learn=False"
        return f"softmax_j(-(w|q - k_j|)² / 2), w={self.initial:g}{width}{kept}"
