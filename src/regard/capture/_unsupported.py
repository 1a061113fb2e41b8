"""Models and calls that cannot be recorded, and the errors that say why."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import nn

from regard.capture._observer import Observer, shortlist
from regard.errors import DtypeError, IncompleteRecordingWarning, RecordError


def check_types(model: object, dtype: object) -> None:
    """Refuse what is no torch module, and a dtype that cannot hold queries and keys."""
    if not isinstance(model, nn.Module):
        raise RecordError(f"record(model) takes a torch module, and this is {type(model).__name__}: {str(model)[:40]}")
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise DtypeError(f"dtype={dtype!r} cannot hold queries and keys: torch.float16 and torch.bfloat16 are smaller")


def check_not_compiled(model: nn.Module) -> None:
    """Refuse compiled and scripted models, which run no Python that could be observed."""
    for name, module in model.named_modules():
        where = f"{name!r} of this model" if name else "this model"
        if _is_compiled(module):
            raise RecordError(
                f"{where} is compiled by torch.compile, which leaves no call to watch: "
                f"record the model as it was before (its `_orig_mod`), and compile it again afterwards"
            )
        if isinstance(module, torch.jit.ScriptModule):
            raise RecordError(f"{where} is a TorchScript module, whose calls cannot be watched: record the original")


def _is_compiled(module: nn.Module) -> bool:
    return (
        type(module).__name__ == "OptimizedModule"
        or getattr(module, "_compiled_call_impl", None) is not None
        or hasattr(module.forward, "_torchdynamo_orig_callable")
    )


def compiled_error(observer: Observer) -> RecordError | None:
    """The error for a model that was compiled after the recording had begun, or None."""
    if not observer.compiled:
        return None
    return RecordError(
        f"{type(observer.model).__name__} was run through torch.compile while it was recorded, or attends in a "
        f"function that is (flex_attention compiles itself), which leaves no call to watch: run the model itself in "
        f"`with record(model)`, and its functions as they were before"
    )


def nothing_recorded_error(observer: Observer, missing: Sequence[tuple[str, str]]) -> RecordError:
    """The error for a recording without a call: why it is empty."""
    kind = type(observer.model).__name__
    if observer.passes == 0:
        return RecordError(f"nothing was recorded: {kind} did not run inside `with record(model)`")
    if missing:
        return RecordError(f"nothing was recorded: {kind} ran, but {_reasons(missing)}")
    if observer.seen:
        return RecordError(
            f"nothing was recorded: {kind} called attention {sum(observer.seen.values())} times, and "
            f"layers={observer.selection.layers}, steps={observer.selection.steps} chose none of them: it was called "
            f"in {shortlist(list(observer.seen))}, in steps 0 to {observer.step}"
        )
    return RecordError(
        f"nothing was recorded: {kind} ran, but called attention in no way that can be watched: not through Hugging "
        f"Face's attention interface, scaled_dot_product_attention, nn.MultiheadAttention or rg.attend"
    )


def warn_of_missing(missing: Sequence[tuple[str, str]]) -> None:
    """Warn that layers are not in the recording, with the first reasons."""
    if missing:
        text = f"the recording is not complete, see recording.missing: {_reasons(missing)}"
        warnings.warn(text, IncompleteRecordingWarning, stacklevel=4)  # the caller's `with`


def _reasons(missing: Sequence[tuple[str, str]]) -> str:
    """The reasons, each with the layers that it is true of."""
    layers: dict[str, list[str]] = {}
    for name, reason in missing:
        layers.setdefault(reason, []).append(name)
    listed = [f"of {shortlist(names)}: {reason}" for reason, names in layers.items()]
    more = f"; and {len(listed) - 3} more reasons" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more
