"""Recordings: what a model attended to, kept in O(n d) and asked later.

Names are loaded when they are first used: the writer and the reader of the file need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.recording._call import Call as Call
    from regard.recording._layer import Layer
    from regard.recording._recording import Recording, open  # noqa: A004  it is rg.open
    from regard.recording._sink import FileSink as FileSink
    from regard.recording._sink import MemorySink as MemorySink
    from regard.recording._tokens import TokenAxis as TokenAxis

__all__ = ["Layer", "Recording", "open"]

# Where each name is defined. Those that are not in `__all__` are for regard's other packages, not for users.
MODULES = {
    "Layer": "_layer",
    "Recording": "_recording",
    "open": "_recording",
    "Call": "_call",
    "MemorySink": "_sink",
    "FileSink": "_sink",
    "TokenAxis": "_tokens",
}


def __getattr__(name: str) -> object:
    if name not in MODULES:
        raise AttributeError(f"module 'regard.recording' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value = globals()[name] = getattr(import_module(f"regard.recording.{MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
