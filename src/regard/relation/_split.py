"""Segmentation of a passage: sentences in English, clauses in Chinese."""

import re
from itertools import pairwise

MIN_CLAUSE = 4  # Chinese characters; a shorter clause is joined with the next: 但是，
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
CLOSING = "\"'”’」』）)】》]"
ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "dr", "prof", "jr", "vs", "e.g", "i.e", "cf", "fig"})
# Chinese ends a clause with its own marks, or with ASCII ones right after a character of its own.
CHINESE_END = re.compile(rf"(?:[。！？；，…]+|(?<=[{HAN}])[,;!?]+)[{re.escape(CLOSING)}]*")
# A sentence begins with no small letter: "What?" he said. What follows a semicolon may.
ENGLISH_END = re.compile(rf"[.!?]+[{re.escape(CLOSING)}]*(?=\s+[^a-z\s]|\s*$|[{HAN}])|;(?=\s)")
WRAPPED = re.compile(r"(?<![.!?;:。！？；，])[ \t]*\r?\n[ \t]*(?=[a-z])")
LAST_WORD = re.compile(r"[A-Za-z.]+$")
SEPARATORS = " \t\r\n|，,；;、"


def split(passage: str) -> list[str]:
    """Cut a passage into segments, in order, without the commas and spaces around them.

    Where there is a `|`, it alone separates. Else English is cut after `.`, `!`, `?` and `;` (not in "2.13" or
    "Dr. Li"), Chinese after 。！？；， and both at the end of a line, unless the line goes on with a small letter.

    >>> split("He is 2.13 m tall. Dr. Li is not!")
    ['He is 2.13 m tall.', 'Dr. Li is not!']
    >>> split("他爸有 2 米高，经常旷课。但是，他爱吃苹果")
    ['他爸有 2 米高', '经常旷课。', '但是，他爱吃苹果']
    """
    if "|" in passage:
        parts = passage.split("|")
    else:
        lines = WRAPPED.sub(" ", passage).splitlines()
        parts = [part for line in lines for part in _clauses(line)]
    return [text for part in parts if _has_text(text := part.strip(SEPARATORS))]


def _has_text(text: str) -> bool:
    return any(not character.isspace() and character not in "。！？.!?…" for character in text)


def _clauses(line: str) -> list[str]:
    cuts = {match.end() for match in CHINESE_END.finditer(line)}
    cuts |= {match.end() for match in ENGLISH_END.finditer(line) if not _is_abbreviation(line, match)}
    edges = [0, *sorted(cuts), len(line)]
    return _join_short([line[start:end] for start, end in pairwise(edges) if line[start:end].strip()])


def _is_abbreviation(line: str, end: re.Match[str]) -> bool:
    """True if a full stop belongs to the word before it: Dr. or J. or U.S."""
    if not end[0].startswith(".") or end.end() == len(line.rstrip()):
        return False
    match = LAST_WORD.search(line, 0, end.start())
    if match is None:
        return False
    word, before = match[0], line[: match.start()].split()
    named = not before or before[-1][0].isupper()  # J. Smith, Harry S. Truman; but: his blood type is A.
    return word.lower() in ABBREVIATIONS or (_is_initials(word) and (named or "." in word))


def _is_initials(word: str) -> bool:
    return all(len(part) == 1 and part.isupper() for part in word.split("."))


def _join_short(clauses: list[str]) -> list[str]:
    """Clauses, with every short Chinese one joined to the next."""
    whole, waiting = list[str](), ""
    for clause in clauses:
        waiting += clause
        if not _is_short(waiting):
            whole.append(waiting)
            waiting = ""
    if waiting:
        whole.append(waiting)
    return whole


def _is_short(clause: str) -> bool:
    """True for one to three Chinese characters and a comma."""
    text = clause.strip()
    return (
        text.endswith(("，", ","))
        and 0 < len(text) - 1 < MIN_CLAUSE
        and re.fullmatch(f"[{HAN}]+", text[:-1]) is not None
    )
