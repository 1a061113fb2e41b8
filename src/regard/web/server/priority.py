"""Who goes first: what a person waits for, before what fills in the picture behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Condition
from typing import ParamSpec, TypeVar

import torch

from regard.tracing import plain_dtypes

PATIENCE = 0.25  # seconds after which the work behind goes on all the same: it must end too
Question = ParamSpec("Question")
Answer = TypeVar("Answer")


class Turns:
    """A count of people waiting. Long work asks between its steps whether it should step back."""

    def __init__(self) -> None:
        self._quiet = Condition()
        self._waiting = 0

    @contextmanager
    def first(self) -> Iterator[None]:
        """Somebody is waiting for what happens in here."""
        with self._quiet:
            self._waiting += 1
        try:
            yield
        finally:
            with self._quiet:
                self._waiting -= 1
                if not self._waiting:
                    self._quiet.notify_all()

    def give_way(self) -> None:
        """Wait until nobody is waiting."""
        with self._quiet:
            self._quiet.wait_for(lambda: not self._waiting, PATIENCE)


TURNS = Turns()  # one for all maps: they share the cores


def awaited(ask: Callable[Question, Answer]) -> Callable[Question, Answer]:
    """A question that somebody waits for: no graph, no autocast, and the work behind steps back."""

    @wraps(ask)
    def asked(*args: Question.args, **options: Question.kwargs) -> Answer:
        with TURNS.first(), torch.no_grad(), plain_dtypes():
            return ask(*args, **options)

    return asked
