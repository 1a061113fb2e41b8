"""Recordings: what a model attended to, kept in O(n d) and asked later.

The names below are loaded when they are first used: the writer and the reader of the file need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.recording._recording import Layer, Recording, open  # noqa: A004  it is rg.open

__all__ = ["Layer", "Recording", "open"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'regard.recording' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module("regard.recording._recording"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
