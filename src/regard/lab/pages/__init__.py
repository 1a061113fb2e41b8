"""The lessons of the browser: the state that users change, what is shown for it, and code that computes the same.

>>> from regard.lab.pages import PAGES
>>> page = PAGES["cues"]
>>> state = page.read({"pooling": "learned"})
>>> shown = page.show(state)
>>> shown["names"]["en"][shown["winner"]]
'red coffee cup'
"""

from regard.lab.pages import (
    block,
    bottleneck,
    by_hand,
    cues,
    heads,
    heatmaps,
    masks,
    normalisers,
    regression,
    relevance,
    saturation,
    scores,
    translation,
    why,
)
from regard.lab.pages._page import Page, page_of_module

__all__ = ["PAGES", "Page"]

LESSONS = (
    why,
    cues,
    regression,
    heatmaps,
    scores,
    saturation,
    by_hand,
    masks,
    heads,
    relevance,
    normalisers,
    block,
    translation,
    bottleneck,
)
PAGES: dict[str, Page] = {module.name: module for module in map(page_of_module, LESSONS)}
