"""Chinese word vectors: word2vec's binary file, turned once into an array that is mapped into memory."""

from __future__ import annotations

import logging
import shutil
import warnings
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.errors import FormatError, MissingExtraError
from regard.models._cache import cache_folder, made_once
from regard.models._packages import PACKAGES, find

VECTORS, VOCABULARY, STOP = "vectors.npy", "words.txt", "stopwords.txt"


class Reading(NamedTuple):
    """A text as the vectors see it: the words that have one, and those that have none and should."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]


class WordVectors:
    """A vector for each of 125,796 words: `vectors[word]` is an array (100,), `word in vectors` asks first."""

    def __init__(self, folder: Path) -> None:
        self.vectors: np.ndarray = np.load(folder / VECTORS, mmap_mode="r")
        words = (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")
        self.index = {word: row for row, word in enumerate(words)}
        self.stop = frozenset((folder / STOP).read_text(encoding="utf-8").split())

    def __contains__(self, word: str) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> np.ndarray:
        return self.vectors[self.index[word]]

    def __len__(self) -> int:
        return len(self.index)

    def read(self, text: str) -> Reading:
        """Cut a text into words. One without a vector is read by its characters; numbers, 的 and 为什么 say nothing.

        >>> words().read("他经常旷课")
        Reading(known=('经常', '旷', '课'), unknown=())
        """
        known, unknown = list[str](), list[str]()
        for word in self._cut(text):
            if not any(letter.isalpha() for letter in word):
                continue
            if word in self.index:
                known.append(word)
            elif word not in self.stop:
                # The letters of a Latin word mean nothing one by one, those of a Chinese word do.
                parts = [] if word.isascii() else [letter for letter in word if letter in self.index]
                known.extend(parts)
                unknown.extend([] if parts else [word])
        return Reading(tuple(known), tuple(unknown))

    @cached_property
    def _cut(self) -> Any:
        return _jieba().lcut


@cache
def words() -> WordVectors:
    """The Chinese word vectors of the package `synonyms`, converted when they are first used."""
    return WordVectors(made_once(PACKAGES["words"].mark, _convert))


def _jieba() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own age
            import jieba
    except ImportError as missing:
        raise MissingExtraError("Chinese is cut into words with jieba: pip install 'regard[models]'") from missing
    cutter: Any = jieba.Tokenizer()
    log = logging.getLogger("jieba")
    # It keeps its dictionary unpacked. In its usual place, the folder that all users share, anybody could plant one.
    cutter.tmp_dir = str(cache_folder())
    level = log.level
    log.setLevel(logging.WARNING)
    cutter.initialize()
    log.setLevel(level)
    return cutter


def _convert(target: Path) -> None:
    source = find(PACKAGES["words"])
    words, vectors = read_word2vec(source)
    np.save(target / VECTORS, vectors)
    (target / VOCABULARY).write_text("\n".join(words), encoding="utf-8")
    shutil.copyfile(source.with_name(STOP), target / STOP)


def read_word2vec(path: Path) -> tuple[list[str], np.ndarray]:
    """A binary file of word2vec: a line with the number of words and of dimensions, then for each word its UTF-8 bytes,
    a space, and float32 numbers, lowest byte first; a line may end after the numbers.
    """
    raw = path.read_bytes()
    head, _, _ = raw.partition(b"\n")
    try:
        count, width = (int(number) for number in head.split())
        words, vectors = list[str](), np.empty((count, width), "<f4")
        place = len(head) + 1
        for row in range(count):
            end = raw.index(b" ", place)
            words.append(raw[place:end].lstrip(b"\n").decode())
            vectors[row] = np.frombuffer(raw, "<f4", width, end + 1)
            place = end + 1 + 4 * width
    except ValueError as error:
        raise FormatError(f"{path}: is no binary file of word2vec: {error}") from error
    return words, vectors
