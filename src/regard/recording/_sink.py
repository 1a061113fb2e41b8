"""Sinks for the calls of a running model: memory, or a file that is written call by call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from regard.errors import RecordError, RegardError, StorageError
from regard.recording._call import Call
from regard.recording._codec import pack_about, pack_call, pack_inputs, pack_missing
from regard.recording._reader import Reader
from regard.recording._recording import Inputs, Recording, append_inputs, with_unique_name
from regard.recording._tokens import texts_of
from regard.recording._writer import Writer


class MemorySink:
    """Keeps the calls of a running model in memory."""

    failure: RegardError | None = None

    def __init__(self, tokenizer: Any = None, about: Mapping[str, str] | None = None) -> None:
        self.recording: Recording = Recording(tokenizer=tokenizer, about=about)
        self.take: Callable[[Call], None] = self.recording.take
        self.add_inputs: Callable[[int, Inputs], None] = self.recording.add_inputs
        self.miss: Callable[[str, str], None] = self.recording.miss

    def close(self) -> None:
        """Do nothing: no file is open."""


class FileSink:
    """Writes each call of a running model to a file before the model goes on. A failure is kept, not raised."""

    def __init__(
        self, path: str | os.PathLike[str], tokenizer: Any = None, about: Mapping[str, str] | None = None
    ) -> None:
        self.failure: RegardError | None = None
        self._tokenizer = tokenizer
        self._about = dict(about or {})
        self._writer = Writer(path)
        self.recording: Recording = Recording(reader=Reader(path))
        self._inputs: dict[int, Inputs] = {}
        self._unwritten: set[int] = set()  # steps whose inputs have grown since they were written

    def add_inputs(self, step: int, tensors: Inputs) -> None:
        """Append token ids that the model read in a step; they are written before the next call."""
        append_inputs(self._inputs.setdefault(step, {}), tensors)
        self._unwritten.add(step)

    def take(self, call: Call) -> None:
        """Write one call, after the inputs of its step."""

        def write() -> None:
            self._write_inputs(call.step)
            self._writer.append(*pack_call(with_unique_name(call, self.recording.entries)))

        self._keep_failure(call.name, write)

    def miss(self, name: str, reason: str) -> None:
        """Write that a layer ran but was left out; the same pair is written once."""
        if (name, reason) not in self.recording.missing:
            self._keep_failure(name, lambda: self._writer.append(*pack_missing(name, reason)))

    def _keep_failure(self, name: str, write: Callable[[], None]) -> None:
        """Write something about a layer, behind the notes. The first failure is kept, and nothing is written after."""
        if self.failure is not None:
            return
        try:
            self._write_about()
            write()
            self.recording.refresh()
        except StorageError as failure:
            self.failure = self._with_what_is_kept(failure)
        except RegardError as failure:
            self.failure = failure
        except Exception as error:  # noqa: BLE001  a tokenizer of somebody's may raise anything
            self.failure = RecordError(f"{name!r} could not be written to {self._writer.path}: {error!r}")

    def _write_about(self) -> None:
        if self._about:
            self._writer.append(*pack_about(self._about))
            self._about = {}

    def _write_inputs(self, step: int) -> None:
        if step in self._unwritten:
            ids = self._inputs[step]
            texts = {} if self._tokenizer is None else texts_of(ids, self._tokenizer)
            self._writer.append(*pack_inputs(step, ids, texts))
            self._unwritten.remove(step)

    def _with_what_is_kept(self, failure: StorageError) -> StorageError:
        """The failure, with how many calls are in the file; a file without a call is deleted by `close`."""
        count = len(self.recording.entries)
        kept = f"the {count} calls before it are" if count > 1 else "the call before it is"
        error = StorageError(
            f"{failure}; {f'{kept} safe' if count else 'no call was recorded, and the file is removed'}"
        )
        error.__cause__ = failure.__cause__
        return error

    def close(self) -> None:
        """End the file. A file without a call is deleted."""
        try:
            if self.failure is None and self.recording.entries:
                for step in sorted(self._unwritten):
                    self._write_inputs(step)
            self._writer.close()
            self.recording.refresh()
        except StorageError as failure:
            self.failure = self.failure or self._with_what_is_kept(failure)
        except RegardError as failure:
            self.failure = self.failure or failure
        if not self.recording.entries:
            self._writer.path.unlink(missing_ok=True)
