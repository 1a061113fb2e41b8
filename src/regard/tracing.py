"""Torch's modes around a call: tracing and function transforms, where values cannot be read, and autocast."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import NoReturn

import torch
from torch import Tensor
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch.autograd import forward_ad

from regard.errors import TracingError


def is_tracing() -> bool:
    """True under torch.compile, export, vmap or another transform, where Python cannot look at tensor values."""
    return torch.compiler.is_compiling() or is_transforming()


def is_transforming() -> bool:
    """True under vmap, another function transform or forward-mode derivatives: only plain operations work there."""
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]


def refuse_script(*_: object) -> NoReturn:
    """Raise TracingError: torch.jit.script calls this as `__prepare_scriptable__` of what it is about to compile."""
    raise TracingError(
        "torch.jit.script cannot compile regard's attention, which chooses a plan in Python; use torch.compile or "
        "torch.export, which can"
    )


def check_known_sizes(name: str, tensor: Tensor) -> None:
    """Raise TracingError while exporting if a size of a tensor follows from numbers that nobody can see then."""
    if not torch.compiler.is_exporting() or torch.compiler.is_dynamo_compiling():  # dynamo says it itself
        return
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if free_unbacked_symbols(tensor.shape):
        raise TracingError(
            f"{name} has the shape {tuple(tensor.shape)}, of which a size depends on the numbers in a tensor; "
            "attention is planned by its sizes, so torch.export needs sizes that it knows: pad to one, and "
            "hide the rest with masks.padding(lengths); or give bounds with torch._check(size >= 2) and export with "
            "strict=True"
        )


def without_autocast() -> AbstractContextManager[object]:
    """A context in which autocast is off: regard chooses the dtypes itself, and float32 stays float32."""
    if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
        return nullcontext()
    stack = ExitStack()
    for device in ("cpu", "cuda"):
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack
