"""Small data sets for lessons and examples, generated from a seed or written out, and pairs of texts for translation.

The names below are loaded when they are first used: pairs of texts need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.datasets._alignment import Alignment, Link, Links, alignment_error_rate
    from regard.datasets._joined import joined
    from regard.datasets._numbers import numbers
    from regard.datasets._pair_files import pairs
    from regard.datasets._pairs import Pair, Pairs, Split
    from regard.datasets._passage import Passage, passage
    from regard.datasets._scenes import SCENES, Scene, desk, scene
    from regard.datasets._sine import Sine, sine
    from regard.datasets._words import detokenise, tokenise
    from regard.datasets._worked_example import WorkedExample, worked_example

__all__ = [
    "sine",
    "Sine",
    "desk",
    "scene",
    "Scene",
    "SCENES",
    "worked_example",
    "WorkedExample",
    "passage",
    "Passage",
    "numbers",
    "pairs",
    "joined",
    "Pair",
    "Pairs",
    "Split",
    "Alignment",
    "Link",
    "Links",
    "alignment_error_rate",
    "tokenise",
    "detokenise",
]

# name -> the file that defines it
_HOMES = {
    "sine": "_sine",
    "Sine": "_sine",
    "desk": "_scenes",
    "scene": "_scenes",
    "Scene": "_scenes",
    "SCENES": "_scenes",
    "worked_example": "_worked_example",
    "WorkedExample": "_worked_example",
    "passage": "_passage",
    "Passage": "_passage",
    "numbers": "_numbers",
    "pairs": "_pair_files",
    "joined": "_joined",
    "Pair": "_pairs",
    "Pairs": "_pairs",
    "Split": "_pairs",
    "Alignment": "_alignment",
    "Link": "_alignment",
    "Links": "_alignment",
    "alignment_error_rate": "_alignment",
    "tokenise": "_words",
    "detokenise": "_words",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.datasets' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value: object = getattr(import_module(f"regard.datasets.{_HOMES[name]}"), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
