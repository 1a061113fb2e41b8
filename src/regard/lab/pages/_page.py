"""The interface of a lesson's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from regard.lab.pages import _state


@dataclass(frozen=True)
class Page:
    """A lesson: a state that users change, the numbers that it shows, and code that computes the same numbers."""

    name: str
    state: type[Any]
    show: Callable[[Any], dict[str, Any]]
    code: Callable[[Any], str]
    train: Callable[[Any], Iterator[dict[str, Any]]] | None = None  # learning, step by step, where the lesson has it
    loads_model: bool = False  # True if `show` loads a language model, which takes seconds and memory

    def read(self, state: str | bytes | Mapping[str, object]) -> Any:
        """A state from JSON, as text or parsed; errors name the field."""
        return _state.read(self.state, state)

    def write(self, state: Any) -> dict[str, Any]:
        """A state as JSON."""
        return _state.write(state)

    @property
    def default(self) -> dict[str, Any]:
        """The state that the page opens with, as JSON."""
        return self.write(self.state())


def page_of_module(module: ModuleType) -> Page:
    """The page of a lesson's module: its State, show and code, and train if it has one."""
    name = module.__name__.rsplit(".", 1)[-1]
    train, loads_model = getattr(module, "train", None), getattr(module, "LOADS_MODEL", False)
    return Page(name, module.State, module.show, module.code, train, loads_model)
