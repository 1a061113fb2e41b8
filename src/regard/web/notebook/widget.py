"""The viewer as a notebook widget; its page asks by widget messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import anywidget
import traitlets

from regard.errors import CallError
from regard.web.api.query import RecordingQueries
from regard.web.api.registry import RecordingRegistry
from regard.web.notebook.messages import reply
from regard.web.server.errors import ApiError
from regard.web.server.page import STATIC_FOLDER
from regard.web.server.priority import GATE
from regard.web.server.workers import Job, WorkerPools

SCRIPT, STYLE = STATIC_FOLDER / "widget.js", STATIC_FOLDER / "widget.css"


class Viewer(anywidget.AnyWidget):
    """The widget that `weights.view()` and `recording.view()` return.

    state: the view in the form of the page's address, behind its question mark: "entry=2&head=3".
    language: "en" or "zh"; the browser's language if empty.
    """

    _esm = SCRIPT if SCRIPT.is_file() else ""
    _css = STYLE if STYLE.is_file() else ""
    recording: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    state: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)
    language: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)

    def __init__(self, registry: RecordingRegistry, **options: Any) -> None:
        if not SCRIPT.is_file():
            raise CallError(f"the viewer is not built: {SCRIPT} is missing; cd frontend && npm ci && npm run build")
        super().__init__(recording=next(iter(registry)).id, **options)
        self._registry, self._queries = registry, RecordingQueries(registry, _workers())
        self._jobs: dict[Any, Job[None]] = {}
        self.on_msg(self._on_message)

    def close(self) -> None:
        self._registry.close()
        super().close()

    def _on_message(self, _: Any, message: Any, __: Any) -> None:
        """Answer in a worker thread, so that other messages do not wait for a map that is computed."""
        if not isinstance(message, Mapping):
            return
        number = message.get("number")
        if message.get("forget"):
            job = self._jobs.pop(number, None)
            if job is not None:
                job.cancel()
            return
        try:
            self._jobs[number] = _workers().quick.submit(lambda job: self._answer(job, message))
        except ApiError as error:
            self.send({"number": number, "error": error.message, "status": error.status})

    def _answer(self, job: Job[None], message: Mapping[str, Any]) -> None:
        with GATE.foreground():
            content, buffers = reply(self._queries, message)
        self._jobs.pop(message.get("number"), None)
        if not job.cancelled():
            self.send(content, buffers)


@cache
def _workers() -> WorkerPools:
    """The worker threads that all widgets of one notebook kernel share."""
    return WorkerPools()
