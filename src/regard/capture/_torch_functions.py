"""Functions of torch that a running model calls, observed through one torch function mode for each thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from regard.engine.fused.kernel import flash
from regard.torch_compat.sdpa import Arguments

FLASH = 1  # torch's number for the kernel that never builds n x m
ATEN_SDPA = torch.ops.aten.scaled_dot_product_attention
SDPA = frozenset((scaled_dot_product_attention, ATEN_SDPA, ATEN_SDPA.default))

_current = local()  # .mode: the mode of a thread that records


class FunctionRoutes(NamedTuple):
    """Functions of one recording that are given each call: of sdpa, of multi-head attention, and of others."""

    sdpa: Callable[[Arguments, Tensor, Tensor | None], None]
    multihead: Callable[[tuple[Any, ...], dict[str, Any], Any], None]
    other: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]
    compiling: Callable[[], object]  # attention is being compiled, and will not be seen when it runs


class FunctionMode(TorchFunctionMode):
    """A torch function mode that lets every function run as it does, and reports it to all recordings of a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.routes: list[FunctionRoutes] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if torch.compiler.is_compiling():  # nothing is computed yet, and a compiler cannot follow what we would do
            if func in SDPA or func is multi_head_attention_forward:
                for route in self.routes:
                    route.compiling()
            return func(*args, **options)
        if func in SDPA:
            call = Arguments(*args, **options)
            call = call.autocast() if _has_plain_tensors(call) else call
            output, lse = _flash(call) or (func(*args, **options), None)
            for route in tuple(self.routes):
                route.sdpa(call, output, lse)
            return output
        output = func(*args, **options)
        for route in tuple(self.routes):
            if func is multi_head_attention_forward:
                route.multihead(args, options, output)
            else:
                route.other(func, args, options, output)
        return output


@contextmanager
def observe_functions(route: FunctionRoutes) -> Iterator[None]:
    """Report the functions that this thread calls. Recordings share one mode, so that they may end in any order.

    One that ends in another thread leaves the mode where it is, with nothing to report to; the next one takes it.
    """
    mode: FunctionMode | None = getattr(_current, "mode", None)
    if mode is None:
        mode = _current.mode = FunctionMode()
        mode.__enter__()
    mode.routes.append(route)
    try:
        yield
    finally:
        mode.routes.remove(route)
        if not mode.routes and getattr(_current, "mode", None) is mode:
            _current.mode = None
            _remove(mode)


def not_observed() -> AbstractContextManager[object]:
    """Let a call that no recording observes run as without one: torch's layers look for torch function modes."""
    alone = getattr(_current, "mode", None) is not None and torch._C._len_torch_function_stack() == 1  # noqa: SLF001
    return torch._C.DisableTorchFunction() if alone else nullcontext()  # noqa: SLF001


def _remove(mode: FunctionMode) -> None:
    """Take a mode off this thread's stack. Modes that were put on it later, and have not ended, stay."""
    above: list[TorchFunctionMode] = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        _push_mode(other)


def _flash(call: Arguments) -> tuple[Tensor, Float[Tensor, "batch heads queries"]] | None:
    """Output and log-sum-exp of each row from the kernel that torch would choose; None if another one serves the call.

    Then the model's own call goes on as it is: a mode around this one, or a class of tensors, may read its arguments.
    """
    query, key, value, mask = call.tensors
    others = torch._C._len_torch_function_stack()  # noqa: SLF001  modes around this one want to see the call too
    if others or not _has_plain_tensors(call) or query.device.type != "cpu" or query.dim() != 4 or call.dropout_p:
        return None
    if torch._fused_sdp_choice(*call.tensors, **call.options) != FLASH:  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
        return None
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, -torch.inf)
    return flash(query, key, value, 0.0, call.is_causal, attn_mask=mask, scale=call.scale)


def _has_plain_tensors(call: Arguments) -> bool:
    """False if a tensor is of a class of its own, which may have its own idea of the function."""
    return all(type(tensor) in (Tensor, torch.nn.Parameter, type(None)) for tensor in call.tensors)
