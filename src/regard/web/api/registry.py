"""The recordings that are served, by ids that the server makes: no path comes from a client."""

from __future__ import annotations

import hashlib
import math
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.recording import TokenAxis
from regard.web.server.errors import ApiError

Texts = dict[int, dict[str, list[list[str]]]]  # step -> input -> sequence -> tokens
MAX_LAB_RECORDINGS = 8  # recordings made in the lab; a new one deletes the oldest


class RegisteredRecording:
    """One recording with its id, its display name and the texts of its tokens.

    temporary: the file of a recording that the lab made, which is deleted with it. texts: those of tokens that the
    recording itself does not know.
    """

    def __init__(self, recording: Any, name: str, temporary: Path | None = None, texts: Texts | None = None) -> None:
        self.id: str = _recording_id(recording.path, temporary)
        self.recording: Any = recording
        self.name: str = name
        self.temporary = temporary
        self._given_texts = texts or {}
        self._lock = threading.Lock()

    @property
    def entries(self) -> Sequence[Any]:
        """All calls, with those that were written since the file was opened."""
        with self._lock:
            self.recording.refresh()
            return list(self.recording.entries)

    def entry(self, number: int) -> Any:
        entries = self.recording.entries
        if number >= len(entries):
            raise ApiError(404, f"{self.id} has entries 0 to {len(entries) - 1}, and not {number}")
        return entries[number]

    def summary(self) -> dict[str, Any]:
        """One row in the list of recordings."""
        entries = self.entries
        return {
            "id": self.id,
            "name": self.name,
            "model": self.recording.about.get("from") or self.recording.about.get("model"),
            "tokens": max((entry.shape[-1] for entry in entries), default=0),
            "layers": len({entry.name for entry in entries}),
            "heads": max((batch_and_heads(entry.shape)[1] for entry in entries), default=0),
        }

    def metadata(self) -> dict[str, Any]:
        """The summary, all calls, the texts of all tokens, and the layers that are missing."""
        entries, texts = self.entries, self._texts()
        return {
            **self.summary(),
            "entries": [
                {
                    "entry": number,
                    "layer": entry.name,
                    "step": entry.step,
                    "shape": [*batch_and_heads(entry.shape), *entry.shape[-2:]],
                    "cross": entry.cross,
                    "mask": entry.mask,
                    "heads": None if entry.heads is None else list(entry.heads),
                    "bytes": entry.bytes,
                    "queries": _input_name(texts, entry, entry.shape[-2], keys=False),
                    "keys": _input_name(texts, entry, entry.shape[-1], keys=True),
                }
                for number, entry in enumerate(entries)
            ],
            "tokens": {str(step): inputs for step, inputs in texts.items()},
            "missing": [{"layer": name, "reason": reason} for name, reason in self.recording.missing],
        }

    def _texts(self) -> Texts:
        """Texts of the tokens by step and input; their ids where no tokenizer was given."""
        texts = {step: dict(inputs) for step, inputs in (self._given_texts or self.recording.tokens).items()}
        for step, inputs in self.recording.inputs.items():
            for name, ids in inputs.items():
                of_step = texts.setdefault(step, {})
                if name not in of_step:
                    of_step[name] = [[str(number) for number in row] for row in ids.tolist()]
        return texts


class RecordingRegistry:
    """Recordings by id, and the folder of those that the lab makes."""

    def __init__(self) -> None:
        self._recordings: dict[str, RegisteredRecording] = {}
        self._lock = threading.Lock()
        self._folder: Path | None = None

    def new_file(self) -> Path:
        """A path for a recording that the lab is about to make."""
        with self._lock:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="regard-"))
        return self._folder / f"{secrets.token_hex(8)}.regard"

    def add(
        self, recording: Any, name: str, temporary: Path | None = None, texts: Texts | None = None
    ) -> RegisteredRecording:
        """Register a recording; see `RegisteredRecording`. The oldest beyond MAX_LAB_RECORDINGS is deleted."""
        new = RegisteredRecording(recording, name, temporary, texts)
        with self._lock:
            self._recordings[new.id] = new
            of_lab = [registered for registered in self._recordings.values() if registered.temporary is not None]
            for old in of_lab[:-MAX_LAB_RECORDINGS]:
                del self._recordings[old.id]
                if old.temporary is not None:
                    old.temporary.unlink(missing_ok=True)
        return new

    def get(self, id: str) -> RegisteredRecording:  # noqa: A002  as the wire calls it
        """The recording with this id, or 404."""
        registered = self._recordings.get(id)
        if registered is None:
            raise ApiError(404, "there is no such recording")
        return registered

    def __iter__(self) -> Iterator[RegisteredRecording]:
        return iter(list(self._recordings.values()))

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def batch_and_heads(shape: Sequence[int]) -> tuple[int, int]:
    """(batch, heads) of (..., n, m): heads are the last leading dimension where there are two or more."""
    *before, last = (1, 1, *shape[:-2]) if len(shape) < 4 else shape[:-2]
    return (last, 1) if len(shape) == 3 else (math.prod(before), last)


def _recording_id(path: Path | None, temporary: Path | None) -> str:
    """An id that is stable for one unchanged file, so that a shared address works again, and unique otherwise.

    Browsers cache tiles under it, so two recordings never share one.
    """
    if path is None or temporary is not None:
        return secrets.token_hex(6)
    status = path.resolve().stat()
    return hashlib.sha256(f"{path.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]


def _input_name(texts: Texts, entry: Any, count: int, *, keys: bool) -> str | None:
    """The model input whose tokens are an entry's queries or keys: the first with as many tokens, or None."""
    inputs = texts.get(entry.step, {})
    names = TokenAxis(entry.name, entry.step, count, entry.cross, keys).input_names
    return next((name for name in names if any(len(row) == count for row in inputs.get(name, []))), None)
