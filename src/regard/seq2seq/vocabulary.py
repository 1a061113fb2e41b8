"""Vocabularies: texts as numbers of words, or of subwords that byte-pair encoding has learned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from regard.datasets import detokenise, tokenise
from regard.errors import ChoiceError, MissingExtraError

PAD, UNKNOWN, START, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
WORD_START = "▁"  # first character of a word's first subword, as SentencePiece writes it
MIN_COUNT = 2  # of a word or a merge in the training texts
BPE_LETTERS = 200  # different letters that byte-pair encoding knows at most; rarer ones are unknown


class Encoded(NamedTuple):
    """A text as numbers, and the tokens as they stand in it: an unknown one keeps its letters."""

    ids: list[int]
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by number. Numbers 0 to 3 are padding, the unknown token, the start and the end of a text.

    Without merges a token is a word, a mark of punctuation or, in Chinese, a character, as `datasets.tokenise` cuts
    them. With merges a token is a subword, and the first one of each word begins with ▁.

    >>> words = Vocabulary.of_words(["two hundred", "two"], size=100, language="en", lower=True, min_count=1)
    >>> words.encode("Two thousand")
    Encoded(ids=[4, 1], tokens=('two', 'thousand'))
    """

    tokens: tuple[str, ...]
    language: str
    lower: bool = False
    merges: tuple[tuple[str, str], ...] | None = None

    @classmethod
    def of_words(
        cls, texts: Iterable[str], size: int, language: str, *, lower: bool, min_count: int = MIN_COUNT
    ) -> Vocabulary:
        """The most frequent words of some texts."""
        counts = Counter(token for text in texts for token in tokenise(text.lower() if lower else text, language))
        ordered = sorted(counts, key=lambda token: (-counts[token], token))
        kept = [token for token in ordered if counts[token] >= min_count][: size - len(SPECIAL)]
        return cls((*SPECIAL, *kept), language, lower)

    @classmethod
    def of_subwords(
        cls, texts: Sequence[Iterable[str]], size: int, languages: Sequence[str], lower: Sequence[bool]
    ) -> tuple[Vocabulary, ...]:
        """One vocabulary of subwords for texts of several languages, as an object for each of them."""
        library = _tokenizers()
        model = library.Tokenizer(library.models.BPE(unk_token=SPECIAL[UNKNOWN]))
        model.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
        trainer = library.trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=MIN_COUNT,
            special_tokens=list(SPECIAL),
            limit_alphabet=BPE_LETTERS,
            show_progress=False,
        )
        sides = [cls(SPECIAL, language, low) for language, low in zip(languages, lower, strict=True)]
        corpus = (" ".join(_marked(side.words(text))) for side, part in zip(sides, texts, strict=True) for text in part)
        model.train_from_iterator(corpus, trainer)
        learned = json.loads(model.to_str())["model"]
        tokens = tuple(sorted(learned["vocab"], key=learned["vocab"].__getitem__))
        merges = tuple(tuple(m.split(" ") if isinstance(m, str) else m) for m in learned["merges"])
        return tuple(cls(tokens, side.language, side.lower, merges) for side in sides)  # pyright: ignore[reportArgumentType]

    def __len__(self) -> int:
        return len(self.tokens)

    def words(self, text: str) -> list[str]:
        """Words and punctuation of a text, in lower case if the vocabulary is."""
        return tokenise(text.lower() if self.lower else text, self.language)

    def encode(self, text: str) -> Encoded:
        """The tokens of a text and their numbers, without start and end."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: Iterable[str]) -> list[Encoded]:
        """The tokens and numbers of each text."""
        words = [self.words(text) for text in texts]
        if self.merges is None:
            return [Encoded(self.numbers(line), tuple(line)) for line in words]
        marked = [_marked(line) for line in words]
        found = self._model.encode_batch(marked, is_pretokenized=True, add_special_tokens=False)
        return [self._parts(line, encoding) for line, encoding in zip(marked, found, strict=True)]

    def _parts(self, words: list[str], encoding: Any) -> Encoded:
        ids, tokens = encoding.ids, encoding.tokens
        if UNKNOWN in ids:
            places = zip(ids, tokens, encoding.word_ids, encoding.offsets, strict=True)
            tokens = [words[word][slice(*span)] if i == UNKNOWN else token for i, token, word, span in places]
        return Encoded(list(ids), tuple(tokens))

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of tokens, as `encode` cut them."""
        return [self._numbers.get(token, UNKNOWN) for token in tokens]

    def text(self, tokens: Sequence[str]) -> str:
        """Tokens as ordinary writing."""
        if self.merges is not None:
            tokens = "".join(tokens).removeprefix(WORD_START).split(WORD_START) if tokens else []
        return detokenise([token for token in tokens if token], self.language)

    def count_known(self, encoded: Encoded) -> int:
        """The number of known tokens of a text that hold a letter or a digit."""
        tokens = (token for i, token in zip(*encoded, strict=True) if i != UNKNOWN)
        return sum(any(character.isalnum() for character in token) for token in tokens)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens) if i >= len(SPECIAL)}

    @cached_property
    def _model(self) -> Any:
        library = _tokenizers()
        numbers = {token: i for i, token in enumerate(self.tokens)}
        bpe = library.models.BPE(
            vocab=numbers, merges=list(self.merges or ()), unk_token=SPECIAL[UNKNOWN], fuse_unk=True
        )
        return library.Tokenizer(bpe)

    def to_json(self) -> dict[str, Any]:
        """The vocabulary as values that JSON can hold."""
        merges = None if self.merges is None else [" ".join(pair) for pair in self.merges]
        return {"tokens": list(self.tokens), "language": self.language, "lower": self.lower, "merges": merges}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Vocabulary:
        """The vocabulary of `to_json`."""
        merges = values["merges"]
        pairs = None if merges is None else tuple(tuple(pair.split(" ")) for pair in merges)
        return cls(tuple(values["tokens"]), values["language"], values["lower"], pairs)  # pyright: ignore[reportArgumentType]


