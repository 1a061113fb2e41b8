"""Recording a model: the ways in which it can call attention, one file each."""

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
from regard.capture._observer import Wanted, Watch
from regard.capture._returned_weights import returned_weights
from regard.capture._sdpa import SdpaMode
from regard.capture._unsupported import compiled_meanwhile, nothing_seen, refuse_compiled, refuse_wrong_kinds
from regard.recording import Recording
from regard.recording._sink import InMemory, ToFile

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
    """Record what every attention layer of a model attends to, while the model runs as it always does.

    With a `path`, every call is in that file before the model goes on, and memory holds none of them.
    layers: names or patterns with * and ?. heads, steps: numbers from 0. What none of them names is not kept.
    dtype: of the queries and keys that are kept, the model's own if left out; float16 halves float32.
    tokenizer: turns token ids into texts. about: more to remember than the model's class, such as {"from": "minilm"}.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> recording["self_attn"].shape  # (batch, heads, queries, keys)
    torch.Size([3, 2, 5, 5])
    """
    refuse_wrong_kinds(model, dtype)
    refuse_compiled(model)
    wanted = Wanted(_tuple(layers), _tuple(heads), _tuple(steps))
    says = {"model": type(model).__name__, **(about or {})}
    keeper = InMemory(tokenizer, says) if path is None else ToFile(path, tokenizer, says)
    with closing(keeper):  # whatever happens, an interrupt included
        watch = Watch(model, wanted, dtype, keeper.take, keeper.given)
        with _watching(watch):
            yield keeper.recording
    failure = compiled_meanwhile(watch) or watch.failure or keeper.failure
    if failure is not None:
        raise failure
    if not keeper.recording.entries:
        raise nothing_seen(watch)


@contextmanager
def _watching(watch: Watch) -> Iterator[None]:
    """Every way in which the model can call attention is watched."""
    reader = MaskReader()
    MultiheadRoute(watch, reader)
    returned_weights(watch)
    mode = SdpaMode(watch, reader)
    with ExitStack() as stack:
        stack.enter_context(watch.wrapped())
        stack.enter_context(generating(watch))
        stack.enter_context(hugging_face(watch, mode, reader))
        stack.enter_context(mode)
        yield


def _tuple(wanted: T | Sequence[T] | None) -> tuple[T, ...] | None:
    if wanted is None:
        return None
    return (wanted,) if isinstance(wanted, str | int) else tuple(wanted)  # pyright: ignore[reportReturnType, reportArgumentType]
