"""Replacing torch's attention layers in a model by regard's, in place, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from regard.errors import ChoiceError
from regard.nn._multihead import MultiheadAttention
from regard.torch_compat.multihead import disable_fast_path, enable_fast_path

TorchAttention = torch.nn.MultiheadAttention
MARK = "_swapped"  # attribute of layers that were torch's; `restore` leaves others alone


class Swapped(NamedTuple):
    """Layers that `swap` has replaced, by name. As a context manager it restores torch's layers at the end."""

    layers: dict[str, MultiheadAttention]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the swapped layers in the model."""
        return tuple(self.layers)

    def __enter__(self) -> Swapped:  # noqa: PYI034  type checkers do not know Self in a NamedTuple
        return self

    def __exit__(self, *_: object) -> None:
        _restore_layers(self.layers.values())

    def __repr__(self) -> str:
        return f"Swapped({', '.join(name or 'the model itself' for name in self.names)})"


def swap(model: torch.nn.Module) -> Swapped:
    """Turn every `torch.nn.MultiheadAttention` of a model into a `regard.nn.MultiheadAttention`, in place.

    A layer stays the same object with the same parameters, hooks and mode, so optimisers and other references to it
    stay valid. Subclasses of torch's layer, which may compute something else, are left alone. `restore` undoes it, and
    so does the end of a ``with`` block. A model without such a layer is refused; attention that is computed in other
    ways, as in models of Hugging Face, is observed by `regard.record`.

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
    layers = {name: module for name, module in model.named_modules() if type(module) is TorchAttention}
    if not layers:
        raise ChoiceError(
            f"{_no_layer(model, 'torch.nn.MultiheadAttention', (TorchAttention,))}. Attention that is computed in "
            f"other ways, as in models of Hugging Face, is not swapped but observed: with rg.record(model) as recording"
        )
    for layer in layers.values():
        layer.__class__ = MultiheadAttention
        disable_fast_path(layer)
        setattr(layer, MARK, True)
    return Swapped(layers)  # pyright: ignore[reportArgumentType]


def restore(model: torch.nn.Module) -> tuple[str, ...]:
    """Turn layers that `swap` has replaced back into torch's, in place, and return their names."""
    layers = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, MultiheadAttention) and hasattr(module, MARK)
    }
    if not layers:
        raise ChoiceError(_no_layer(model, "layer that regard.nn.swap has turned", (MultiheadAttention,)))
    _restore_layers(layers.values())
    return tuple(layers)


def _restore_layers(layers: Iterable[TorchAttention]) -> None:
    for layer in layers:
        if hasattr(layer, MARK):
            delattr(layer, MARK)
            layer.__class__ = TorchAttention  # pyright: ignore[reportAttributeAccessIssue]
            enable_fast_path(layer)


def _no_layer(model: torch.nn.Module, wanted: str, near: tuple[type, ...]) -> str:
    types = sorted({_full_name(type(module)) for module in model.modules() if isinstance(module, near)})
    others = f"; it has {', '.join(types)}" if types else ""
    return f"{type(model).__name__} has no {wanted}{others}"


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
