"""Route: `generate()` of a Hugging Face model, whose forward passes with a cache are recorded as one step.

Without a cache every pass begins at the first token again; then each is a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any

from regard.capture._observer import Observer
from regard.capture._patching import wrapped

ORDER = ("inputs", "generation_config")  # of the positional arguments of generate()


@contextmanager
def observe_generate(observer: Observer) -> Iterator[None]:
    """Wrap `generate` of the observed model, if it has one."""
    model: Any = observer.model
    if not callable(getattr(model, "generate", None)):
        yield
        return

    def wrapper(generate: Any) -> Any:
        @wraps(generate)
        def one_step(*args: Any, **options: Any) -> Any:
            arguments = {**dict(zip(ORDER, args, strict=False)), **options}
            outside = observer.is_outside() or _option(model, arguments, "use_cache", True) is False
            with nullcontext() if outside else observer.generation() as generation:
                if generation is not None:
                    generation.beams = int(_option(model, arguments, "num_beams", 1))
                result = generate(*args, **options)
                if generation is not None:
                    generation.sequences = getattr(result, "sequences", result)
                return result

        return one_step

    with wrapped(model, "generate", wrapper):
        yield


def _option(model: Any, options: dict[str, Any], name: str, default: Any) -> Any:
    """An option of generate(): an argument, else that of the generation config, else the default."""
    config = options.get("generation_config") or getattr(model, "generation_config", None)
    for value in (options.get(name), getattr(config, name, None)):
        if value is not None:
            return value
    return default
