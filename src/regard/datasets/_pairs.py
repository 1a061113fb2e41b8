"""Pairs of a text and its translation, and the links between their words."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from regard.datasets._alignment import Alignment
from regard.errors import ChoiceError

TEST_BYTES, VALIDATION_BYTES = 5, 10  # first bytes of the hash below these are for testing and for validation, of 256
SPLIT_WORDS = re.compile(r"\w+|[^\w\s]")  # fixed for ever: another tokeniser must not move a test sentence
MAX_SHOWN = 40  # characters of a text in a repr


class Pair(NamedTuple):
    """A text, its translation, and the links between their words where they are known."""

    source: str
    target: str
    alignment: Alignment | None = None


class Split(NamedTuple):
    """Three sets of pairs that share no source sentence."""

    train: Pairs
    validation: Pairs
    test: Pairs


class Pairs(Sequence[Pair]):
    """An unchangeable sequence of pairs of texts, with the languages of both sides.

    A slice is a set of pairs again, and `split()` cuts off a test set that shares no source sentence with the rest.

    >>> pairs = Pairs([("go .", "va !"), ("run .", "cours !")], target_language="fr")
    >>> pairs[0].target, len(pairs[1:])
    ('va !', 1)
    """

    __slots__ = ("_keys", "_pairs", "_source_language", "_target_language")

    def __init__(
        self,
        pairs: Iterable[Sequence[Any]],
        *,
        source_language: str = "en",
        target_language: str = "fr",
        keys: Iterable[str] | None = None,
    ) -> None:
        """Keep pairs of texts.

        source_language, target_language: "en", "fr", "zh", "digits" or another, as `datasets.tokenise` takes them.
        keys: for each pair the sentence whose hash decides about `split()`; the source itself if None. Pairs that
            were joined from several sentences of one side of the split have the first of these as key.
        """
        self._pairs: tuple[Pair, ...] = tuple(_as_pair(i, pair) for i, pair in enumerate(pairs))
        self._keys: tuple[str, ...] | None = None if keys is None else tuple(keys)
        self._source_language: str = source_language
        self._target_language: str = target_language
        if self._keys is not None and len(self._keys) != len(self._pairs):
            raise ChoiceError(f"each pair has one key: {len(self._pairs)} pairs and {len(self._keys)} keys came")

    @property
    def source_language(self) -> str:
        """Language of the sources, as `datasets.tokenise` takes it."""
        return self._source_language

    @property
    def target_language(self) -> str:
        """Language of the targets, as `datasets.tokenise` takes it."""
        return self._target_language

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> Pairs: ...
    def __getitem__(self, index: int | slice) -> Pair | Pairs:
        if isinstance(index, slice):
            return self.take(range(len(self))[index])
        return self._pairs[index]

    def take(self, positions: Iterable[int]) -> Pairs:
        """The pairs at these positions, in this order, as a set of pairs."""
        positions = list(positions)
        return Pairs(
            (self._pairs[i] for i in positions),
            source_language=self.source_language,
            target_language=self.target_language,
            keys=None if self._keys is None else (self._keys[i] for i in positions),
        )

    def key(self, position: int) -> str:
        """The sentence whose hash decides on which side of `split()` a pair is."""
        return self._pairs[position].source if self._keys is None else self._keys[position]

    def split(self) -> Split:
        """Cut the pairs into train, validation and test by a hash of the source sentence, 246 : 5 : 5 of 256.

        A source sentence that occurs several times is on one side only, whatever its case and spaces, so no test
        sentence is ever trained on. It is always the same side, in any file and in any order.

        >>> train, validation, test = Pairs([("go .", "va !")] * 3).split()
        >>> len(train), len(validation), len(test)
        (3, 0, 0)
        """
        sides = [split_side(self.key(i)) for i in range(len(self))]
        return Split(*(self.take(i for i, side in enumerate(sides) if side == part) for part in range(3)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and self._contents() == other._contents()

    def __hash__(self) -> int:
        return hash(self._contents())

    def _contents(self) -> tuple[Any, ...]:
        return self._pairs, self._keys, self.source_language, self.target_language

    def __repr__(self) -> str:
        count = f"{len(self):,} pair{'s' * (len(self) != 1)}, {self.source_language} -> {self.target_language}"
        aligned = ", aligned" if self._pairs and self._pairs[0].alignment is not None else ""
        first = f": {_short(self[0].source)} -> {_short(self[0].target)}" if self._pairs else ""
        return f"<{count}{aligned}{first}{', ...' if len(self) > 1 else ''}>"


def _as_pair(position: int, item: Any) -> Pair:
    texts = isinstance(item, tuple | list) and 2 <= len(item) <= 3 and all(isinstance(text, str) for text in item[:2])
    if not texts:
        raise ChoiceError(f"pair {position:,} must be a source and a target, two texts; it came as {item!r}")
    return item if isinstance(item, Pair) else Pair(*item)


def _short(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")


def split_byte(source: str) -> int:
    """First byte of the sha256 of a sentence in NFKC, lower case, its words and punctuation joined by one space.

    >>> split_byte("It works!") == split_byte("it  works !")
    True
    """
    words = SPLIT_WORDS.findall(unicodedata.normalize("NFKC", source).lower())
    return hashlib.sha256(" ".join(words).encode()).digest()[0]


def split_side(source: str) -> int:
    """Side of the split that a sentence is on: 0 for train, 1 for validation, 2 for test."""
    byte = split_byte(source)
    return 2 if byte < TEST_BYTES else 1 if byte < VALIDATION_BYTES else 0
