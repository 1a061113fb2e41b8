"""Word alignment: which word of the source each word of a translation comes from, read off attention weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.analysis._layer_weights import Patterns
from regard.analysis._table import Formats, HeadwiseTable
from regard.analysis._word_weights import Reading, Sentence, sentences_of
from regard.datasets import Alignment, Link, Links, alignment_error_rate
from regard.display.progress import progress
from regard.errors import ChoiceError, ShapeError

Heads = int | Sequence[int] | str | None
Languages = tuple[str | None, str | None]
MAX_SHOWN = 12  # links in a repr


@dataclass(frozen=True, eq=False, repr=False)
class WordAlignment:
    """Links between the words of a text and of its translation, and the weights that they were read from."""

    links: tuple[Link, ...]  # (source word, target word), counted from 0, in order
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    weights: Float[Tensor, "target source"]  # between words; what is missing in a row went to special tokens
    layer: str  # that was read; "weights" for a translation
    head: int | None  # None: the mean of the heads

    @property
    def word_pairs(self) -> tuple[tuple[str, str], ...]:
        """The linked words as texts, (source word, target word)."""
        return tuple((self.source_words[i], self.target_words[j]) for i, j in self.links)

    def pharaoh(self) -> str:
        """The links in the Pharaoh format, source-target: `0-0 1-2`."""
        return Alignment(self.links).pharaoh()

    def error_rate(self, gold: Links) -> float:
        """Alignment error rate against gold links; see `analysis.alignment_error_rate`."""
        return alignment_error_rate(self, self.checked_gold(gold))

    def checked_gold(self, gold: Links) -> Alignment:
        """Gold links, after a check that they are links between these words."""
        return _checked(gold, len(self.source_words), len(self.target_words))

    def __repr__(self) -> str:
        read = f"{self.layer}, {'mean of heads' if self.head is None else f'head {self.head}'}"
        first = " ".join(f"{a}-{b}" for a, b in self.word_pairs[:MAX_SHOWN])
        more = " ..." if len(self.links) > MAX_SHOWN else ""
        return f"<WordAlignment by {read}: {first}{more}>"


class AlignmentHeadRow(NamedTuple):
    """How well one head aligns; head None is the mean of the heads of a layer."""

    layer: str
    head: int | None
    information: float  # of source and target position, in nats: 0 if all target words look at the same words
    error_rate: float  # NaN without gold links


@dataclass(frozen=True, repr=False)
class AlignmentHeadTable(HeadwiseTable[AlignmentHeadRow]):
    """How well each head aligns, the best first."""

    columns: ClassVar[tuple[str, ...]] = AlignmentHeadRow._fields
    _titles: ClassVar[dict[str, str]] = {"error_rate": "error rate"}
    _formats: ClassVar[Formats] = {
        "head": lambda head: "mean" if head is None else str(head),
        "error_rate": lambda rate: "" if math.isnan(rate) else f"{rate:.4f}",
    }


def align(
    attended: Any,
    *,
    gold: Links | None = None,
    layers: Patterns = None,
    heads: Heads = None,
    links: str | float = "best",
    row: int = 0,
    step: int | None = None,
    shift: int | None = None,
    tokens: Sequence[str] | None = None,
    source_tokens: Sequence[str] | None = None,
    tokenizer: Any = None,
    languages: Languages = (None, None),
) -> WordAlignment:
    """Align the words of a translation with those of its source by what the decoder attended to.

    attended: what `model.translate` returns, or any object with `weights` (tokens, source tokens), perhaps with heads
        before, `tokens` and `source_tokens`; or a `regard.Recording` of an encoder-decoder (T5, BART, Marian, Whisper).

    Parts of words are merged: a weight between words is the sum over the tokens of the source word, and the mean over
    those of the target word. Tokens that are no words, such as </s>, are left out. A recorded decoder reads at position
    i what it wrote before, and writes token i + 1; that row is taken for token i + 1.

    layers, heads: which ones may be read; names with * and ?, numbers, or heads="mean". Of several the best is taken,
        and the mean of all heads of a layer is among them: the one with the least error rate if there are gold links,
        else the one with the largest mutual information between positions of source and target. A head that looks at
        one place for all words has none. `alignment_heads` lists them all.
    gold: links to choose by; for a fair error rate choose on other sentences, with `align_all`.
    links: "best" links each target word to the source word with the largest weight; "mutual" keeps those that are also
        the best target word of their source word; a number keeps all links with at least this weight.
    row, step: the sequence of the batch and the forward pass in a recording.
    shift: 1 (for recordings) takes the row at which a word was produced, 0 the row at which it was read.
    tokens, source_tokens: what each row produced and each column is, instead of what is known.
    tokenizer: knows the tokens of a recording that was made without one, or opened from a file.
    languages: (source, target), such as ("en", "fr"): cut words as `datasets.tokenise` does, as gold links count them.
        Without it words are those of the tokenizer, and in a recording punctuation is cut off their ends.

    >>> from types import SimpleNamespace
    >>> weights = torch.tensor([[0.1, 0.1, 0.8], [0.9, 0.1, 0.0]])
    >>> t = SimpleNamespace(weights=weights, tokens=["chat", "noir"], source_tokens=["▁bl", "ack", "▁cat"])
    >>> align(t).word_pairs, align(t).pharaoh()
    ((('black', 'noir'), ('cat', 'chat')), '0-1 1-0')
    """
    reading = Reading(step, shift, tokens, source_tokens, tokenizer, languages)
    sentences = sentences_of(attended, layers, _checked_reading(reading), row)
    if len(sentences) != 1:
        raise ShapeError(f"align takes one translation, {len(sentences)} came: align_all takes several")
    return _align(sentences, None if gold is None else [gold], heads, links)[0]


def align_all(
    attended: Any,
    *,
    gold: Sequence[Links] | None = None,
    layers: Patterns = None,
    heads: Heads = None,
    links: str | float = "best",
    step: int | None = None,
    shift: int | None = None,
    tokenizer: Any = None,
    languages: Languages = (None, None),
) -> list[WordAlignment]:
    """Align several translations, or every sequence of a recording, all by one head: the best for all together.

    gold: gold links for each translation. The other arguments are those of `align`.
    """
    reading = Reading(step, shift, tokenizer=tokenizer, languages=languages)
    return _align(sentences_of(attended, layers, _checked_reading(reading), None), gold, heads, links)


def alignment_heads(
    attended: Any,
    *,
    gold: Sequence[Links] | None = None,
    layers: Patterns = None,
    heads: Heads = None,
    links: str | float = "best",
    step: int | None = None,
    shift: int | None = None,
    tokenizer: Any = None,
    languages: Languages = (None, None),
) -> AlignmentHeadTable:
    """List how well each head aligns, the best first: most heads of a decoder do not align.

    attended: a translation, several, or a recording, all sequences of which count. gold: links for each of them. The
    other arguments are those of `align`.

    The mutual information of positions is the entropy of the mean row of weights less the mean entropy of the rows, in
    nats: 0 if all target words look at the same source words, the logarithm of their number if each looks at its own.
    """
    reading = Reading(step, shift, tokenizer=tokenizer, languages=languages)
    sentences = sentences_of(attended, layers, _checked_reading(reading), None)
    return AlignmentHeadTable(tuple(_ranked(sentences, gold, heads, links)))


def _checked_reading(reading: Reading) -> Reading:
    if reading.shift not in {None, 0, 1}:
        raise ChoiceError(
            f"shift must be 1, the row that produced a word, or 0, the row that read it; {reading.shift!r} came"
        )
    languages: Any = reading.languages
    if isinstance(languages, str) or len(languages) != 2:
        raise ChoiceError(f"languages are those of source and target, such as ('en', 'fr'); {languages!r} came")
    return reading


def _align(sentences: list[Sentence], gold: Any, heads: Heads, links: str | float) -> list[WordAlignment]:
    best = _ranked(sentences, gold, heads, links)[0]
    found: list[WordAlignment] = []
    for sentence in sentences:
        weights = sentence.word_weights(best.layer)
        matrix = weights.mean(0) if best.head is None else weights[best.head]
        source, target = sentence.source.texts, sentence.target.texts
        found.append(WordAlignment(_links(matrix, links), source, target, matrix, best.layer, best.head))
    return found


def _ranked(sentences: list[Sentence], gold: Any, heads: Heads, links: str | float) -> list[AlignmentHeadRow]:
    """Every head that may be read, the best first."""
    if not sentences:
        raise ShapeError("there are no translations to align")
    if gold is not None and len(gold) != len(sentences):
        raise ShapeError(f"gold has links for each translation: {len(sentences)} translations, {len(gold)} came")
    golden = [
        None if one is None else _checked(one, len(sentence.source.texts), len(sentence.target.texts))
        for one, sentence in zip(gold or [None] * len(sentences), sentences, strict=True)
    ]
    rows: list[AlignmentHeadRow] = []
    with progress("measuring heads", len(sentences[0].layers)) as advance:
        for layer in sentences[0].layers:
            rows += _measured(layer, [s.word_weights(layer) for s in sentences], golden, heads, links)
            advance()
    if gold is None:
        return sorted(rows, key=lambda row: -row.information)
    return sorted(rows, key=lambda row: (row.error_rate, -row.information))


def _measured(
    layer: str, weights: list[Tensor], golden: list[Alignment | None], heads: Heads, links: str | float
) -> list[AlignmentHeadRow]:
    """One row for each head of a layer, and for their mean."""
    rows: list[AlignmentHeadRow] = []
    for head in _candidates(heads, len(weights[0]), layer):
        matrices = [one.mean(0) if head is None else one[head] for one in weights]
        information = sum(_information(matrix) for matrix in matrices) / len(matrices)
        known = [(_links(m, links), gold) for m, gold in zip(matrices, golden, strict=True) if gold is not None]
        rate = alignment_error_rate([a for a, _ in known], [b for _, b in known]) if known else math.nan
        rows.append(AlignmentHeadRow(layer, head, information, rate))
    return rows


def _candidates(heads: Heads, count: int, layer: str) -> list[int | None]:
    if heads == "mean":
        return [None]
    if heads is None:
        return [*range(count), *([None] if count > 1 else [])]
    wanted = [heads] if isinstance(heads, int) else list(heads)
    if not wanted or not all(isinstance(head, int) and -count <= head < count for head in wanted):
        raise ChoiceError(f"heads={heads!r} chooses none of the {count} heads of {layer}; or take heads='mean'")
    return [head % count for head in wanted if isinstance(head, int)]


def _information(weights: Float[Tensor, "target source"]) -> float:
    """Mutual information of target and source position; the weight on special tokens is one more position."""
    if not len(weights):
        return 0.0
    rest = (1 - weights.sum(-1, keepdim=True)).clamp_min(0)
    rows = torch.cat([weights, rest], -1).double()
    return float(torch.special.entr(rows.mean(0)).sum() - torch.special.entr(rows).sum(-1).mean())


def _links(weights: Float[Tensor, "target source"], rule: str | float) -> tuple[Link, ...]:
    """Links (source, target) of a matrix of weights; a row without weights has none."""
    if isinstance(rule, str):
        if rule not in {"best", "mutual"}:
            raise ChoiceError(f"links must be 'best', 'mutual' or the least weight of a link; {rule!r} came")
        chosen = torch.zeros_like(weights, dtype=torch.bool)
        if weights.numel():
            chosen.scatter_(1, weights.argmax(1, keepdim=True), True)
            if rule == "mutual":
                chosen &= torch.zeros_like(chosen).scatter_(0, weights.argmax(0, keepdim=True), True)
        chosen &= weights > 0
    else:
        if not 0 < rule <= 1:
            raise ChoiceError(f"the least weight of a link is above 0 and at most 1; {rule} came")
        chosen = weights >= rule
    return tuple(sorted((source, target) for target, source in chosen.nonzero().tolist()))


def _checked(gold: Links, source: int, target: int) -> Alignment:
    links = Alignment.of(gold)
    outside = [link for link in (*links.sure, *links.possible) if link[0] >= source or link[1] >= target]
    if outside:
        i, j = outside[0]
        raise ShapeError(
            f"gold has a link {i}-{j}, and there are {source} source and {target} target words: are these the same "
            "texts, cut into the same words? languages=('en', 'fr') cuts them as regard.datasets does"
        )
    return links
