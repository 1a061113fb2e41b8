"""Transcripts: what a user types and what is shown, compared letter by letter."""

import doctest
from typing import Any


def check(text: str, **names: Any) -> None:
    """Type the lines that begin with >>> in a session that has `names`; every answer must be the one below its line.

    A line of three dots may stand for any lines of an answer.
    """
    test = doctest.DocTestParser().get_doctest(text, names, "transcript", None, 0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)
