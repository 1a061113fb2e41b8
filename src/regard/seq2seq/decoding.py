"""Decoding: translations by beam search, many sentences at a time, with the weights of the chosen one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import log_softmax

from regard.display.labels import Labels, WeightLabels, labels_of_batch
from regard.errors import ChoiceError, DataError, UnknownTextError
from regard.seq2seq.batches import padded
from regard.seq2seq.network import EncoderDecoder
from regard.seq2seq.recurrent import Memory
from regard.seq2seq.vocabulary import END, PAD, START, UNKNOWN, Encoded
from regard.term import type_name
from regard.weights import Weights, matrix_of, weights_of

BATCH_TOKENS = 4_096  # source tokens times beams that are decoded at once
EXTRA_TOKENS, TOKENS_PER_TOKEN = 10, 2  # a translation has at most 2 m + 10 tokens, for m tokens of the source
MAX_SOURCE_TOKENS = 4_096
SURROGATES = re.compile(r"[\ud800-\udfff]")  # halves of a character, which no file can hold


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation: its text, how likely the model finds it, and what was attended for each token."""

    text: str  # ordinary writing
    score: float  # sum of the log-probabilities of its tokens and of its end
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    weights: Weights | None = field(repr=False)  # (tokens, source tokens), for a Transformer (heads, ., .)
    finished: bool = True  # False if it was cut at the largest number of tokens

    def __str__(self) -> str:
        return self.text


class Hypothesis(NamedTuple):
    """Tokens of a translation without its end, the sum of their log-probabilities, and whether it came to its end."""

    ids: list[int]
    score: float
    finished: bool


def translate(
    model: EncoderDecoder,
    texts: Sequence[str],
    *,
    beam: int = 4,
    length_penalty: float = 1.0,
    replace_unknown: bool = False,
    max_tokens: int | None = None,
) -> list[Translation]:
    """Translate texts by beam search.

    beam: hypotheses that are kept; 1 is greedy search.
    length_penalty: the best hypothesis has the largest score / length^length_penalty; 0 compares the scores themselves.
    replace_unknown: put the source token with the largest weight in place of an unknown token (Luong et al. 2015).
    max_tokens: of a translation; twice the source and 10 more if None.

    An empty text has an empty translation.
    """
    if not isinstance(beam, int) or beam < 1:
        raise ChoiceError(f"beam is a number of hypotheses, 1 or more, and came as {beam!r}")
    if not isinstance(length_penalty, int | float) or not 0 <= length_penalty < math.inf:
        raise ChoiceError(f"length_penalty is a number, 0 or more, and came as {length_penalty!r}")
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise ChoiceError(f"max_tokens is a number of tokens, 1 or more, or None, and came as {max_tokens!r}")
    if replace_unknown and model.settings.get("attention") == "none":
        raise ChoiceError("replace_unknown copies the source token with the largest weight, but attention is 'none'")
    beam = int(beam)
    encoded = [_encoded(model, text) for text in texts]
    found: list[Translation] = [Translation("", 0.0, (), (), None)] * len(texts)
    with _evaluating(model):
        for chosen in _groups([len(one.ids) for one in encoded], beam):
            memory = _memory(model, [encoded[i].ids for i in chosen])
            best = search(model, memory, beam, length_penalty, max_tokens)
            parts = _explained(model, memory, best, [encoded[i] for i in chosen], replace_unknown=replace_unknown)
            for place, translation in zip(chosen, parts, strict=True):
                found[place] = translation
    return found


def align(model: EncoderDecoder, pairs: Sequence[Sequence[Any]]) -> list[Translation]:
    """The second text of each pair as a translation of the first: its score, and weights for its own tokens."""
    vocabularies = model.known
    for source, target, *_ in pairs:
        _check_text(source)
        _check_text(target)
    sources = [_encoded(model, source) for source, *_ in pairs]
    targets = vocabularies.target.encode_all(target for _, target, *_ in pairs)
    found: list[Translation] = [Translation("", 0.0, (), (), None)] * len(pairs)
    with _evaluating(model):
        for chosen in _groups([len(one.ids) for one in sources], 1):
            memory = _memory(model, [sources[i].ids for i in chosen])
            kept = [Hypothesis(targets[i].ids, 0.0, finished=True) for i in chosen]
            scored = _scored(model, memory, kept)
            parts = _explained(model, memory, scored, [sources[i] for i in chosen])
            for place, translation in zip(chosen, parts, strict=True):
                found[place] = translation
    return found


