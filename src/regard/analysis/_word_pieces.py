"""Tokens merged into words: parts of words as tokenizers write them, special tokens left out.

Which tokens make a word is read off the marks of the tokenizer: ▁ (SentencePiece) or Ġ (byte-level) before a word, ##
(WordPiece) before what continues one, @@ (subword-nmt) behind what is continued, </w> behind a word, or a space before
a word in decoded texts. Without any of these each token is a word. A Chinese character never continues a word.
WordPiece does not keep where spaces were around punctuation, so its words end there: can't is three words.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.datasets import tokenise

SPECIAL = re.compile(r"<(?!unk>)[^<>\s]+>|\[(?!UNK\])[A-Z]+\]|__\w+__|>>\w+<<")  # </s>, [SEP], __fr__, >>fra<<
UNKNOWN = re.compile(r"▁?<unk>|\[UNK\]")
UNKNOWN_LETTER = "\ue000"  # stands for an unknown token while words are cut: neither letter nor space
PART = re.compile(r"(.+) (\d+)/(\d+)")  # of a character that several tokens make, as recordings write it: 旷 2/3
HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


class Words(NamedTuple):
    """Words of a text, and how the tokens of the text belong to them."""

    texts: tuple[str, ...]
    shares: Float[Tensor, "tokens words"]  # share of the letters of a token that are in a word; 0 for special tokens


Read = Callable[[list[str]], "list[Piece]"]


class Piece(NamedTuple):
    """A token without the marks of its tokenizer."""

    text: str
    begins: bool  # True if a word begins with it


def merge(
    tokens: Sequence[str],
    language: str | None = None,
    *,
    special: Collection[int] | None = None,
    marked: Iterable[str] = (),
    cut_punctuation: bool = False,
) -> Words:
    """Merge tokens into words.

    language: cut the text of the tokens as `datasets.tokenise` does in this language; None keeps the words of the
        tokenizer. Tokens without marks are words in any case.
    special: positions of tokens that belong to no word; None recognises </s>, [SEP] and the like.
    marked: more tokens of the tokenizer, which show its marks: a text of one word may have none.
    cut_punctuation: with None as language, make a token of punctuation at the end of a word a word of its own.

    >>> merge(["▁mis", "took", "▁him", ".", "</s>"], cut_punctuation=True).texts
    ('mistook', 'him', '.')
    """
    if special is None:
        special = {i for i, token in enumerate(tokens) if SPECIAL.fullmatch(token.strip(" ▁Ġ"))}
    kept = [i for i in range(len(tokens)) if i not in special]
    read = _style([*tokens, *marked])
    pieces = _pieces([tokens[i] for i in kept], read)
    if language is None or read is _plain:
        words, ends = _words_by_marks(pieces, cut_punctuation), list(accumulate(len(piece.text) for piece in pieces))
    else:
        words, ends = _words_by_language(pieces, language)
    shares = torch.zeros(len(tokens), len(words))
    shares[kept] = _shares(torch.tensor([0, *ends]), torch.tensor([0, *accumulate(map(len, words))]))
    return Words(tuple(word.replace(UNKNOWN_LETTER, "<unk>") for word in words), shares)


def _shares(
    pieces: Int[Tensor, " piece_borders"], words: Int[Tensor, " word_borders"]
) -> Float[Tensor, "pieces words"]:
    """Share of the letters of each piece in each word, from where pieces and words begin and end in the text.

    A piece without letters belongs to the letter behind it.
    """
    start, end = pieces[:-1, None], pieces[1:, None]
    start = torch.where(start == end, start.clamp_max(words[-1] - 1), start)
    end = torch.maximum(end, start + 1)
    inside = torch.minimum(end, words[1:]) - torch.maximum(start, words[:-1])
    return inside.clamp_min(0) / (end - start)


def _words_by_marks(pieces: list[Piece], cut_punctuation: bool) -> list[str]:
    words: list[list[str]] = []
    for piece in pieces:
        if piece.begins or not words:
            words.append([])
        words[-1].append(piece.text)
    return [word for parts in words for word in (_cut(parts) if cut_punctuation else ["".join(parts)]) if word]


def _cut(parts: list[str]) -> list[str]:
    """A word, and each part of punctuation at its end."""
    end = len(parts)
    while end > 1 and parts[end - 1] and not any(map(str.isalnum, parts[end - 1])):
        end -= 1
    return ["".join(parts[:end]), *parts[end:]]


def _words_by_language(pieces: list[Piece], language: str) -> tuple[list[str], list[int]]:
    """Words of the whole text, and for each piece the number of letters up to its end."""
    prefixes = list(accumulate(f" {piece.text}" if piece.begins else piece.text for piece in pieces))
    words = tokenise(prefixes[-1], language) if prefixes else []
    return words, [len(tokenise(prefix, "digits")) for prefix in prefixes]  # all visible letters, one by one


# Marks of tokenizers


def _pieces(tokens: list[str], read: Read) -> list[Piece]:
    """Tokens without the marks of their tokenizer; where it has marks, no piece holds a space."""
    known = ["" if UNKNOWN.fullmatch(token) else token for token in tokens]
    pieces = [
        Piece(UNKNOWN_LETTER, begins=True) if UNKNOWN.fullmatch(token) else piece
        for token, piece in zip(tokens, read(known), strict=True)
    ]
    if read is _plain:
        return pieces
    last = ""
    for place, piece in enumerate(pieces):
        between = bool(HAN.match(piece.text)) or (bool(HAN.match(last)) and piece.text[:1].isalnum())
        text = "".join(piece.text.split())
        pieces[place] = Piece(text, piece.begins or place == 0 or between)
        last = text[-1:] or last
    return pieces


def _sentencepiece(tokens: list[str]) -> list[Piece]:
    # A ▁ alone begins a word too, which the next token continues.
    return [Piece(token.replace("▁", ""), token.startswith("▁")) for token in tokens]


def _byte_level(tokens: list[str]) -> list[Piece]:
    """Byte-level BPE writes each byte as a letter, Ġ for a space; a character may end in a later token."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoded = [decoder.decode(bytes(_byte_of_letter().get(c, 63) for c in token)) for token in tokens]
    return [Piece(text, token[:1] in "ĠĊĉ" and token != "") for text, token in zip(decoded, tokens, strict=True)]


