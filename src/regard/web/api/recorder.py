"""Record a real model while it reads a text that a user typed, with progress events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from regard.web.api.registry import RecordingRegistry
from regard.web.server.errors import ApiError
from regard.web.server.workers import Job, JobCancelled

MODELS = ("minilm", "smollm2")
MAX_CHARACTERS = 20_000  # of a typed text
REPORT_SECONDS = 0.1  # between two progress events

_recording_lock = threading.Lock()  # one at a time: a model has hooks while it is recorded


def parse_request(body: dict[str, Any]) -> tuple[str, str]:
    """The text and the model's name in a request; 422 if they are not valid."""
    text, model = body.get("text"), body.get("model", MODELS[0])
    if set(body) - {"text", "model"}:
        raise ApiError(422, f"text and model are asked for, and {', '.join(sorted(body))[:80]} came")
    if not isinstance(text, str) or not text.strip():
        raise ApiError(422, f"text must be a text, and {type(text).__name__} came, or nothing but spaces")
    if len(text) > MAX_CHARACTERS:
        raise ApiError(422, f"text must have at most {MAX_CHARACTERS:,} characters, and {len(text):,} came")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ApiError(422, "text must be text that can be written down, but it has half a character in it")
    if model not in MODELS:
        raise ApiError(422, f"model must be one of {', '.join(MODELS)}, and {str(model)[:40]!r} came")
    return text, model


def events(registry: RecordingRegistry, text: str, name: str, job: Job[None]) -> Iterator[dict[str, Any]]:
    """Record the named model: progress events, and at last the id of the recording."""
    yield {"stage": "loading", "progress": 0.0}
    with ExitStack() as stack:
        while not _recording_lock.acquire(timeout=REPORT_SECONDS):
            job.check()
        stack.callback(_recording_lock.release)
        from regard import models

        other = ". Take smollm2, which reads every text" if name == "minilm" else ""
        longer = ", or take smollm2, which reads 8,192" if name == "minilm" else ""
        prepared = models.tokenize(name, text, loaded=_load(name), instead=other, shorter=longer)
        job.check()
        run = RecordedForwardPass(prepared, registry.new_file())
        stack.callback(run.stop)
        for progress in run.progress():
            job.check()
            yield {"stage": "recording", "progress": progress, "tokens": prepared.length}
        title = " ".join(text.split())
        registered = registry.add(run.open(), title if len(title) <= 60 else f"{title[:59]}…", run.path)
    yield {"stage": "done", "progress": 1.0, "id": registered.id}


@cache
def _load(name: str) -> Any:
    from regard import models

    return models.load(name)


class RecordedForwardPass:
    """A model's forward pass in a thread of its own. It can be stopped between two modules."""

    def __init__(self, prepared: Any, path: Any) -> None:
        self.path: Any = path
        self._prepared = prepared
        self._calls = self._total = 0
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="regard-model", daemon=True)
        self._thread.start()

    def progress(self) -> Iterator[float]:
        while self._thread.is_alive():
            self._thread.join(REPORT_SECONDS)
            yield self._calls / max(1, self._total)
        if self._error is not None:
            self.path.unlink(missing_ok=True)
            raise self._error

    def open(self) -> Any:
        import regard as rg

        return rg.open(self.path)

    def stop(self) -> None:
        """Stop the pass and delete its file; nothing happens if the pass has ended."""
        if self._thread.is_alive():
            self._stopped.set()
            self._thread.join()
            self.path.unlink(missing_ok=True)

    def _work(self) -> None:
        import torch

        import regard as rg

        prepared = self._prepared
        about = {"from": prepared.name}
        try:
            with (
                torch.no_grad(),
                self._count_calls(prepared.model),
                rg.record(prepared.model, path=self.path, tokenizer=prepared.tokenizer, about=about),
            ):
                prepared.model(**prepared.inputs)
        except BaseException as error:  # noqa: BLE001  raised again by `progress`
            self._error = error

    @contextmanager
    def _count_calls(self, model: Any) -> Iterator[None]:
        """Count the model's own modules as they run, without those of torch."""
        modules = [module for module in model.modules() if not type(module).__module__.startswith("torch.")]
        self._total = len(modules)

        def count(*_: Any) -> None:
            self._calls += 1
            if self._stopped.is_set():
                raise JobCancelled

        hooks = [module.register_forward_pre_hook(count) for module in modules]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
