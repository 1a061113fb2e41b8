"""Whether numbers can be looked at."""

import torch
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]


def traced() -> bool:
    """Whether they cannot: under torch.compile, export, vmap or another function transform."""
    return torch.compiler.is_compiling() or _functorch.peek_interpreter_stack() is not None
