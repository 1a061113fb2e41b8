"""Segments against questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from regard import masks, scores
from regard.errors import ChoiceError, DtypeError
from regard.relation._choose import choose
from regard.relation._encoders import Encoder, check_known
from regard.relation._heads import Heads, project
from regard.relation._relation import Relation
from regard.relation._split import split
from regard.weights import Weights

TEMPERATURE = 0.1


def relate(
    passage_or_segments: str | Sequence[str],
    questions: str | Sequence[str] | None = None,
    encoder: str | Path | Encoder | None = None,
    *,
    temperature: float = TEMPERATURE,
    heads: Heads | None = None,
) -> Relation:
    r"""How much each segment of a passage matters to each question.

        p_ij = softmax_j(cos(q_i, k_j) / temperature)

    An encoder gives each segment a hidden state h_j, which is split into two parts: its direction k_j = h_j / |h_j| is
    the key, by which the segment is found; the state itself is the value v_j = h_j, which is brought home
    (`relation.output`). The state of a question is the query q_i.

    passage_or_segments: a passage, which `regard.relation.split` cuts, or a list of segments.
    questions: several are several rows. Without any, the segments ask each other, and none sees itself; to let each see
    itself too, as self-attention does, give the segments once more as questions.
    encoder: "minilm" for English and "words" for Chinese, chosen by the writing, if None; else the folder of a Hugging
    Face encoder or its name on the hub; or an object with a `name` and `encode(texts)`. A text of which it does not
    know half the words is refused.
    temperature: the smaller, the more the best segment takes.
    heads: a head is no second question but a second way to read the same rows, another pair of projections:
    score = (W_Q q_i) · (W_K k_j) / temperature. Give {name: [words]}, heads that look along the directions of those
    words alone, or tensors (W_Q, W_K) of (heads, dim, width). The weights are then (heads, questions, segments).

    >>> import regard as rg
    >>> found = rg.relate("His father is two meters tall | He loves eating apples", "Why is Yao Ming so tall?")
    >>> found.ranking()[0].segment
    'His father is two meters tall'
    >>> found.encoder
    'minilm (all-MiniLM-L6-v2, mean of the tokens)'
    """
    segments = _texts(passage_or_segments, "passage")
    asked = (
        segments if questions is None else _texts([questions] if isinstance(questions, str) else questions, "question")
    )
    if not temperature > 0:
        raise ChoiceError(f"temperature must be above 0, {temperature} came")
    if questions is None and len(segments) < 2:
        raise ChoiceError("one segment alone has nothing to be related to: give questions, or two segments")
    chosen = choose(encoder, [*segments, *asked])
    texts = list(dict.fromkeys([*segments, *asked]))
    encoded = chosen.encode(texts)
    check_known(chosen, encoded, texts)
    place = {text: row for row, text in enumerate(texts)}
    value = encoded.states[[place[text] for text in segments]]
    query = torch.nn.functional.normalize(encoded.states[[place[text] for text in asked]], dim=-1)
    key, names = torch.nn.functional.normalize(value, dim=-1), ()
    score: scores.Score = scores.cosine(temperature)
    if heads is not None:
        query, key, names = project(heads, chosen, query, key)
        score = scores.scaled_dot(1 / temperature)  # not cosine: a head that sees little of a text says little about it
    mask = ~masks.window(0, 0) if questions is None else None
    unknown = {text: words for text, words in zip(texts, encoded.unknown, strict=True) if words}
    weights = Weights(query, key, score=score, mask=mask)
    return Relation(weights, value, tuple(segments), tuple(asked), chosen.name, unknown, names)


def _texts(given: str | Sequence[str], what: str) -> list[str]:
    texts = split(given) if isinstance(given, str) else list(given)
    if not texts:
        raise ChoiceError(f"there is nothing in the {what}: {given!r}")
    for text in texts:
        if not isinstance(text, str):
            raise DtypeError(f"a {what} is text, not {type(text).__name__}: {text!r}")
        if not text.strip():
            raise ChoiceError(f"a {what} is empty: {texts!r}")
    return texts
