"""How well weights align: alignment error rate where gold links are known, mutual information where they are not."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.datasets import Alignment, Pairs
from regard.seq2seq import decoding
from regard.seq2seq.model import TranslationModel
from regard.seq2seq.transformer import TransformerDecoder

MAX_PAIRS = 200  # on which the layer that aligns best is chosen


def links(weights: Float[Tensor, "... target source"]) -> set[tuple[int, int]]:
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


def best_layer(model: TranslationModel, pairs: Pairs) -> int:
    """The layer of a Transformer whose weights align best: the least error rate, or the most information."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)  # noqa: S101  others have one layer
    before, chosen = decoder.aligned_layer, pairs[:MAX_PAIRS]
    scores: list[float] = []
    try:
        for layer in range(len(decoder.layers)):
            decoder.aligned_layer = layer
            scores.append(_merit(model, chosen))
    finally:
        decoder.aligned_layer = before
    return max(range(len(scores)), key=scores.__getitem__)


def _merit(model: TranslationModel, pairs: Pairs) -> float:
    forced = [one.weights for one in decoding.align(model, pairs)]
    dense = [(weights.dense(), pair) for weights, pair in zip(forced, pairs, strict=True) if weights is not None]
    golden = [(links(weights), pair.alignment) for weights, pair in dense if pair.alignment is not None]
    if golden:
        return -error_rate(golden)
    return sum(information(weights) for weights, _ in dense) / max(1, len(dense))
