"""Torch's modes around a call: tracing and function transforms, where values cannot be read, and autocast."""

from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch.autograd import forward_ad


def is_tracing() -> bool:
    """True under torch.compile, export, vmap or another transform, where Python cannot look at tensor values."""
    return torch.compiler.is_compiling() or is_transforming()


def is_transforming() -> bool:
    """True under vmap, another function transform or forward-mode derivatives: only plain operations work there."""
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


def without_autocast() -> AbstractContextManager[object]:
    """A context in which autocast is off: regard chooses the dtypes itself, and float32 stays float32."""
    if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
        return nullcontext()
    stack = ExitStack()
    for device in ("cpu", "cuda"):
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack
