"""Recording a running model: one file for each route by which a model can call attention."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

from regard.capture._generate import generating
from regard.capture._hugging_face import hugging_face
from regard.capture._mask_reader import MaskReader
from regard.capture._multihead import MultiheadRoute
from regard.capture._observer import Observer, Selection
from regard.capture._returned_weights import observe_returned_weights
from regard.capture._returned_weights import returned_weights as returned_weights  # for regard.analysis
from regard.capture._sdpa import SdpaMode
from regard.capture._unsupported import check_not_compiled, check_types, compiled_error, nothing_recorded_error
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
) -> Iterator[Recording]:
    """Record the attention of every layer of a model while it runs inside a ``with`` block.

    The recording keeps queries, keys and masks, not weights: O(n d) numbers for n tokens. The model's output does not
    change. Layers are observed that call attention through Hugging Face's attention interface, through
    `torch.nn.functional.scaled_dot_product_attention`, through `torch.nn.MultiheadAttention`, or that return
    `regard.Weights`, as those of `regard.nn` do. All forward passes of one `generate()` with a cache are one step.

    layers: module names or patterns with * and ?. heads, steps: numbers from 0. Only what they choose is kept; None
    chooses all. dtype: of the queries and keys that are kept, the model's own if None; float16 halves float32.
    path: a file to which every call is written before the model goes on, so that memory holds none of them.
    tokenizer: turns token ids into texts. about: notes to keep beside the model's class, such as {"from": "minilm"}.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> recording["self_attn"].shape  # (batch, heads, queries, keys)
    torch.Size([3, 2, 5, 5])
    """
    check_types(model, dtype)
    check_not_compiled(model)
    selection = Selection(_tuple(layers), _tuple(heads), _tuple(steps))
    notes = {"model": type(model).__name__, **(about or {})}
    sink = MemorySink(tokenizer, notes) if path is None else FileSink(path, tokenizer, notes)
    with closing(sink):  # also after an interrupt
        observer = Observer(model, selection, dtype, sink.take, sink.given)
        with _observing(observer):
            yield sink.recording
    failure = compiled_error(observer) or observer.failure or sink.failure
    if failure is not None:
        raise failure
    if not sink.recording.entries:
        raise nothing_recorded_error(observer)


@contextmanager
def _observing(observer: Observer) -> Iterator[None]:
    """Observe every route by which the model can call attention."""
    reader = MaskReader()
    MultiheadRoute(observer, reader)
    observe_returned_weights(observer)
    mode = SdpaMode(observer, reader)
    with ExitStack() as stack:
        stack.enter_context(observer.wrapped())
        stack.enter_context(generating(observer))
        stack.enter_context(hugging_face(observer, mode, reader))
        stack.enter_context(mode)
        yield


def _tuple(chosen: T | Sequence[T] | None) -> tuple[T, ...] | None:
    if chosen is None:
        return None
    return (chosen,) if isinstance(chosen, str | int) else tuple(chosen)  # pyright: ignore[reportReturnType, reportArgumentType]