class Candidate(NamedTuple):
    """A token that could come next, and its probability."""

    token: str
    probability: float


@dataclass(frozen=True, eq=False)
class Replay:
    """The steps of a decoder through one translation: queries, weights, contexts and likeliest tokens.

    A step writes one token, and the last step of a finished translation writes its end, `</s>`. Several heads stand in
    front of the other axes. Without attention there are no queries and weights, and the one value is the whole source.
    """

    tokens: tuple[str, ...]  # one for each step
    source_tokens: tuple[str, ...]
    probabilities: Float[Tensor, " steps"]  # of the tokens
    candidates: tuple[tuple[Candidate, ...], ...]  # of each step, the likeliest first
    queries: Float[Tensor, "*heads steps dim"] | None  # states of the decoder
    keys: Float[Tensor, "*heads source dim"]  # features of the source tokens
    values: Float[Tensor, "*heads source dim"]
    weights: Weights | None  # (*heads, steps, source)
    context: Float[Tensor, "*heads steps dim"]  # weights @ values


def replay(model: EncoderDecoder, translation: Translation, top: int = 5) -> Replay:
    """Compute all steps of a translation once more, given its tokens, with the `top` likeliest tokens of each step."""
    if not translation.source_tokens:
        raise ChoiceError("an empty text has no steps: replay the translation of a text")
    if top < 1:
        raise ChoiceError(f"top is a number of candidates, 1 or more, and came as {top}")
    source, target = model.known
    ids = target.numbers(translation.tokens)
    written = [*ids, END] if translation.finished else ids
    steps = len(written)
    with _evaluating(model):
        memory = _memory(model, [source.numbers(translation.source_tokens)])
        features, queries = _forced(model, memory, [Hypothesis(ids, 0.0, translation.finished)])
        probabilities = _log_probabilities(model, features[0, :steps]).exp()
        asked = None if queries is None else queries.narrow(-2, 0, steps)
        lazy = model.weights(asked, memory)
        keys, values = model.decoder.keys_and_values(memory)
        context = values.expand(steps, -1) if lazy is None else lazy @ values
    best, places = probabilities.topk(min(top, len(target)))
    return Replay(
        tokens=(*translation.tokens, target.tokens[END])[:steps],
        source_tokens=translation.source_tokens,
        probabilities=probabilities[torch.arange(steps), torch.tensor(written)],
        candidates=tuple(
            tuple(Candidate(target.tokens[i], p) for p, i in zip(*row, strict=True))
            for row in zip(best.tolist(), places.tolist(), strict=True)
        ),
        queries=None if asked is None else asked[0],
        keys=keys,
        values=values,
        weights=None if lazy is None else lazy.snapshot(),
        context=context,
    )


