"""A device that is not the processor, on a machine that has none: it computes there, and refuses as a real one does.

Tensors on it wrap those of the processor. What makes code fail on a graphics card, tensors of two devices in one step,
or numpy asked for memory it cannot reach, fails here in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "lazy"  # a name that torch knows, and lets through without its hardware
aten = torch.ops.aten
CROSSING = {aten.copy_.default, aten._to_copy.default}  # these carry numbers from one device to another
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}


class Away(Tensor):
    """A tensor of the device; `here` holds its numbers."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> Self:
        away: Any = Tensor._make_wrapper_subclass(
            cls,
            here.shape,
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
        )
        away.here = here
        return away

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            msg = f"can't convert {DEVICE} device type tensor to numpy"
            raise TypeError(msg)
        return self.here.numpy(force=True)

    def tolist(self) -> Any:
        return self.here.tolist()

    def __getitem__(self, index: Any) -> Tensor:
        return super().__getitem__(tree_map(_listed, index, is_leaf=lambda part: isinstance(part, list)))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(tree_map(_listed, index, is_leaf=lambda part: isinstance(part, list)), value)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Mode(TorchDispatchMode):
    """Sees also what has no tensor of the device among its arguments: zeros(..., device=...), .to(device)."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


@contextmanager
def elsewhere() -> Iterator[str]:
    """The name of a device that is there inside this block."""
    with _Mode():
        yield DEVICE


def _run(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    _refuse_two_devices(func, args, kwargs)
    away = any(isinstance(leaf, Away) for leaf in tree_leaves((args, kwargs)))
    asked = kwargs.get("device")
    if asked is not None:
        away = torch.device(asked).type == DEVICE
        kwargs = kwargs | {"device": "cpu"}
    if func is aten.copy_.default:
        away = isinstance(args[0], Away)
    found = func(*tree_map(_here, args), **tree_map(_here, kwargs))
    if not away:
        return found
    found = tree_map(lambda t: Away(t) if isinstance(t, Tensor) else t, found)
    return return_and_correct_aliasing(func, args, kwargs, found)


def _refuse_two_devices(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    """Single numbers may come from the processor, and indices."""
    seen = (args[0], args[2:], kwargs) if func in INDEXING else (args, kwargs)
    tensors = [leaf for leaf in tree_leaves(seen) if isinstance(leaf, Tensor)]
    mixed = any(isinstance(t, Away) for t in tensors) and any(not isinstance(t, Away) and t.dim() for t in tensors)
    if mixed and func not in CROSSING:
        msg = f"{func}: expected all tensors to be on the same device, but found two: {DEVICE} and cpu"
        raise RuntimeError(msg)


def _listed(part: Any) -> Any:
    """A list among indices: torch would make a tensor of it on the device, past every mode."""
    return torch.tensor(part, dtype=torch.int64 if not part else None) if isinstance(part, list) else part


def _here(leaf: Any) -> Any:
    return leaf.here if isinstance(leaf, Away) else leaf
