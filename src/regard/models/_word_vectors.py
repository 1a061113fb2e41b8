"""Chinese word vectors: a binary word2vec file, converted once into an array that is mapped into memory."""

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
    """Words of a text: those that have a vector, and content words that have none."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]


class WordVectors:
    """Vectors of 125,796 Chinese words: ``vectors[word]`` is an array (100,), ``word in vectors`` tests for one."""

    def __init__(self, folder: Path) -> None:
        self.vectors: np.ndarray = np.load(folder / VECTORS, mmap_mode="r")
        words = (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")
        self.index: dict[str, int] = {word: row for row, word in enumerate(words)}
        self.stop: frozenset[str] = frozenset((folder / STOP).read_text(encoding="utf-8").split())

    def __contains__(self, word: str) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> np.ndarray:
        return self.vectors[self.index[word]]

    def __len__(self) -> int:
        return len(self.index)

    def read(self, text: str) -> Reading:
        """Cut a text into words. A word without a vector is read by its characters; numbers and stop words are dropped.

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
                # Characters of a Chinese word have a meaning of their own, letters of a Latin word have not.
                parts = [] if word.isascii() else [letter for letter in word if letter in self.index]
                known.extend(parts)
                unknown.extend([] if parts else [word])
        return Reading(tuple(known), tuple(unknown))

    @cached_property
    def _cut(self) -> Any:
        return _jieba().lcut


@cache
def words() -> WordVectors:
    """Load the Chinese word vectors of the package `synonyms`; they are converted when they are first used."""
    return WordVectors(made_once(PACKAGES["words"].mark, _convert))


def _jieba() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated functions it uses
            import jieba
    except ImportError as missing:
        raise MissingExtraError("Chinese is cut into words with jieba: pip install 'regard[models]'") from missing
    tokenizer: Any = jieba.Tokenizer()
    log = logging.getLogger("jieba")
    # It caches its dictionary, by default in a folder that all users share, where anybody could plant another.
    tokenizer.tmp_dir = str(cache_folder())
    level = log.level
    log.setLevel(logging.WARNING)
    tokenizer.initialize()
    log.setLevel(level)
    return tokenizer


def _convert(target: Path) -> None:
    source = find(PACKAGES["words"])
    words, vectors = read_word2vec(source)
    np.save(target / VECTORS, vectors)
    (target / VOCABULARY).write_text("\n".join(words), encoding="utf-8")
    shutil.copyfile(source.with_name(STOP), target / STOP)


def read_word2vec(path: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors (words, dim) of a binary word2vec file.

    The format: a line with the numbers of words and dimensions, then for each word its UTF-8 bytes, a space, and
    little-endian float32 numbers, which a line end may follow.
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
