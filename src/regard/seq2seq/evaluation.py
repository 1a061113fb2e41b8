"""Evaluation: exact matches, BLEU, chrF and alignment error rate, also by the length of the source."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from regard.analysis import Table, WordAlignment, align_all, alignment_error_rate, alignment_heads
from regard.datasets import Alignment, Pair, Pairs, tokenise
from regard.errors import ChoiceError, DataError, MissingExtraError
from regard.seq2seq import decoding
from regard.seq2seq.decoding import Translation
from regard.seq2seq.network import EncoderDecoder
from regard.seq2seq.transformer import TransformerDecoder

TOKENISERS = {"zh": "zh", "digits": "char"}  # of sacreBLEU, by language; all others have "13a"
LAYER_PAIRS = 200  # on which the layer that aligns best is chosen
ALIGNED_PAIRS = 1_000  # with gold links that are aligned at most


References = Sequence[Sequence[str | None]]  # the first, second, ... reference of each sentence


class Sentence(NamedTuple):
    """One source with its translation, all its references, and the gold links of each."""

    source: str
    words: int  # of the source
    translation: str
    references: tuple[str, ...]
    alignments: tuple[tuple[WordAlignment, Alignment], ...]  # the model's alignment of a reference, and the gold one


class LengthRow(NamedTuple):
    """Quality of the translations of sources of similar length."""

    words: str  # of the source, "1-10"
    sentences: int
    exact_match: float  # share that equals a reference
    bleu: float
    chrf: float
    alignment_error_rate: float  # NaN where no gold links are known


class LengthTable(Table[LengthRow]):
    """Quality by the length of the source, a row for each range of lengths."""

    columns: ClassVar[tuple[str, ...]] = LengthRow._fields
    _titles: ClassVar[dict[str, str]] = {
        "exact_match": "exact match", "bleu": "BLEU", "chrf": "chrF", "alignment_error_rate": "AER",
    }  # fmt: skip
    _formats: ClassVar[dict[str, Any]] = {
        "exact_match": lambda share: f"{100 * share:.1f} %",
        "bleu": lambda value: f"{value:.1f}",
        "chrf": lambda value: f"{value:.1f}",
        "alignment_error_rate": lambda value: "" if math.isnan(value) else f"{value:.3f}",
    }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Translations of some pairs beside their references.

    BLEU and chrF are those of sacreBLEU, in lower case, with all references of equal sources. `bleu_single` has one
    reference for each pair, and the same translation as often as its source occurs.
    """

    sentences: tuple[Sentence, ...]
    target_language: str

    @property
    def exact_match(self) -> float:
        """Share of translations that equal a reference, in lower case and up to spaces."""
        return _exact_match(self.sentences)

    @property
    def bleu(self) -> float:
        """BLEU with all references."""
        return self._bleu(*_with_references(self.sentences))

    @property
    def bleu_single(self) -> float:
        """BLEU with one reference for each pair."""
        pairs = [(one.translation, reference) for one in self.sentences for reference in one.references]
        return self._bleu([hypothesis for hypothesis, _ in pairs], [[reference for _, reference in pairs]])

    @property
    def chrf(self) -> float:
        """The character F-score chrF with all references."""
        return _chrf(*_with_references(self.sentences))

    @property
    def alignment_error_rate(self) -> float:
        """Alignment error rate of the references; NaN where no gold links are known."""
        return _error_rate(self.sentences)

    def by_length(self, width: int = 10) -> LengthTable:
        """A table with a row for each range of source lengths, `width` words wide: 1-10, 11-20, ..."""
        if width < 1:
            raise ChoiceError(f"width is a number of words, 1 or more, and came as {width}")
        bins: dict[int, list[Sentence]] = {}
        for sentence in self.sentences:
            bins.setdefault((sentence.words - 1) // width, []).append(sentence)
        names = {number: f"{number * width + 1}-{(number + 1) * width}" for number in bins}
        return LengthTable(tuple(self._row(names[number], bins[number]) for number in sorted(bins)))

    def _row(self, name: str, sentences: Sequence[Sentence]) -> LengthRow:
        hypotheses, references = _with_references(sentences)
        return LengthRow(
            name,
            len(sentences),
            _exact_match(sentences),
            self._bleu(hypotheses, references),
            _chrf(hypotheses, references),
            _error_rate(sentences),
        )

    def _bleu(self, hypotheses: Sequence[str], references: References) -> float:
        metric = _sacrebleu().BLEU(lowercase=True, tokenize=TOKENISERS.get(self.target_language, "13a"))
        return metric.corpus_score(hypotheses, references).score

    def __repr__(self) -> str:
        row = self._row("", self.sentences)
        exact = f"{row.sentences:,} sentences, exact match {100 * row.exact_match:.1f} %"
        aligned = "" if math.isnan(row.alignment_error_rate) else f", AER {row.alignment_error_rate:.3f}"
        return f"<Evaluation: {exact}, BLEU {row.bleu:.1f}, chrF {row.chrf:.1f}{aligned}>"


def evaluate(
    model: EncoderDecoder,
    pairs: Sequence[Pair] | Sequence[tuple[str, str]],
    *,
    beam: int = 4,
    length_penalty: float = 1.0,
) -> Evaluation:
    """Translate the sources of some pairs and compare with the targets; equal sources are translated once.

    Where pairs have gold links, the references themselves are aligned for the alignment error rate, for at most 1,000
    pairs and if the model has attention and whole words for tokens.
    """
    _sacrebleu()
    language = pairs.target_language if isinstance(pairs, Pairs) else model.known.target.language
    grouped: dict[str, list[Pair]] = {}
    for pair in pairs:
        grouped.setdefault(_plain(pair[0]), []).append(pair if isinstance(pair, Pair) else Pair(*pair))
    if not grouped:
        raise DataError("there are no pairs to evaluate on")
    sources = [group[0].source for group in grouped.values()]
    translations = decoding.translate(model, sources, beam=beam, length_penalty=length_penalty)
    aligned = _align_references(model, [pair for group in grouped.values() for pair in group])
    sentences = [
        Sentence(
            source,
            len(tokenise(source, model.known.source.language)),
            translation.text,
            tuple(pair.target for pair in group),
            tuple(aligned[pair] for pair in group if pair in aligned),
        )
        for source, translation, group in zip(sources, translations, grouped.values(), strict=True)
    ]
    return Evaluation(tuple(sentences), language)


def _exact_match(sentences: Sequence[Sentence]) -> float:
    hits = sum(_plain(one.translation) in {_plain(reference) for reference in one.references} for one in sentences)
    return hits / len(sentences)


def _plain(text: str) -> str:
    """A text in NFKC and lower case with single spaces: what counts as the same sentence."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError as missing:
        raise MissingExtraError("evaluation needs sacrebleu: pip install 'regard[translation]'") from missing
    return sacrebleu


def _with_references(sentences: Sequence[Sentence]) -> tuple[list[str], References]:
    """Translations, and their first, second, ... references; None where a sentence has fewer."""
    most = max(len(one.references) for one in sentences)
    references = [[one.references[i] if i < len(one.references) else None for one in sentences] for i in range(most)]
    return [one.translation for one in sentences], references


def _chrf(hypotheses: Sequence[str], references: References) -> float:
    return _sacrebleu().CHRF(lowercase=True).corpus_score(hypotheses, references).score


# Alignment


def _error_rate(sentences: Sequence[Sentence]) -> float:
    both = [pair for one in sentences for pair in one.alignments]
    return alignment_error_rate([found for found, _ in both], [gold for _, gold in both]) if both else math.nan


def _align_references(model: EncoderDecoder, pairs: Sequence[Pair]) -> dict[Pair, tuple[WordAlignment, Alignment]]:
    """The model's alignment of the references whose gold alignment is known, beside the gold one."""
    golden = {pair: pair.alignment for pair in pairs if pair.alignment is not None}
    source, target = model.known
    if not golden or source.merges is not None or target.merges is not None:
        return {}
    attended = _attended(model, list(golden)[:ALIGNED_PAIRS])
    aligned = align_all(list(attended.values()), heads="mean") if attended else []
    return {pair: (found, golden[pair]) for pair, found in zip(attended, aligned, strict=True)}


def _attended(model: EncoderDecoder, pairs: Sequence[Pair]) -> dict[Pair, Translation]:
    """The references as translations with weights, by pair; none without attention."""
    forced = zip(pairs, decoding.align(model, pairs), strict=True)
    return {pair: translation for pair, translation in forced if translation.weights is not None}


def best_layer(model: EncoderDecoder, pairs: Pairs) -> int:
    """The layer of a Transformer whose weights align best: the least error rate, or the most mutual information."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)  # noqa: S101  others have one layer
    before, chosen = decoder.aligned_layer, pairs[:LAYER_PAIRS]
    scores: list[float] = []
    try:
        for layer in range(len(decoder.layers)):
            decoder.aligned_layer = layer
            scores.append(_alignment_score(_attended(model, chosen)))
    finally:
        decoder.aligned_layer = before
    return max(range(len(scores)), key=scores.__getitem__)


def _alignment_score(attended: dict[Pair, Translation]) -> float:
    """The larger, the better: less the error rate if gold links are known, else the mutual information of positions."""
    golden = {pair: pair.alignment for pair in attended if pair.alignment is not None}
    if golden:
        return -alignment_error_rate(align_all([attended[pair] for pair in golden], heads="mean"), [*golden.values()])
    return alignment_heads(list(attended.values()), heads="mean")[0].information if attended else 0.0
