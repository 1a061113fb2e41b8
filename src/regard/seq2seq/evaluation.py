"""Evaluation: exact matches, BLEU, chrF and alignment error rate, also by the length of the source."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.analysis import Table
from regard.datasets import Alignment, Pair, Pairs, tokenise
from regard.errors import ChoiceError, DataError, MissingExtraError
from regard.seq2seq import decoding
from regard.seq2seq.network import EncoderDecoder
from regard.seq2seq.transformer import TransformerDecoder

TOKENISERS = {"zh": "zh", "digits": "char"}  # of sacreBLEU, by language; all others have "13a"
LAYER_PAIRS = 200  # on which the layer that aligns best is chosen
ALIGNED_PAIRS = 1_000  # with gold links that are aligned at most


class Sentence(NamedTuple):
    """One source with its translation, all its references, and the gold links of each."""

    source: str
    words: int  # of the source
    translation: str
    references: tuple[str, ...]
    links: tuple[tuple[set[tuple[int, int]], Any], ...]  # links that were found for a reference, and its gold alignment


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

    columns = LengthRow._fields
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
        return self._row("", self.sentences).bleu

    @property
    def bleu_single(self) -> float:
        """BLEU with one reference for each pair."""
        pairs = [(one.translation, reference) for one in self.sentences for reference in one.references]
        return self._bleu([hypothesis for hypothesis, _ in pairs], [[reference for _, reference in pairs]])

    @property
    def chrf(self) -> float:
        """The character F-score chrF with all references."""
        return self._row("", self.sentences).chrf

    @property
    def alignment_error_rate(self) -> float:
        """Alignment error rate of the references; NaN where no gold links are known."""
        return error_rate([found for one in self.sentences for found in one.links])

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
        hypotheses = [one.translation for one in sentences]
        most = max(len(one.references) for one in sentences)
        references = [
            [one.references[i] if i < len(one.references) else None for one in sentences] for i in range(most)
        ]
        return LengthRow(
            name,
            len(sentences),
            _exact_match(sentences),
            self._bleu(hypotheses, references),
            _sacrebleu().CHRF(lowercase=True).corpus_score(hypotheses, references).score,
            error_rate([found for one in sentences for found in one.links]),
        )

    def _bleu(self, hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> float:
        metric = _sacrebleu().BLEU(lowercase=True, tokenize=TOKENISERS.get(self.target_language, "13a"))
        return metric.corpus_score(hypotheses, references).score

    def __repr__(self) -> str:
        found = f"{len(self.sentences):,} sentences, exact match {100 * self.exact_match:.1f} %"
        rate = self.alignment_error_rate
        aligned = "" if math.isnan(rate) else f", AER {rate:.3f}"
        return f"<Evaluation: {found}, BLEU {self.bleu:.1f}, chrF {self.chrf:.1f}{aligned}>"


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
    found = decoding.translate(model, sources, beam=beam, length_penalty=length_penalty)
    links = _links(model, [pair for group in grouped.values() for pair in group])
    sentences = [
        Sentence(
            source,
            len(tokenise(source, model.known.source.language)),
            translation.text,
            tuple(pair.target for pair in group),
            tuple(links[pair] for pair in group if pair in links),
        )
        for source, translation, group in zip(sources, found, grouped.values(), strict=True)
    ]
    return Evaluation(tuple(sentences), language)


def _links(model: EncoderDecoder, pairs: Sequence[Pair]) -> dict[Pair, tuple[set[tuple[int, int]], Any]]:
    """Links of the references with gold alignment, by pair."""
    golden = [pair for pair in pairs if pair.alignment is not None][:ALIGNED_PAIRS]
    source, target = model.known
    if not golden or source.merges is not None or target.merges is not None:
        return {}
    forced = decoding.align(model, golden)
    return {
        pair: (links_of(one.weights.dense()), pair.alignment)
        for pair, one in zip(golden, forced, strict=True)
        if one.weights is not None
    }


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


# Alignment


def links_of(weights: Float[Tensor, "... target source"]) -> set[tuple[int, int]]:
    """(source, target) for each target token with its largest weight; heads are averaged."""
    mean = weights if weights.dim() == 2 else weights.mean(0)
    return {(source, target) for target, source in enumerate(mean.argmax(-1).tolist())}


def error_rate(found: list[tuple[set[tuple[int, int]], Alignment]]) -> float:
    """Alignment error rate 1 - (|A ∩ S| + |A ∩ (S ∪ P)|) / (|A| + |S|) over all sentences (Och and Ney 2003)."""
    hits = total = 0
    for aligned, gold in found:
        sure = set(gold.sure)
        hits += len(aligned & sure) + len(aligned & (sure | set(gold.possible)))
        total += len(aligned) + len(sure)
    return 1 - hits / total if total else float("nan")


def information(weights: Float[Tensor, "... target source"]) -> float:
    """Mutual information of target and source position, in nats: entropy of the mean row less the mean entropy.

    It is 0 if all target tokens attend to the same source tokens, and the logarithm of the length at most.
    """
    mean = weights if weights.dim() == 2 else weights.mean(0)
    return float(torch.special.entr(mean.mean(0)).sum() - torch.special.entr(mean).sum(-1).mean())


def best_layer(model: EncoderDecoder, pairs: Pairs) -> int:
    """The layer of a Transformer whose weights align best: the least error rate, or the most information."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)  # noqa: S101  others have one layer
    before, chosen = decoder.aligned_layer, pairs[:LAYER_PAIRS]
    scores: list[float] = []
    try:
        for layer in range(len(decoder.layers)):
            decoder.aligned_layer = layer
            scores.append(_merit(model, chosen))
    finally:
        decoder.aligned_layer = before
    return max(range(len(scores)), key=scores.__getitem__)


def _merit(model: EncoderDecoder, pairs: Pairs) -> float:
    forced = [one.weights for one in decoding.align(model, pairs)]
    dense = [(weights.dense(), pair) for weights, pair in zip(forced, pairs, strict=True) if weights is not None]
    golden = [(links_of(weights), pair.alignment) for weights, pair in dense if pair.alignment is not None]
    if golden:
        return -error_rate(golden)
    return sum(information(weights) for weights, _ in dense) / max(1, len(dense))
