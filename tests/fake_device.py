"""A fake device for tests on a machine without a graphics card: it computes, and refuses what a real one refuses.

Its tensors wrap tensors of the CPU. Code that would fail on a graphics card fails on it in the same way: tensors of two
devices in one operation, or numpy on memory that it cannot reach.
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


class DeviceTensor(Tensor):
    """A tensor on the fake device; `cpu_tensor` holds its numbers."""

    cpu_tensor: Tensor

    @staticmethod
    def __new__(cls, cpu_tensor: Tensor) -> Self:
        on_device: Any = Tensor._make_wrapper_subclass(
            cls,
            cpu_tensor.shape,
            strides=cpu_tensor.stride(),
            storage_offset=cpu_tensor.storage_offset(),
            dtype=cpu_tensor.dtype,
            device=DEVICE,
        )
        on_device.cpu_tensor = cpu_tensor
        return on_device

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            msg = f"can't convert {DEVICE} device type tensor to numpy"
            raise TypeError(msg)
        return self.cpu_tensor.numpy(force=True)

    def tolist(self) -> Any:
        return self.cpu_tensor.tolist()

    def __getitem__(self, index: Any) -> Tensor:
        return super().__getitem__(tree_map(_list_to_tensor, index, is_leaf=lambda part: isinstance(part, list)))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(tree_map(_list_to_tensor, index, is_leaf=lambda part: isinstance(part, list)), value)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Mode(TorchDispatchMode):
    """The mode also sees operations without a tensor of the device, such as zeros(..., device=...) and .to(device)."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


@contextmanager
def fake_device() -> Iterator[str]:
    """The name of a device that exists inside this block."""
    with _Mode():
        yield DEVICE


def _run(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    _refuse_two_devices(func, args, kwargs)
    on_device = any(isinstance(leaf, DeviceTensor) for leaf in tree_leaves((args, kwargs)))
    requested = kwargs.get("device")
    if requested is not None:
        on_device = torch.device(requested).type == DEVICE
        kwargs = kwargs | {"device": "cpu"}
    if func is aten.copy_.default:
        on_device = isinstance(args[0], DeviceTensor)
    result = func(*tree_map(_to_cpu, args), **tree_map(_to_cpu, kwargs))
    if not on_device:
        return result
    result = tree_map(lambda t: DeviceTensor(t) if isinstance(t, Tensor) else t, result)
    return return_and_correct_aliasing(func, args, kwargs, result)


def _refuse_two_devices(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    """Raise if an operation mixes devices. Single numbers and indices may be on the CPU."""
    seen = (args[0], args[2:], kwargs) if func in INDEXING else (args, kwargs)
    tensors = [leaf for leaf in tree_leaves(seen) if isinstance(leaf, Tensor)]
    mixed = any(isinstance(t, DeviceTensor) for t in tensors) and any(
        not isinstance(t, DeviceTensor) and t.dim() for t in tensors
    )
    if mixed and func not in CROSSING:
        msg = f"{func}: expected all tensors to be on the same device, but found two: {DEVICE} and cpu"
        raise RuntimeError(msg)


def _list_to_tensor(part: Any) -> Any:
    """A list among indices: torch would make a tensor of it on the device, past every mode."""
    return torch.tensor(part, dtype=torch.int64 if not part else None) if isinstance(part, list) else part


def _to_cpu(leaf: Any) -> Any:
    return leaf.cpu_tensor if isinstance(leaf, DeviceTensor) else leaf
