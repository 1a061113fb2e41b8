"""Head statistics of a recording, computed in the background, call by call."""

from __future__ import annotations

import asyncio
import glob
import math
import time
from typing import Any

from regard.web.api.map_cache import IDLE_SECONDS
from regard.web.api.registry import RegisteredRecording
from regard.web.server.priority import GATE
from regard.web.server.workers import Job, WorkerPools

WIRE_NAMES = {"first": "sink", "itself": "self"}  # measures whose name on the wire is another
SEPARATORS = frozenset(
    (*".,;:!?。，；：！？、\n", "[SEP]", "[CLS]", "<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>", "<|endoftext|>")
)


class ProfileJob:
    """The profiles of one recording, {entry, head, measures}, and how many of them are computed."""

    def __init__(self, registered: RegisteredRecording, workers: WorkerPools) -> None:
        self._registered, self._workers = registered, workers
        self._entries = list(registered.entries)
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._last_used = 0.0
        self._job: Job[None] | None = None
        self._error: Exception | None = None

    @property
    def progress(self) -> float:
        """Fraction of the recording's weights that are done."""
        total = sum(_n_weights(entry) for entry in self._entries)
        return sum(_n_weights(self._entries[number]) for number in self._rows) / total if total else 1.0

    @property
    def ready(self) -> bool:
        return len(self._rows) == len(self._entries)

    def rows(self) -> list[dict[str, Any]]:
        return [row for number in sorted(self._rows) for row in self._rows[number]]

    def answer(self) -> dict[str, Any]:
        """The progress, and the rows of measured calls; raises the error that the computation ended with."""
        if self._error is not None:
            raise self._error
        return {"progress": self.progress, "rows": self.rows()}

    def resume(self) -> None:
        """Start the computation, or continue one that stopped because nobody asked."""
        self._last_used = time.monotonic()
        self._entries = list(self._registered.entries)  # the file may still grow
        if not self.ready and self._error is None and (self._job is None or self._job.future.done()):
            self._job = self._workers.background.submit(self._run)

    async def wait(self, seconds: float) -> None:
        """Wait for the computation to end, at most this long."""
        if self._job is not None:
            await asyncio.wait({asyncio.wrap_future(self._job.future)}, timeout=seconds)

    def _run(self, job: Job[None]) -> None:
        for number, entry in enumerate(self._entries):
            if job.cancelled() or time.monotonic() - self._last_used > IDLE_SECONDS:
                return
            if number not in self._rows:
                try:
                    self._rows[number] = self._profile(number, entry)
                except Exception as error:  # noqa: BLE001  raised again by `answer`
                    self._error = error
                    return
                GATE.pause()

    def _profile(self, number: int, entry: Any) -> list[dict[str, Any]]:
        from regard import analysis

        recording = self._registered.recording
        texts = {text for rows in recording.tokens.get(entry.step, {}).values() for row in rows for text in row}
        separators = sorted(text for text in texts if text in SEPARATORS or text.strip() in SEPARATORS) or None
        table = analysis.profiles(recording, layers=glob.escape(entry.name), step=entry.step, separators=separators)
        return [
            {
                "entry": number,
                "head": row.head,
                **{WIRE_NAMES.get(name, name): getattr(row, name) for name in analysis.MEASURES},
            }
            for row in table
        ]


def _n_weights(entry: Any) -> int:
    return math.prod(max(1, length) for length in entry.shape)
