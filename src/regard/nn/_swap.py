"""torch's attention layers in a model, turned into regard's and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from regard.errors import ChoiceError
from regard.nn._multihead import MultiheadAttention
from regard.torch_compat.multihead import disable_fast_path, enable_fast_path

Torchs = torch.nn.MultiheadAttention
MARK = "_swapped"  # in the layers that were torch's, so that layers which always were regard's stay so


class Swapped(NamedTuple):
    """The layers that were turned, by name. As a context manager it turns them back at the end."""

    layers: dict[str, MultiheadAttention]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.layers)

    def __enter__(self) -> Swapped:  # noqa: PYI034  a checker of types cannot see what Self is in a tuple
        return self

    def __exit__(self, *_: object) -> None:
        _turn_back(self.layers.values())

    def __repr__(self) -> str:
        return f"Swapped({', '.join(name or 'the model itself' for name in self.names)})"


def swap(model: torch.nn.Module) -> Swapped:
    """Turn every `torch.nn.MultiheadAttention` of a model into `regard.nn.MultiheadAttention`, in place.

    A layer stays the same object with the same parameters, hooks and mode: optimisers keep working, and so does
    whoever else holds it. Subclasses of torch's layer, which may compute something else, are left alone.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(16, 4)
    >>> rg.nn.swap(model).names
    ('self_attn',)
    >>> rg.nn.restore(model)
    ('self_attn',)
    >>> with rg.nn.swap(model):
    ...     type(model.self_attn)
    <class 'regard.nn._multihead.MultiheadAttention'>
    """
    found = {name: module for name, module in model.named_modules() if type(module) is Torchs}
    if not found:
        raise ChoiceError(_nothing(model, "torch.nn.MultiheadAttention", (Torchs,)))
    for layer in found.values():
        layer.__class__ = MultiheadAttention
        disable_fast_path(layer)
        setattr(layer, MARK, True)
    return Swapped(found)  # pyright: ignore[reportArgumentType]


def restore(model: torch.nn.Module) -> tuple[str, ...]:
    """Turn the layers that `swap` has turned into torch's again, and tell their names."""
    found = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiheadAttention) and hasattr(module, MARK)
    }
    if not found:
        raise ChoiceError(_nothing(model, "layer that regard.nn.swap has turned", (MultiheadAttention,)))
    _turn_back(found.values())
    return tuple(found)


def _turn_back(layers: Iterable[Torchs]) -> None:
    for layer in layers:
        if hasattr(layer, MARK):
            delattr(layer, MARK)
            layer.__class__ = Torchs  # pyright: ignore[reportAttributeAccessIssue]
            enable_fast_path(layer)


def _nothing(model: torch.nn.Module, wanted: str, near: tuple[type, ...]) -> str:
    kinds = sorted({_full_name(type(module)) for module in model.modules() if isinstance(module, near)})
    others = f"; it has {', '.join(kinds)}" if kinds else ""
    return f"{type(model).__name__} has no {wanted}{others}"


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
