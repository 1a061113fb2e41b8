"""The calls of a file, in their order: found at once, loaded when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from torch import Tensor

from regard.errors import RecordingFileError, RegardError
from regard.recording._call import Call
from regard.recording._codec import StoredCall, unpack_about, unpack_ids, unpack_texts
from regard.recording._reader import Group, Reader


class Shelf:
    """What a reader's groups are."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._read = 0  # groups that are understood so far
        self._calls: list[StoredCall] = []
        self._given: dict[int, Group] = {}  # the latest for a step is the longest
        self._about: dict[str, str] = {}
        self._broken: list[str] = []
        self._odd: list[str] = []  # sound, and yet not what a recording says

    def refresh(self) -> int:
        before = len(self.calls)
        self.reader.refresh()
        return len(self.calls) - before

    @property
    def calls(self) -> list[StoredCall]:
        self._understand()
        return self._calls

    @property
    def broken(self) -> list[str]:
        """Groups of which nobody knows what they were."""
        self._understand()
        return [*self._broken, *self._odd]

    def _understand(self) -> None:
        while self._read < len(self.reader):
            group = self.reader.group(self._read)
            self._read += 1
            try:
                self._take(group)
            except (RecordingFileError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                self._odd.append(
                    f"chunk {group.chunk} of {self.reader.path} does not say what a recording says ({error})"
                )

    def _take(self, group: Group) -> None:
        if group.broken is not None:
            self._broken.append(group.broken)
        elif group.meta.get("what") == "call":
            self._calls.append(StoredCall(group, self.reader.array))
        elif group.meta.get("what") == "inputs":
            self._given[int(group.meta["step"])] = group
        elif group.meta.get("what") == "about":
            self._about = unpack_about(group)
        # Anything else was written by a newer regard, for newer questions.

    @property
    def about(self) -> dict[str, str]:
        self._understand()
        return self._about

    @property
    def inputs(self) -> dict[int, dict[str, Tensor]]:
        self._understand()
        return {step: self._of(group, unpack_ids) for step, group in self._given.items()}

    @property
    def tokens(self) -> dict[int, dict[str, list[list[str]]]]:
        self._understand()
        found = {step: self._of(group, unpack_texts) for step, group in self._given.items()}
        return {step: texts for step, texts in found.items() if texts}

    def _of(self, group: Group, unpack: Any) -> Any:
        try:
            return unpack(group, self.reader.array)
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            message = f"chunk {group.chunk} of {self.reader.path} does not say what the model was given ({error!r})"
            raise RecordingFileError(message) from error

    def damage(self, *, every_byte: bool) -> list[str]:
        self._understand()
        return [*self.reader.damage(every_byte=every_byte), *self._odd]


class Loaded(Sequence[Call]):
    """Calls of a file, each loaded when it is asked for."""

    def __init__(self, stored: Sequence[StoredCall]) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return len(self._stored)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | Sequence[Call]:
        return Loaded(self._stored[index]) if isinstance(index, slice) else self._stored[index].load()