class Vocabularies(NamedTuple):
    """The vocabularies of both sides, which have the same tokens if `shared`."""

    source: Vocabulary
    target: Vocabulary

    @property
    def shared(self) -> bool:
        """True if both sides have one table of embeddings."""
        return self.source.merges is not None and self.source.tokens == self.target.tokens


FEW_WORDS = 1_000  # different target words up to which "auto" chooses words, and not subwords


def learn(
    pairs: Any, kind: str = "auto", size: int = 4_000, *, lower_source: bool = True, lower_target: bool = False
) -> Vocabularies:
    """Learn the vocabularies of both sides from pairs of texts.

    kind: "words"; "bpe" for subwords by byte-pair encoding, one table for both sides; "auto" takes words if there are
        few of them, as for numbers, and subwords otherwise.
    size: tokens of a vocabulary at most.
    """
    if kind not in {"auto", "words", "bpe"}:
        raise ChoiceError(f"vocabulary is 'auto', 'words' or 'bpe', and came as {kind!r}")
    if size <= len(SPECIAL):
        raise ChoiceError(f"a vocabulary needs more than its {len(SPECIAL)} special tokens, and size came as {size}")
    languages = pairs.source_language, pairs.target_language
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if kind != "bpe":
        source = Vocabulary.of_words(sources, size, languages[0], lower=lower_source)
        target = Vocabulary.of_words(targets, size, languages[1], lower=lower_target)
        if kind == "words" or len(target) <= FEW_WORDS:
            return Vocabularies(source, target)
    return Vocabularies(*Vocabulary.of_subwords((sources, targets), size, languages, (lower_source, lower_target)))


def _marked(words: Iterable[str]) -> list[str]:
    return [WORD_START + word for word in words]


def _tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as missing:
        raise MissingExtraError("subwords need tokenizers: pip install 'regard[translation]'") from missing
    return tokenizers
