"""Index of the calls in a file, in the order in which they were written; tensors are loaded on demand."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from regard.errors import RecordingFileError, RegardError
from regard.recording._codec import StoredCall, unpack_about, unpack_ids, unpack_missing, unpack_texts
from regard.recording._reader import Group, Reader


class CallIndex:
    """The groups of a file by what they hold: calls, inputs of the model, layers that are missing, notes."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._read = 0  # groups that are indexed so far
        self._calls: list[StoredCall] = []
        self._inputs: dict[int, Group] = {}  # by step; a later one is longer and replaces it
        self._about: dict[str, str] = {}
        self._missing: dict[tuple[str, str], None] = {}  # (layer, reason), in the order in which they were written
        self._broken: list[str] = []
        self._malformed: list[str] = []  # checksums are right, and yet this is no recording

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the reader alone: a copy reads the groups anew."""
        return CallIndex, (self.reader,)

    def refresh(self) -> int:
        """Read on in a file that grows, and return the number of new calls."""
        before = len(self.calls)
        self.reader.refresh()
        return len(self.calls) - before

    @property
    def calls(self) -> list[StoredCall]:
        self._index()
        return self._calls

    @property
    def broken(self) -> list[str]:
        """A sentence for each group that cannot be read."""
        self._index()
        return [*self._broken, *self._malformed]

    def _index(self) -> None:
        while self._read < len(self.reader):
            group = self.reader.group(self._read)
            self._read += 1
            try:
                self._add(group)
            except (RecordingFileError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                self._malformed.append(
                    f"chunk {group.chunk} of {self.reader.path} does not say what a recording says ({error})"
                )

    def _add(self, group: Group) -> None:
        if group.broken is not None:
            self._broken.append(group.broken)
        elif group.meta.get("what") == "call":
            self._calls.append(StoredCall(group, self.reader.array))
        elif group.meta.get("what") == "inputs":
            self._inputs[int(group.meta["step"])] = group
        elif group.meta.get("what") == "about":
            self._about = unpack_about(group)
        elif group.meta.get("what") == "missing":
            self._missing[unpack_missing(group)] = None
        elif not isinstance(group.meta.get("what"), str):
            raise RecordingFileError("it does not say what it is")
        # Anything else was written by a newer regard, for newer questions.

    @property
    def about(self) -> dict[str, str]:
        self._index()
        return self._about

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        self._index()
        return tuple(self._missing)

    @property
    def inputs(self) -> dict[int, dict[str, Tensor]]:
        self._index()
        return {step: self._unpack(group, unpack_ids) for step, group in self._inputs.items()}

    @property
    def tokens(self) -> dict[int, dict[str, list[list[str]]]]:
        self._index()
        tokens = {step: self._unpack(group, unpack_texts) for step, group in self._inputs.items()}
        return {step: texts for step, texts in tokens.items() if texts}

    def _unpack(self, group: Group, unpack: Any) -> Any:
        try:
            return unpack(group, self.reader.array)
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            message = f"chunk {group.chunk} of {self.reader.path} does not say what the model was given ({error!r})"
            raise RecordingFileError(message) from error

    def damage(self, *, every_byte: bool) -> list[str]:
        """A sentence for each damaged chunk and for each group that is no recording's."""
        self._index()
        return [*self.reader.damage(every_byte=every_byte), *self._malformed]
