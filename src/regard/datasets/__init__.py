"""Small data sets for lessons and examples, generated from a seed or written out."""

from regard.datasets._passage import Passage, passage
from regard.datasets._scenes import SCENES, Scene, desk, scene
from regard.datasets._sine import Sine, sine
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
]
