"""Pooling without a query: mean, maximum, and a learned scorer of the keys."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor, nn

from regard import scores
from regard.attention import Attention, attend
from regard.engine import inputs
from regard.errors import DtypeError, MaskError, ShapeError
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._valid_lens import combined_mask, lead_dims
from regard.operands import NEVER, Size, Span
from regard.scores import Score
from regard.term import type_name
from regard.tracing import refuse_script


class AveragePooling(nn.Module):
    r"""Mean of the visible keys: attention without a query.

    output = sum_j x_j / m over the m visible keys, and 0 if there are none.

    Shapes: x (..., m, d); output (..., d), weights (..., 1, m), lazy. mask: one that depends on the key alone, such as
    `masks.padding`, `masks.prefix` and `masks.allow` of (m,). valid_lens: number of keys that are no padding, (batch,).

    >>> import torch
    >>> from regard.nn import AveragePooling
    >>> x = torch.tensor([[[1.0, 2], [3, 4], [5, 9]]])
    >>> AveragePooling()(x, valid_lens=torch.tensor([2])).output
    tensor([[2., 3.]])
    """

    __prepare_scriptable__ = refuse_script

    def forward(
        self,
        x: Float[Tensor, "*lead keys dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Average the visible rows of x."""
        return _pool(x, scores.uniform(), mask, valid_lens)

    def extra_repr(self) -> str:
        """Formula, as `print(layer)` shows it."""
        return "mean_j(x_j)"


class MaxPooled(NamedTuple):
    """Maximum of each feature, and the index of the key that has it; 0 and -1 if no key is visible."""

    output: Float[Tensor, "*lead dim"]
    indices: Int[Tensor, "*lead dim"]


class MaxPooling(nn.Module):
    r"""Maximum of each feature over the visible keys, and the key that has it.

    output_f = max_j x_jf and indices_f = argmax_j x_jf, or 0 and -1 if no key is visible. There are no weights, since
    each feature has its own key.

    Shapes: x (..., m, d); output (..., d), indices (..., d). mask: one that depends on the key alone; valid_lens:
    number of keys that are no padding, (batch,).

    >>> import torch
    >>> from regard.nn import MaxPooling
    >>> x = torch.tensor([[[1.0, 4], [3, 2], [5, 9]]])
    >>> MaxPooling()(x, valid_lens=torch.tensor([2]))
    MaxPooled(output=tensor([[3., 4.]]), indices=tensor([[1, 0]]))
    """

    __prepare_scriptable__ = refuse_script

    def forward(
        self,
        x: Float[Tensor, "*lead keys dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> MaxPooled:
        """Take the maximum of each column of x over the visible rows."""
        visible = _visible_rows(x, _key_mask(x, mask, valid_lens))
        if not x.shape[-2]:
            return MaxPooled(x.sum(-2), torch.full((*x.shape[:-2], x.shape[-1]), -1, device=x.device))
        with torch.no_grad():
            visible_x = torch.where(visible, x, NEVER)
            index = visible_x.argmax(-2, keepdim=True)  # a NaN is the largest
            # Where all visible numbers are -inf, argmax may give a hidden key, which is -inf too.
            first = visible.to(torch.uint8).argmax(-2, keepdim=True)
            index = torch.where(visible_x.gather(-2, index) == NEVER, first, index)
            empty = ~visible.any(-2, keepdim=True)
        output = torch.where(empty, 0.0, x.gather(-2, index))
        return MaxPooled(output.squeeze(-2), torch.where(empty, -1, index).squeeze(-2))

    def extra_repr(self) -> str:
        """Formula, as `print(layer)` shows it."""
        return "max_j(x_j)"


class LearnedPooling(nn.Module):
    r"""Weighted mean of the keys, with weights from a learned scorer that takes no query.

    output = sum_j softmax_j(e_j) x_j with e_j = v · x_j, or with `hidden`, e_j = v · tanh(W x_j).

    Shapes: x (..., m, dim); output (..., dim), weights (..., 1, m), lazy. mask: one that depends on the key alone;
    valid_lens: number of keys that are no padding, (batch,). Parameters: v (dim,); or with `hidden` w (hidden, dim) and
    v (hidden,).

    >>> import torch
    >>> from regard.nn import LearnedPooling
    >>> output, weights = LearnedPooling(dim=3)(torch.randn(2, 5, 3))
    >>> output.shape, weights.shape
    (torch.Size([2, 3]), torch.Size([2, 1, 5]))
    """

    __prepare_scriptable__ = refuse_script

    w: nn.Parameter | None

    def __init__(
        self,
        dim: int,
        hidden: int | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        width = dim if hidden is None else hidden
        _parameters.check_sizes("LearnedPooling", dim=dim, hidden=width)
        self.dim: int = dim
        self.hidden: int | None = hidden
        w = None if hidden is None else _parameters.empty_parameter(hidden, dim, device=device, dtype=dtype)
        self.register_parameter("w", w)
        self.v: nn.Parameter = _parameters.empty_parameter(width, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial parameters."""
        _parameters.init_uniform(self.w, self.v)

    def forward(
        self,
        x: Float[Tensor, "*lead keys dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Pool the visible rows of x by the learned weights."""
        _parameters.check_widths(self, x=(x, self.dim))
        return _pool(x, self._score(), mask, valid_lens)

    def _score(self) -> Score:
        """The scorer as a score of query and key, whose query is the constant 1."""
        if self.w is None:
            return scores.general(self.v.unsqueeze(0))
        return scores.additive(self.w.new_zeros(self.w.shape[0], 1), self.w, self.v)

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        if self.hidden is None:
            return f"softmax_j(v·x_j), dim={self.dim}"
        return f"softmax_j(v·tanh(W x_j)), dim={self.dim}, hidden={self.hidden}"


def _pool(
    x: Float[Tensor, "*lead keys dim"], score: Score, mask: Mask | None, valid_lens: Integer[Tensor, "..."] | None
) -> Attention:
    output, weights = attend(_constant_query(x), x, x, score, _key_mask(x, mask, valid_lens))
    return Attention(output.squeeze(-2), weights)


def _constant_query(x: Float[Tensor, "*lead keys dim"]) -> Float[Tensor, "1 1"]:
    """The query of a layer that has none: a single 1."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        msg = f"x must be a floating point tensor of shape (..., keys, features), but it is {type_name(x)}"
        raise DtypeError(msg)
    if x.dim() < 2:
        msg = f"x must be (..., keys, features), two dimensions at least, but its shape is {tuple(x.shape)}"
        raise ShapeError(msg)
    return x.new_ones(1, 1)


def _key_mask(
    x: Float[Tensor, "*lead keys dim"], mask: Mask | None, valid_lens: Integer[Tensor, "..."] | None
) -> Mask | None:
    if isinstance(valid_lens, Tensor) and isinstance(x, Tensor) and valid_lens.dim() > max(lead_dims(x), 0):
        msg = (
            f"a pool without queries needs one length for each sequence, so valid_lens follow the leading dimensions "
            f"{tuple(x.shape[:-2])} of x, but their shape is {tuple(valid_lens.shape)}"
        )
        raise ShapeError(msg)
    visible = combined_mask(mask, valid_lens)
    if visible is not None and not visible.per_key:
        msg = (
            f"a pool without queries needs a mask that says which keys are seen, as padding, prefix, or allow and hide "
            f"of (keys,) or (..., 1, keys) do, but {mask} differs from query to query"
        )
        raise MaskError(msg)
    return visible


def _visible_rows(x: Float[Tensor, "*lead keys dim"], mask: Mask | None) -> Bool[Tensor, "... #keys 1"]:
    """True for the visible rows of x, in a shape that broadcasts to (..., m, 1)."""
    shape = inputs.check(_constant_query(x), x, None, inputs.make_spec(scores.uniform(), mask, None))
    if mask is None:
        return torch.ones(shape.m, 1, dtype=torch.bool, device=x.device)
    tensors = [operand.tensor for operand in mask.operands(shape.lead)]
    return mask.tile(tensors, Span(0, 1), Span(0, shape.m), Size(1, shape.m, x.device)).mT
