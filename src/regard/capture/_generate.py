"""Route: `generate()` of a Hugging Face model, whose forward passes are recorded as one step.

Without a cache every pass begins at the first token again; then each is a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

from regard.capture._observer import Observer, replaced


@contextmanager
def generating(observer: Observer) -> Iterator[None]:
    """Wrap `generate` of the observed model, if it has one."""
    model: Any = observer.model
    generate = getattr(model, "generate", None)
    if not callable(generate):
        yield
        return

    @wraps(generate)
    def one_step(*args: Any, **options: Any) -> Any:
        with observer.generation() if _has_cache(model, options) else nullcontext():
            return generate(*args, **options)

    with replaced(model, "generate", one_step):
        yield


def _has_cache(model: Any, options: dict[str, Any]) -> bool:
    config = options.get("generation_config") or getattr(model, "generation_config", None)
    use_cache = options.get("use_cache")
    return getattr(config, "use_cache", True) is not False if use_cache is None else bool(use_cache)
