"""A model reads a text and is recorded, with a moving line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.capture import record as recording
from regard.cli import _progress
from regard.cli._progress import Step
from regard.recording import open as open_recording

LOOK = 0.2  # seconds between two looks at the file


class Given(NamedTuple):
    """A model and what it is to read."""

    name: str
    tokenizer: Any
    model: Any
    inputs: dict[str, Any]  # input_ids and attention_mask, (1, tokens)

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[-1]


def run(given: Given, out: Path, options: dict[str, Any], generate: int, *, force: bool) -> str | None:
    """Record; returns what the model wrote, if it was asked to write."""
    if options["dtype"] is not None:
        options["dtype"] = getattr(torch, options["dtype"])
    about = {"from": given.name}
    total = generate or (None if options["layers"] else getattr(given.model.config, "num_hidden_layers", None))
    with ExitStack() as stack:
        path = stack.enter_context(_placed(out, force=force))
        line = stack.enter_context(_progress.step(f"recording {given.length:,} tokens", total))
        stack.enter_context(torch.no_grad())
        stack.enter_context(recording(given.model, path=path, tokenizer=given.tokenizer, about=about, **options))
        if generate:
            return _write(given, generate, line)
        stack.enter_context(_followed(path, line))
        given.model(**given.inputs)
    return None


def _write(given: Given, count: int, line: Step) -> str:
    new = {"max_new_tokens": count, "do_sample": False, "num_beams": 1, "streamer": Counter(line)}
    ids = given.model.generate(**given.inputs, **new)
    start = 0 if given.model.config.is_encoder_decoder else given.length
    return given.tokenizer.decode(ids[0, start:], skip_special_tokens=True)


class Counter:
    """What `generate` tells of each token."""

    def __init__(self, line: Step) -> None:
        self._line, self._prompt = line, True

    def put(self, value: Any) -> None:
        self._line.advance(0 if self._prompt else 1)
        self._prompt = False

    def end(self) -> None:
        """There is nothing to close."""


@contextmanager
def _placed(out: Path, *, force: bool) -> Iterator[Path]:
    """Where to record. What is there already stays until something was recorded, and then makes room for it."""
    if not (force and out.exists()):
        yield out
        return
    target = Path(os.path.realpath(out))
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield beside
    finally:
        if beside.exists():  # a recording without a call leaves no file
            beside.replace(target)


@contextmanager
def _followed(path: Path, line: Step) -> Iterator[None]:
    """Count the layers as they reach the file, by a second reader of it."""
    if not line.shown:
        yield
        return
    done = threading.Event()

    def look() -> None:
        reading = open_recording(path)
        line.advance(len(reading.entries))
        while not done.wait(LOOK):
            line.advance(reading.refresh())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()
