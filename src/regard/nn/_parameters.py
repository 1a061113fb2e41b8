"""What layers are built with: options that are checked, parameters that start small, inputs of the width agreed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.errors import ChoiceError, ShapeError


def whole(layer: str, **sizes: int) -> None:
    """Every one of these is a whole number, 1 or more."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            msg = f"{layer} needs {name} to be a whole number, 1 or more, but it is {size!r}"
            raise ChoiceError(msg)


def one_of(layer: str, name: str, value: str | None, offered: Sequence[str | None]) -> None:
    if value not in offered:
        msg = f"{layer} has no {name} {value!r}; there are: {', '.join(map(str, offered))}"
        raise ChoiceError(msg)


def probability(layer: str, dropout: float) -> float:
    if not 0 <= dropout < 1:
        msg = f"{layer} needs dropout to be a probability from 0 up to but not including 1, but it is {dropout}"
        raise ChoiceError(msg)
    return float(dropout)


def parameter(*shape: int, device: torch.device | str | None, dtype: torch.dtype | None) -> nn.Parameter:
    """Room for numbers; `start` fills it."""
    return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))


def start(*parameters: nn.Parameter | None) -> None:
    """Uniform within 1 / √width around 0, as torch's linear layers start."""
    for one in parameters:
        if one is not None:
            bound = 1 / math.sqrt(one.shape[-1])
            nn.init.uniform_(one, -bound, bound)


def check_widths(layer: nn.Module, **expected: tuple[Tensor, int | None]) -> None:
    """Each tensor, by name, has the width that the layer was built for, if it was built for one."""
    for name, (tensor, width) in expected.items():
        # What is no tensor, or has no width, is refused in words by `attend`.
        if isinstance(tensor, Tensor) and tensor.dim() and width is not None and tensor.shape[-1] != width:
            msg = (
                f"{type(layer).__name__} was built for {name} of width {width}, "
                f"but {name} is {tuple(tensor.shape)}, of width {tensor.shape[-1]}"
            )
            raise ShapeError(msg)
