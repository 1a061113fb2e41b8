"""The viewer inside a notebook: the same page, asked by messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import anywidget
import traitlets

from regard.errors import CallError
from regard.web.api.query import Answers
from regard.web.api.registry import Shelf
from regard.web.notebook.messages import reply
from regard.web.server.errors import Refusal
from regard.web.server.priority import TURNS
from regard.web.server.static_files import STATIC
from regard.web.server.workers import Job, Workshop

SCRIPT, STYLE = STATIC / "widget.js", STATIC / "widget.css"


class Viewer(anywidget.AnyWidget):
    """What `weights.view()` and `recording.view()` show.

    state: what is looked at and how, as the address of the page has it behind its question mark: "entry=2&head=3".
    language: "en" or "zh"; as the browser has it if left empty.
    """

    _esm = SCRIPT if SCRIPT.is_file() else ""
    _css = STYLE if STYLE.is_file() else ""
    recording = traitlets.Unicode().tag(sync=True)
    state = traitlets.Unicode().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)

    def __init__(self, shelf: Shelf, **options: Any) -> None:
        if not SCRIPT.is_file():
            raise CallError(f"the viewer is not built: {SCRIPT} is missing; cd frontend && npm ci && npm run build")
        super().__init__(recording=next(iter(shelf)).id, **options)
        self._shelf, self._answers = shelf, Answers(shelf, _workshop())
        self._waiting: dict[Any, Job[None]] = {}
        self.on_msg(self._hear)

    def close(self) -> None:
        self._shelf.close()
        super().close()

    def _hear(self, _: Any, message: Any, __: Any) -> None:
        """Answered in a thread: while a map is computed, others are not kept waiting."""
        if not isinstance(message, Mapping):
            return
        number = message.get("number")
        if message.get("forget"):
            job = self._waiting.pop(number, None)
            if job is not None:
                job.cancel()
            return
        try:
            self._waiting[number] = _workshop().quick.start(lambda job: self._answer(job, message))
        except Refusal as refusal:
            self.send({"number": number, "error": refusal.message, "status": refusal.status})

    def _answer(self, job: Job[None], message: Mapping[str, Any]) -> None:
        with TURNS.first():
            content, buffers = reply(self._answers, message)
        self._waiting.pop(message.get("number"), None)
        if not job.cancelled():
            self.send(content, buffers)


@cache
def _workshop() -> Workshop:
    """The same threads for all that is shown in one kernel."""
    return Workshop()
