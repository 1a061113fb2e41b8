"""The recordings that are served, by short names of our own: no path comes from a client."""

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

from regard.web.server.errors import Refusal

Texts = dict[int, dict[str, list[list[str]]]]  # step -> input -> sequence -> tokens
MOST = 8  # recordings made in the lab that are kept; the oldest goes


class Shelved:
    """One recording, and what is known of it."""

    def __init__(self, recording: Any, name: str, made: Path | None = None, texts: Texts | None = None) -> None:
        self.id, self.recording, self.name = _id(recording.path, made), recording, name
        self.made = made  # the file, if it is ours to delete
        self._given = texts or {}  # texts of tokens that the recording does not know
        self._lock = threading.Lock()

    @property
    def entries(self) -> Sequence[Any]:
        """With those that were written since, if somebody still writes the file."""
        with self._lock:
            self.recording.refresh()
            return list(self.recording.entries)

    def entry(self, number: int) -> Any:
        entries = self.recording.entries
        if number >= len(entries):
            raise Refusal(404, f"{self.id} has entries 0 to {len(entries) - 1}, and not {number}")
        return entries[number]

    def line(self) -> dict[str, Any]:
        """What the list says of it."""
        entries = self.entries
        return {
            "id": self.id,
            "name": self.name,
            "model": self.recording.about.get("from") or self.recording.about.get("model"),
            "tokens": max((entry.shape[-1] for entry in entries), default=0),
            "layers": len({entry.name for entry in entries}),
            "heads": max((lead(entry.shape)[1] for entry in entries), default=0),
        }

    def whole(self) -> dict[str, Any]:
        entries, texts = self.entries, self._texts()
        return {
            **self.line(),
            "entries": [
                {
                    "entry": number,
                    "layer": entry.name,
                    "step": entry.step,
                    "shape": [*lead(entry.shape), *entry.shape[-2:]],
                    "cross": entry.cross,
                    "mask": entry.mask,
                    "heads": None if entry.heads is None else list(entry.heads),
                    "bytes": entry.bytes,
                    "queries": _source(texts, entry, entry.shape[-2], keys=False),
                    "keys": _source(texts, entry, entry.shape[-1], keys=True),
                }
                for number, entry in enumerate(entries)
            ],
            "tokens": {str(step): found for step, found in texts.items()},
        }

    def _texts(self) -> Texts:
        """Texts of the tokens by step and input; their numbers where no tokenizer was given."""
        found = {step: dict(texts) for step, texts in (self._given or self.recording.tokens).items()}
        for step, inputs in self.recording.inputs.items():
            for name, ids in inputs.items():
                known = found.setdefault(step, {})
                if name not in known:
                    known[name] = [[str(number) for number in row] for row in ids.tolist()]
        return found


class Shelf:
    def __init__(self) -> None:
        self._all: dict[str, Shelved] = {}
        self._lock = threading.Lock()
        self._folder: Path | None = None

    def new_file(self) -> Path:
        """Where a recording that the lab makes is written."""
        with self._lock:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="regard-"))
        return self._folder / f"{secrets.token_hex(8)}.regard"

    def put(self, recording: Any, name: str, made: Path | None = None, texts: Texts | None = None) -> Shelved:
        new = Shelved(recording, name, made, texts)
        with self._lock:
            self._all[new.id] = new
            ours = [shelved for shelved in self._all.values() if shelved.made is not None]
            for old in ours[:-MOST]:
                del self._all[old.id]
                if old.made is not None:
                    old.made.unlink(missing_ok=True)
        return new

    def get(self, name: str) -> Shelved:
        found = self._all.get(name)
        if found is None:
            raise Refusal(404, "there is no such recording")
        return found

    def __iter__(self) -> Iterator[Shelved]:
        return iter(list(self._all.values()))

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def lead(shape: Sequence[int]) -> tuple[int, int]:
    """(batch, heads) of (..., n, m): heads are the last leading dimension where there are two or more."""
    *before, last = (1, 1, *shape[:-2]) if len(shape) < 4 else shape[:-2]
    return (last, 1) if len(shape) == 3 else (math.prod(before), last)


def _id(path: Path | None, made: Path | None) -> str:
    """The same for the same file, so that an address that was shared works again; never that of another.

    Browsers keep tiles under it.
    """
    if path is None or made is not None:
        return secrets.token_hex(6)
    found = path.resolve().stat()
    return hashlib.sha256(f"{path.resolve()} {found.st_size} {found.st_mtime_ns}".encode()).hexdigest()[:12]


def _source(texts: Texts, entry: Any, count: int, *, keys: bool) -> str | None:
    """Which of a step's inputs an entry's queries or keys stand for, if one has their number."""
    known = texts.get(entry.step, {})
    decoder = "decoder" in entry.name and not (keys and entry.cross)
    names = ("decoder_input_ids", "input_ids") if decoder else ("input_ids", "decoder_input_ids")
    return next((name for name in names if any(len(row) == count for row in known.get(name, []))), None)
