"""What every head of a recording does, found out once and in pieces."""

from __future__ import annotations

import asyncio
import glob
import time
from typing import Any

from regard.web.api.map_cache import LOOKED_AWAY
from regard.web.api.registry import Shelved
from regard.web.server.priority import TURNS
from regard.web.server.workers import Job, Workshop

NAMES = {"first": "sink", "itself": "self"}  # as the page calls them
MEASURES = ("entropy", "saturation", "distance", "first", "previous", "itself", "separators")
SEPARATORS = frozenset(
    (*".,;:!?。，；：！？、\n", "[SEP]", "[CLS]", "<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>", "<|endoftext|>")
)


class Profiles:
    """Rows (entry, head, measures) of one recording, and how much of it is done."""

    def __init__(self, shelved: Shelved, work: Workshop) -> None:
        self._shelved, self._work = shelved, work
        self._entries = list(shelved.entries)
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._asked = 0.0
        self._job: Job[None] | None = None
        self._error: Exception | None = None

    @property
    def progress(self) -> float:
        total = sum(_cells(entry) for entry in self._entries)
        return sum(_cells(self._entries[number]) for number in self._rows) / total if total else 1.0

    @property
    def ready(self) -> bool:
        return len(self._rows) == len(self._entries)

    def rows(self) -> list[dict[str, Any]]:
        return [row for number in sorted(self._rows) for row in self._rows[number]]

    def answer(self) -> dict[str, Any]:
        """An error is raised where somebody asks."""
        if self._error is not None:
            raise self._error
        return {"progress": 1.0, "rows": self.rows()} if self.ready else {"progress": self.progress}

    def go_on(self) -> None:
        """Somebody asks: begin, or go on where it was left."""
        self._asked = time.monotonic()
        self._entries = list(self._shelved.entries)  # somebody may still write the file
        if not self.ready and self._error is None and (self._job is None or self._job.future.done()):
            self._job = self._work.behind.start(self._run)

    async def wait(self, seconds: float) -> None:
        """For an answer that is soon there."""
        if self._job is not None:
            await asyncio.wait({asyncio.wrap_future(self._job.future)}, timeout=seconds)

    def _run(self, job: Job[None]) -> None:
        for number, entry in enumerate(self._entries):
            if job.cancelled() or time.monotonic() - self._asked > LOOKED_AWAY:
                return
            if number not in self._rows:
                try:
                    self._rows[number] = self._of(number, entry)
                except Exception as error:  # noqa: BLE001  told to whoever asks
                    self._error = error
                    return
                TURNS.give_way()

    def _of(self, number: int, entry: Any) -> list[dict[str, Any]]:
        from regard import analysis

        recording = self._shelved.recording
        texts = {text for rows in recording.tokens.get(entry.step, {}).values() for row in rows for text in row}
        marks = sorted(text for text in texts if text in SEPARATORS or text.strip() in SEPARATORS) or None
        table = analysis.profiles(recording, layers=glob.escape(entry.name), step=entry.step, separators=marks)
        return [
            {"entry": number, "head": row.head, **{NAMES.get(name, name): getattr(row, name) for name in MEASURES}}
            for row in table
        ]


def _cells(entry: Any) -> int:
    count = 1
    for length in entry.shape:
        count *= max(1, length)
    return count
