"""`generate()` of a Hugging Face model: many forward passes, one step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from regard.capture._watch import Watch, replaced


@contextmanager
def generating(watch: Watch) -> Iterator[None]:
    model: Any = watch.model
    generate = getattr(model, "generate", None)
    if not callable(generate):
        yield
        return

    @wraps(generate)
    def one_step(*args: Any, **options: Any) -> Any:
        with watch.one_step():
            return generate(*args, **options)

    with replaced(model, "generate", one_step):
        yield