@contextmanager
def _evaluating(model: EncoderDecoder) -> Iterator[None]:
    """Without dropout and gradients; afterwards the model is in the mode that it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def texts_of(given: object) -> list[str]:
    """One text, or the texts of a list, each checked to be one."""
    try:
        has_order = not isinstance(given, bytes | AbstractSet | Mapping)
        texts = [given] if isinstance(given, str) or not has_order else list(given)  # pyright: ignore[reportCallIssue,reportArgumentType]
    except TypeError:
        texts = [given]
    for text in texts:
        _check_text(text)
    return texts  # pyright: ignore[reportReturnType]


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ChoiceError(f"translate takes a text or a list of texts, and {type_name(text)} came")
    if SURROGATES.search(text):
        raise ChoiceError(f"a text holds characters, and {text[:40]!r} holds half of one (a surrogate)")


def require_known(model: EncoderDecoder, texts: Sequence[str]) -> None:
    """Refuse a text of which the model knows no part: its translation would be made up."""
    vocabulary = model.known.source
    for text in texts:
        encoded = vocabulary.encode(text)
        if UNKNOWN in encoded.ids and not vocabulary.count_known(encoded):
            shown = text if len(text) <= 40 else text[:39] + "…"
            raise UnknownTextError(
                f"no part of {shown!r} is known to the model, which reads {vocabulary.language!r}: a translation would "
                "be made up"
            )


def _encoded(model: EncoderDecoder, text: str) -> Encoded:
    encoded = model.known.source.encode(text)
    if len(encoded.ids) > MAX_SOURCE_TOKENS:
        raise DataError(
            f"a text has at most {MAX_SOURCE_TOKENS:,} tokens, and this one has {len(encoded.ids):,}: cut it into "
            "sentences and translate the list of them"
        )
    return encoded


def _groups(lengths: Sequence[int], beam: int) -> Iterator[list[int]]:
    """Places of texts of similar length that are decoded together; those without tokens are left out."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not lengths[place]:
            continue
        if group and (len(group) + 1) * lengths[place] * beam > BATCH_TOKENS:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _memory(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> Memory:
    return model.encode(*padded(sources))


def search(
    model: EncoderDecoder, memory: Memory, beam: int, length_penalty: float = 1.0, max_tokens: int | None = None
) -> list[Hypothesis]:
    """The best hypothesis of each sentence by beam search, as Bahdanau and Luong did it.

    Of all continuations of its hypotheses a sentence keeps the `beam` best ones. One that ends is finished, and the
    sentence keeps one hypothesis less. So a beam of 1 is greedy search, and a beam that holds everything is exhaustive.
    """
    count, longest = memory.values.shape[:2]
    lengths = [longest] * count if memory.lengths is None else memory.lengths.tolist()
    limits = [TOKENS_PER_TOKEN * n + EXTRA_TOKENS if max_tokens is None else max_tokens for n in lengths]
    beams = _Beams(count, beam, limits, length_penalty)
    wide = memory.take(torch.arange(count).repeat_interleave(beam))
    state = model.start(wide)
    tokens = torch.full((count * beam,), START)
    while beams.alive():
        step = model.step(tokens, state, wide)
        parents, tokens = beams.extend(_log_probabilities(model, step.features))
        state = tuple(part[parents] for part in step.state)
    return beams.best()


class _Beams:
    """The hypotheses of some sentences: those that go on, and those that are finished."""

    def __init__(self, count: int, beam: int, limits: Sequence[int], length_penalty: float) -> None:
        self.count, self.beam, self.penalty = count, beam, length_penalty
        self.limits = torch.tensor(limits)
        self.scores: Float[Tensor, "count beam"] = torch.full((count, beam), -math.inf)
        self.scores[:, 0] = 0.0  # all hypotheses are the empty one at first: one of them is enough
        self.left: Int[Tensor, " count"] = torch.full((count,), beam)  # hypotheses that a sentence may keep
        self.history: Int[Tensor, "rows length"] = torch.empty(count * beam, 0, dtype=torch.int64)
        self.finished: list[list[tuple[float, Hypothesis]]] = [[] for _ in range(count)]
        self.rows = torch.arange(count)[:, None] * beam

    def alive(self) -> bool:
        """True while a hypothesis goes on."""
        return bool((self.scores > -math.inf).any())

    def extend(self, log_probs: Float[Tensor, "rows vocabulary"]) -> tuple[Int[Tensor, " rows"], Int[Tensor, " rows"]]:
        """Continue all hypotheses by one token: the row that each new one continues, and its token."""
        size = log_probs.shape[-1]
        totals = self.scores[:, :, None] + log_probs.view(self.count, self.beam, size)
        kept = min(self.beam, totals[0].numel())
        scores, places = totals.flatten(1).topk(kept)
        if kept < self.beam:  # a vocabulary smaller than the beam, at the first steps
            scores = torch.nn.functional.pad(scores, (0, self.beam - kept), value=-math.inf)
            places = torch.nn.functional.pad(places, (0, self.beam - kept))
        scores = scores.masked_fill(torch.arange(self.beam) >= self.left[:, None], -math.inf)
        parents, tokens = (self.rows + places // size).flatten(), (places % size).flatten()
        ended = (places % size == END) & (scores > -math.inf)
        for sentence, slot in ended.nonzero().tolist():
            row = parents[sentence * self.beam + slot]
            self._finish(sentence, self.history[row].tolist(), float(scores[sentence, slot]), finished=True)
        self.left -= ended.sum(1)
        self.history = torch.cat([self.history[parents], tokens[:, None]], 1)
        self.scores = scores.masked_fill(ended, -math.inf)
        self._stop()
        return parents, tokens

    def _finish(self, sentence: int, ids: list[int], score: float, *, finished: bool) -> None:
        compared = score / self._divisor(len(ids) + finished)
        self.finished[sentence].append((compared, Hypothesis(ids, score, finished)))

    def _divisor(self, length: float) -> float:
        return max(length, 1.0) ** self.penalty

    def _stop(self) -> None:
        """End sentences that are too long, and those whose best hypothesis no other one can reach any more."""
        length = self.history.shape[1]
        going = (self.scores > -math.inf).any(1)
        for sentence in going.nonzero().flatten().tolist():
            limit = int(self.limits[sentence])
            if length >= limit:
                if not self.finished[sentence]:
                    score, slot = self.scores[sentence].max(0)
                    ids = self.history[sentence * self.beam + int(slot)].tolist()
                    self._finish(sentence, ids, float(score), finished=False)
                self.scores[sentence] = -math.inf
            elif self.finished[sentence]:
                # A score only falls, and its divisor grows at most to that of the largest length.
                reach = float(self.scores[sentence].max()) / self._divisor(limit + 1)
                if max(compared for compared, _ in self.finished[sentence]) >= reach:
                    self.scores[sentence] = -math.inf

    def best(self) -> list[Hypothesis]:
        """The best finished hypothesis of each sentence."""
        return [max(found, key=lambda one: one[0])[1] for found in self.finished]


def _log_probabilities(
    model: EncoderDecoder, features: Float[Tensor, "*lead embedding"]
) -> Float[Tensor, "*lead vocabulary"]:
    """Log-probabilities of the next token; padding and the start are never written."""
    logits = model.logits(features)
    logits[..., [PAD, START]] = -math.inf
    return log_softmax(logits, -1)


def _forced(
    model: EncoderDecoder, memory: Memory, kept: Sequence[Hypothesis]
) -> tuple[Float[Tensor, "batch target embedding"], Tensor | None]:
    inputs, _ = padded([[START, *one.ids] for one in kept])
    return model.force(inputs, memory)


def _scored(model: EncoderDecoder, memory: Memory, kept: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Hypotheses with their score, from one pass over given tokens."""
    features, _ = _forced(model, memory, kept)
    outputs, _ = padded([[*one.ids, END] for one in kept])
    each = _log_probabilities(model, features).gather(-1, outputs.unsqueeze(-1)).squeeze(-1)
    inside = torch.arange(outputs.shape[1]) <= torch.tensor([[len(one.ids)] for one in kept])
    totals = each.masked_fill(~inside, 0.0).sum(1).tolist()
    return [one._replace(score=total) for one, total in zip(kept, totals, strict=True)]


def _explained(
    model: EncoderDecoder,
    memory: Memory,
    best: Sequence[Hypothesis],
    sources: Sequence[Encoded],
    *,
    replace_unknown: bool = False,
) -> list[Translation]:
    """Translations with their weights: one pass over the chosen tokens gives the queries that the decoder asked."""
    _, queries = _forced(model, memory, best)
    vocabulary = model.known.target
    found: list[Translation] = []
    for place, (one, source) in enumerate(zip(best, sources, strict=True)):
        tokens = tuple(vocabulary.tokens[i] for i in one.ids)
        weights = None
        if queries is not None:
            asked = queries[place : place + 1].narrow(-2, 0, len(tokens))
            lazy = model.weights(asked, memory.sentence(place))
            assert lazy is not None  # noqa: S101  a decoder that asks has weights
            if replace_unknown:
                tokens = _copied(one.ids, tokens, source.tokens, lazy)
            labels = WeightLabels(labels_of_batch((Labels(tokens, source.tokens),)), 0)
            weights = weights_of(matrix_of(lazy).snapshot(), labels)
        text = vocabulary.text(tokens)
        found.append(Translation(text, one.score, tokens, source.tokens, weights, one.finished))
    return found


def _copied(ids: Sequence[int], tokens: tuple[str, ...], source: tuple[str, ...], weights: Weights) -> tuple[str, ...]:
    """Tokens with each unknown one replaced by the source token that has the largest weight."""
    if UNKNOWN not in ids:
        return tokens
    dense = weights.dense()
    largest = (dense if dense.dim() == 2 else dense.mean(0)).argmax(-1).tolist()
    places = zip(ids, tokens, largest, strict=True)
    return tuple(source[place] if i == UNKNOWN else token for i, token, place in places)
