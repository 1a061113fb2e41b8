"""`help()` of what users call first: every argument is explained, and every choice for it is named."""

import inspect
import pydoc
import re

import pytest

import regard as rg


def test_help_of_attend_explains_every_argument():
    page = pydoc.render_doc(rg.attend, renderer=pydoc.plaintext)
    for name in inspect.signature(rg.attend).parameters:
        assert re.search(rf"^ +{name}: [^\n]{{20,}}", page, re.MULTILINE), name


@pytest.mark.parametrize("module", [rg.scores, rg.masks, rg.normalisers], ids=lambda module: module.__name__)
def test_help_of_attend_names_every_term(module):
    names = {name for name in module.__all__ if name.islower()}
    assert names <= set(re.findall(r"\w+", inspect.getdoc(rg.attend) or ""))
