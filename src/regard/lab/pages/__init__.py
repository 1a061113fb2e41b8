"""The lessons as pages: what each lets people change, what it then shows, and the code that does the same.

>>> from regard.lab.pages import PAGES
>>> page = PAGES["cues"]
>>> state = page.read({"pooling": "learned"})
>>> shown = page.show(state)
>>> shown["names"]["en"][shown["winner"]]
'red coffee cup'
"""

from regard.lab.pages import by_hand, cues, heads, masks, normalisers, regression, relevance, saturation, scores
from regard.lab.pages._page import Page, page

__all__ = ["PAGES", "Page"]

LESSONS = (cues, regression, scores, saturation, masks, by_hand, heads, relevance, normalisers)
PAGES: dict[str, Page] = {module.name: module for module in map(page, LESSONS)}
