"""Links between the words of a text and of its translation, and how far found links are from gold ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeGuard, runtime_checkable

from regard.errors import DataError, FormatError, ShapeError

Link = tuple[int, int]  # (source word, target token), both counted from 0
PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")


class Alignment(NamedTuple):
    """Gold links between the words of a source and the tokens of a target, as (source word, target token).

    Both indices count from 0 over `datasets.tokenise`: words and punctuation, for Chinese characters. A good alignment
    has all the `sure` links; it may have the `possible` ones. No link is in both.
    """

    sure: tuple[Link, ...]
    possible: tuple[Link, ...] = ()

    @classmethod
    def from_pharaoh(cls, text: str) -> Alignment:
        """Read links in the Pharaoh format: `0-0 1-2`, a possible one with p or ? as `1p2`.

        >>> Alignment.from_pharaoh("0-0 1-2 1p3").possible
        ((1, 3),)
        """
        links = [(PHARAOH.fullmatch(item), item) for item in text.split()]
        for match, item in links:
            if match is None:
                raise FormatError(f"a link of an alignment is written as 0-0, or 0p0 if it is possible; {item!r} came")
        found = [(match[2] == "-", (int(match[1]), int(match[3]))) for match, _ in links if match]
        sure = {link for is_sure, link in found if is_sure}
        return cls(tuple(sorted(sure)), tuple(sorted({link for is_sure, link in found if not is_sure} - sure)))

    @classmethod
    def of(cls, links: Any) -> Alignment:
        """Gold links from an alignment, a text in the Pharaoh format, pairs or a result of `align`, which are all sure.

        >>> Alignment.of([(0, 0), (2, 1)])
        Alignment.from_pharaoh('0-0 2-1')
        """
        if isinstance(links, str):
            return cls.from_pharaoh(links)
        if hasattr(links, "sure"):
            return cls(tuple(links.sure), tuple(getattr(links, "possible", ())))
        pairs = list(links.links if isinstance(links, Linked) else links)
        if not all(_is_link(pair) for pair in pairs):
            raise ShapeError(f"a link is a pair (source word, target token) of numbers from 0; {pairs!r:.80} came")
        return cls(tuple((int(i), int(j)) for i, j in pairs))

    def pharaoh(self) -> str:
        """Write the links in the Pharaoh format, in order: sure ones as `0-0`, possible ones as `1p2`.

        >>> Alignment(sure=((0, 0), (1, 2)), possible=((1, 3),)).pharaoh()
        '0-0 1-2 1p3'
        """
        marked = [(link, "-") for link in self.sure] + [(link, "p") for link in self.possible]
        return " ".join(f"{i}{mark}{j}" for (i, j), mark in sorted(marked))

    def __repr__(self) -> str:
        return f"Alignment.from_pharaoh({self.pharaoh()!r})"


@runtime_checkable
class Linked(Protocol):
    """An object with links between words, such as the result of `analysis.align`."""

    @property
    def links(self) -> Iterable[Link]: ...


Links = Linked | Alignment | str | Iterable[Link]  # a text is in the Pharaoh format


def alignment_error_rate(found: Links | Sequence[Links], gold: Links | Sequence[Links]) -> float:
    """Alignment error rate of found links A against gold links: 0 is perfect, 1 has nothing right.

    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), where S are the sure links and P the possible ones with the sure ones
    among them (Och and Ney, 2003). A has to have all of S, and may have the rest of P.

    found: the result of `analysis.align`, links (source word, target token), or a text in the Pharaoh format.
    gold: an `Alignment` with sure and possible links, such as that of a `Pair`; links or a text, as above.
    Lists of both are counted together, as one long text.

    >>> alignment_error_rate("0-0 1-2 2-1", gold="0-0 1-1 1p2")
    0.4
    """
    several, golden = (list(links) if _is_list(links) else [links] for links in (found, gold))
    if _is_list(found) != _is_list(gold) or len(several) != len(golden):
        raise ShapeError(f"each text needs found and gold links: {len(several)} found and {len(golden)} gold came")
    hits = total = 0
    for one, other in zip(several, golden, strict=True):
        links, reference = set(Alignment.of(one).sure), Alignment.of(other)
        sure = set(reference.sure)
        hits += len(links & sure) + len(links & sure.union(reference.possible))
        total += len(links) + len(sure)
    if not total:
        raise DataError("there are neither found links nor sure gold links, so there is no alignment error rate")
    return 1 - hits / total


def _is_numbers(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) > 0 and all(isinstance(i, SupportsIndex) for i in item)


def _is_link(item: Any) -> bool:
    return _is_numbers(item) and len(item) == 2 and min(map(int, item)) >= 0


def _is_list(links: Any) -> TypeGuard[Sequence[Any]]:
    """True for a list of alignments; one alignment may be a list too, of links."""
    return type(links) in {list, tuple} and len(links) > 0 and not _is_numbers(links[0])
