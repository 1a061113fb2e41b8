"""Recording a model: the ways in which it can call attention, one file each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from regard.capture._generate import generating
from regard.capture._hugging_face import hugging_face
from regard.capture._masks import MaskReader
from regard.capture._multihead import MultiheadRoute
from regard.capture._refuse import nothing_seen, refuse_compiled
from regard.capture._regard import returned_weights
from regard.capture._sdpa import SdpaMode
from regard.capture._watch import Wanted, Watch
from regard.recording import Recording

__all__ = ["record"]


@contextmanager
def record(
    model: nn.Module,
    *,
    layers: str | Sequence[str] | None = None,
    heads: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
) -> Iterator[Recording]:
    """Record what every attention layer of a model attends to, while the model runs as it always does."""
    refuse_compiled(model)
    recording = Recording()
    wanted = Wanted(
        (layers,) if isinstance(layers, str) else None if layers is None else tuple(layers),
        None if heads is None else tuple(heads),
        None if steps is None else tuple(steps),
    )
    watch = Watch(model, wanted, dtype, recording.calls.append, recording.given)
    reader = MaskReader()
    MultiheadRoute(watch, reader)
    returned_weights(watch)
    mode = SdpaMode(watch, reader)
    with ExitStack() as stack:
        stack.enter_context(watch.wrapped())
        stack.enter_context(generating(watch))
        stack.enter_context(hugging_face(watch, mode, reader))
        stack.enter_context(mode)
        yield recording
    if watch.failure is not None:
        raise watch.failure
    if not recording.calls:
        raise nothing_seen(watch)
