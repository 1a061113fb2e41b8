"""Recordings: what a model attended to, kept in O(n d) and asked later.

The names below are loaded when they are first used: the writer and the reader of the file need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.recording._call import Call
    from regard.recording._recording import Layer, Recording, open  # noqa: A004  it is rg.open
    from regard.recording._sink import FileSink, MemorySink
    from regard.recording._tokens import TokenAxis

__all__ = ["Layer", "Recording", "open", "Call", "MemorySink", "FileSink", "TokenAxis"]

MODULES = {"Call": "_call", "MemorySink": "_sink", "FileSink": "_sink", "TokenAxis": "_tokens"}  # else _recording


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'regard.recording' has no attribute {name!r}; it offers {', '.join(__all__)}")
    module = import_module(f"regard.recording.{MODULES.get(name, '_recording')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
