"""The modes around a call: whether numbers can be looked at, and who decides about dtypes."""

from contextlib import AbstractContextManager, ExitStack, nullcontext

import torch
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch.autograd import forward_ad


def traced() -> bool:
    """Whether they cannot: under torch.compile, export, vmap or another function transform."""
    return torch.compiler.is_compiling() or transformed()


def transformed() -> bool:
    """Whether plain operations alone will do: under a function transform, or where forward derivatives are taken."""
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


def plain_dtypes() -> AbstractContextManager[object]:
    """Dtypes are decided by regard and not by autocast: float32 stays float32."""
    if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
        return nullcontext()
    stack = ExitStack()
    for device in ("cpu", "cuda"):
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack
