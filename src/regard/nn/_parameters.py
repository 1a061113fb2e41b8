"""Checks of a layer's options and input widths, and its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.errors import ChoiceError, ShapeError


def check_sizes(layer: str, **sizes: int) -> None:
    """Refuse sizes that are not integers of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            msg = f"{layer} needs {name} to be a whole number, 1 or more, but it is {size!r}"
            raise ChoiceError(msg)


def check_choice(layer: str, name: str, value: str | None, offered: Sequence[str | None]) -> None:
    """Refuse a value that is not offered."""
    if value not in offered:
        msg = f"{layer} has no {name} {value!r}; there are: {', '.join(map(str, offered))}"
        raise ChoiceError(msg)


def check_dropout(layer: str, dropout: float) -> float:
    """Refuse a dropout probability outside 0 <= p < 1."""
    if not 0 <= dropout < 1:
        msg = f"{layer} needs dropout to be a probability from 0 up to but not including 1, but it is {dropout}"
        raise ChoiceError(msg)
    return float(dropout)


def empty_parameter(*shape: int, device: torch.device | str | None, dtype: torch.dtype | None) -> nn.Parameter:
    """A parameter of this shape, which `init_uniform` fills."""
    return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))


def init_uniform(*parameters: nn.Parameter | None) -> None:
    """Draw parameters from U(-b, b) with b = 1 / √width, as torch's linear layers do."""
    for parameter in parameters:
        if parameter is not None:
            bound = 1 / math.sqrt(parameter.shape[-1])
            nn.init.uniform_(parameter, -bound, bound)


def check_widths(layer: nn.Module, **expected: tuple[Tensor, int | None]) -> None:
    """Refuse tensors whose width is not the one that the layer was built for; None is any width."""
    for name, (tensor, width) in expected.items():
        # `attend` refuses what is no tensor or has no dimensions.
        if isinstance(tensor, Tensor) and tensor.dim() and width is not None and tensor.shape[-1] != width:
            msg = (
                f"{type(layer).__name__} was built for {name} of width {width}, "
                f"but {name} is {tuple(tensor.shape)}, of width {tensor.shape[-1]}"
            )
            raise ShapeError(msg)
