"""Recording a running model: one file for each route by which a model can call attention."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

from regard.capture._attend import observe_attend
from regard.capture._attend import returned_weights as returned_weights  # for regard.analysis
from regard.capture._generate import observe_generate
from regard.capture._hugging_face import hugging_face
from regard.capture._hugging_face import is_hugging_face as is_hugging_face  # for regard.analysis
from regard.capture._mask_reader import MaskReader
from regard.capture._multihead import MultiheadRoute
from regard.capture._observer import Observer, Selection
from regard.capture._output_check import OutputCheck
from regard.capture._patching import unwrapped as unwrapped  # for regard.analysis
from regard.capture._sdpa import SdpaRoute
from regard.capture._torch_functions import FunctionRoutes, observe_functions
from regard.capture._unsupported import (
    check_not_compiled,
    check_types,
    compiled_error,
    nothing_recorded_error,
    warn_of_missing,
)
from regard.capture._written_out import WrittenOutAttention
from regard.recording import FileSink, MemorySink, Recording

__all__ = ["record"]

T = TypeVar("T")


@contextmanager
def record(
    model: nn.Module,
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
    steps: int | Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    path: str | os.PathLike[str] | None = None,
    tokenizer: Any = None,
    about: Mapping[str, str] | None = None,
    check: str = "first",
) -> Iterator[Recording]:
    """Record the attention of every layer of a model while it runs inside a ``with`` block.

    The recording keeps queries, keys and masks, not weights: O(n d) numbers for n tokens. The model's output does not
    change. Layers are observed that call attention through Hugging Face's attention interface, through
    `torch.nn.functional.scaled_dot_product_attention`, through `torch.nn.MultiheadAttention`, or through
    `regard.attend`, as those of `regard.nn` do. All forward passes of one `generate()` with a cache are one step.

    What is recorded is compared with the model: in random rows, weights @ values must be the output that it computed.
    A layer for which that does not hold, or whose attention cannot be observed, is left out, with a warning, and named
    in `recording.missing`. If nothing remains, a RecordError says why at the end of the block.

    layers: module names or patterns with * and ?. heads, steps: numbers from 0. Only what they choose is kept; None
    chooses all. dtype: of the queries and keys that are kept, the model's own if None; float16 halves float32.
    path: a file to which every call is written before the model goes on, so that memory holds none of them.
    tokenizer: turns token ids into texts. about: notes to keep beside the model's class, such as {"from": "minilm"}.
    check: which calls are compared with the model's output: the "first" of each layer and kind, "all" or "none".

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> recording["self_attn"].shape  # (batch, heads, queries, keys)
    torch.Size([3, 2, 5, 5])
    """
    check_types(model, dtype)
    check_not_compiled(model)
    output_check = OutputCheck(check)
    selection = Selection(_tuple(layers), _tuple(heads), _tuple(steps))
    notes = {"model": type(model).__name__, **(about or {})}
    sink = MemorySink(tokenizer, notes) if path is None else FileSink(path, tokenizer, notes)
    with closing(sink):  # also after an interrupt
        observer = Observer(model, selection, dtype, output_check, sink)
        with _observing(observer):
            yield sink.recording
    failure = compiled_error(observer) or observer.failure or sink.failure
    if failure is not None:
        raise failure
    if not sink.recording.entries:
        raise nothing_recorded_error(observer, sink.recording.missing)
    warn_of_missing(sink.recording.missing)


@contextmanager
def _observing(observer: Observer) -> Iterator[None]:
    """Observe every route by which the model can call attention."""
    reader = MaskReader()
    observer.on_pass.append(reader.forget)
    multihead = MultiheadRoute(observer, reader)
    functions = FunctionRoutes(
        SdpaRoute(observer, reader).observe,
        multihead.function,
        WrittenOutAttention(observer).observe,
        observer.is_outside,
    )
    with ExitStack() as stack:
        stack.enter_context(multihead.observing())  # first: it changes a class whose methods the next one wraps
        stack.enter_context(observer.observing())
        stack.enter_context(observe_generate(observer))
        stack.enter_context(observe_attend(observer))
        stack.enter_context(hugging_face(observer, reader))
        stack.enter_context(observe_functions(functions))
        yield


def _tuple(chosen: T | Sequence[T] | None) -> tuple[T, ...] | None:
    if chosen is None:
        return None
    return (chosen,) if isinstance(chosen, str | int) else tuple(chosen)  # pyright: ignore[reportReturnType, reportArgumentType]