def _wordpiece(tokens: list[str]) -> list[Piece]:
    return [Piece(token.removeprefix("##"), not token.startswith("##")) for token in tokens]


def _subword_nmt(tokens: list[str]) -> list[Piece]:
    before = ["", *tokens]
    return [
        Piece(token.removesuffix("@@"), not last.endswith("@@")) for last, token in zip(before, tokens, strict=False)
    ]


def _end_of_word(tokens: list[str]) -> list[Piece]:
    before = ["</w>", *tokens]
    return [
        Piece(token.removesuffix("</w>"), last.endswith("</w>")) for last, token in zip(before, tokens, strict=False)
    ]


def _decoded(tokens: list[str]) -> list[Piece]:
    """Texts of single tokens, words with the space before them; a character of several tokens is 旷 1/3, 旷 2/3 ..."""
    parts = [PART.fullmatch(token) for token in tokens]
    return [
        Piece(token if part is None else part[1] if part[2] == part[3] else "", token[:1].isspace())
        for token, part in zip(tokens, parts, strict=True)
    ]


def _plain(tokens: list[str]) -> list[Piece]:
    return [Piece(token, begins=True) for token in tokens]


STYLES: tuple[tuple[Callable[[str], bool], Read], ...] = (
    (lambda token: token.startswith("▁"), _sentencepiece),
    (lambda token: token.startswith(("Ġ", "Ċ")), _byte_level),
    (lambda token: token.startswith("##") and len(token) > 2, _wordpiece),
    (lambda token: token.endswith("@@") and len(token) > 2, _subword_nmt),
    (lambda token: token.endswith("</w>"), _end_of_word),
    (lambda token: token[:1].isspace() or PART.fullmatch(token) is not None, _decoded),
)


def _style(tokens: list[str]) -> Read:
    """How to read these tokens, by the marks that most of them have."""
    counts = [sum(map(is_used, tokens)) for is_used, _ in STYLES]
    return STYLES[counts.index(max(counts))][1] if any(counts) else _plain


@cache
def _byte_of_letter() -> dict[str, int]:
    """The byte that each letter of byte-level BPE stands for: printable Latin-1 for itself, the others from Ā on."""
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): byte for i, byte in enumerate(others)}
