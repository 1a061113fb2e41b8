"""Kernel regression of Nadaraya and Watson as a layer that learns its width."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard import masks, scores
from regard.attention import Attention
from regard.errors import ChoiceError
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._attention_layer import Attending
from regard.scores import Score


class KernelPooling(Attending):
    r"""Nadaraya-Watson: the nearer a key, the more its value counts, and a learned w says how near is near.

    output_i = sum_j softmax_j(-(w |q_i - k_j|)² / 2) v_j, the Gaussian kernel of width 1 / w. With `dim`, there is a
    w for each of so many features, inside the norm. `w` is where it starts; learn=False keeps it there.

    Shapes: query (..., n, d), key (..., m, d), value (..., m, d_v); output (..., n, d_v), weights (..., n, m).
    Parameter: w, one number or (dim,).

    To learn w from samples, predict each from all the others: one that sees itself copies itself.

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
            _parameters.whole("KernelPooling", dim=dim)
        if not math.isfinite(w):
            msg = f"KernelPooling needs a finite number to start from, but w is {w}"
            raise ChoiceError(msg)
        self.initial, self.dim, self.learn = float(w), dim, learn
        room = _parameters.parameter(*(() if dim is None else (dim,)), device=device, dtype=dtype)
        if learn:
            self.w = room
        else:
            self.register_buffer("w", room.detach())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew."""
        nn.init.constant_(self.w, self.initial)

    def score(self, keys: int) -> Score:
        """-(w |q - k|)² / 2, for any number of keys."""
        del keys
        return scores.gaussian(self.w)

    def leave_one_out(
        self, x: Tensor, y: Tensor, mask: Mask | None = None, valid_lens: Tensor | None = None
    ) -> Attention:
        """Predict each y (..., m, d_v) from all the others, by their x (..., m, d)."""
        others = ~masks.window(0, 0)
        return self(x, x, y, others if mask is None else mask & others, valid_lens)

    def extra_repr(self) -> str:
        """The formula, and where w stands."""
        width = "" if self.dim is None else f", dim={self.dim}"
        kept = "" if self.learn else ", learn=False"
        return f"softmax_j(-(w|q - k_j|)² / 2), w={self.initial:g}{width}{kept}"
