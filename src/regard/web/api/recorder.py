"""A text that somebody types, read by a real model and recorded, step by step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from regard.web.api.registry import Shelf
from regard.web.server.errors import Refusal
from regard.web.server.workers import Cancelled, Job

MODELS = ("minilm", "smollm2")
LONGEST = 20_000  # characters
LOOK = 0.1  # seconds between two reports

_one_at_a_time = threading.Lock()  # a model that is recorded is changed for that time


def check(given: dict[str, Any]) -> tuple[str, str]:
    """The text and the model of a request, or what is wrong with them."""
    text, model = given.get("text"), given.get("model", MODELS[0])
    if set(given) - {"text", "model"}:
        raise Refusal(422, f"text and model are asked for, and {', '.join(sorted(given))[:80]} came")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(422, f"text must be a text, and {type(text).__name__} came, or nothing but spaces")
    if len(text) > LONGEST:
        raise Refusal(422, f"text must have at most {LONGEST:,} characters, and {len(text):,} came")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Refusal(422, "text must be text that can be written down, but it has half a character in it")
    if model not in MODELS:
        raise Refusal(422, f"model must be one of {', '.join(MODELS)}, and {str(model)[:40]!r} came")
    return text, model


def events(shelf: Shelf, text: str, name: str, job: Job[None]) -> Iterator[dict[str, Any]]:
    """Progress, and at last the id of the recording."""
    yield {"stage": "loading", "progress": 0.0}
    with ExitStack() as stack:
        while not _one_at_a_time.acquire(timeout=LOOK):
            job.check()
        stack.callback(_one_at_a_time.release)
        from regard import models

        other = ". Take smollm2, which reads every text" if name == "minilm" else ""
        longer = ", or take smollm2, which reads 8,192" if name == "minilm" else ""
        given = models.give(name, text, loaded=_loaded(name), instead=other, shorter=longer)
        job.check()
        run = _Run(given, shelf.new_file())
        stack.callback(run.stop)
        for progress in run.progress():
            job.check()
            yield {"stage": "recording", "progress": progress, "tokens": given.length}
        title = " ".join(text.split())
        made = shelf.put(run.opened(), title if len(title) <= 60 else f"{title[:59]}…", run.path)
    yield {"stage": "done", "progress": 1.0, "id": made.id}


@cache
def _loaded(name: str) -> Any:
    from regard import models

    return models.load(name)


class _Run:
    """The model's pass in a thread of its own, which can be stopped between two of its modules."""

    def __init__(self, given: Any, path: Any) -> None:
        self.path, self._given = path, given
        self._calls = self._total = 0
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="regard-model", daemon=True)
        self._thread.start()

    def progress(self) -> Iterator[float]:
        while self._thread.is_alive():
            self._thread.join(LOOK)
            yield self._calls / max(1, self._total)
        if self._error is not None:
            self.path.unlink(missing_ok=True)
            raise self._error

    def opened(self) -> Any:
        import regard as rg

        return rg.open(self.path)

    def stop(self) -> None:
        """Also when all went well; then there is nothing to stop."""
        if self._thread.is_alive():
            self._stopped.set()
            self._thread.join()
            self.path.unlink(missing_ok=True)

    def _work(self) -> None:
        import torch

        import regard as rg

        given = self._given
        about = {"from": given.name}
        try:
            with (
                torch.no_grad(),
                self._watched(given.model),
                rg.record(given.model, path=self.path, tokenizer=given.tokenizer, about=about),
            ):
                given.model(**given.inputs)
        except BaseException as error:  # noqa: BLE001  raised again where somebody waits
            self._error = error

    @contextmanager
    def _watched(self, model: Any) -> Iterator[None]:
        """Count the model's own modules as they run; torch's small ones are left alone."""
        modules = [module for module in model.modules() if not type(module).__module__.startswith("torch.")]
        self._total = len(modules)

        def count(*_: Any) -> None:
            self._calls += 1
            if self._stopped.is_set():
                raise Cancelled

        hooks = [module.register_forward_pre_hook(count) for module in modules]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
