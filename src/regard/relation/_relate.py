"""Relevance of segments to questions: `relate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from regard import masks, scores
from regard.errors import ChoiceError, DtypeError
from regard.relation._encoders import Encoder, check_known, choose_encoder
from regard.relation._heads import Heads, project
from regard.relation._relation import Relation
from regard.relation._split import split
from regard.weights import Weights

TEMPERATURE = 0.1  # of the softmax over cosines, which lie within -1 and 1


def relate(
    passage_or_segments: str | Sequence[str],
    questions: str | Sequence[str] | None = None,
    encoder: str | Path | Encoder | None = None,
    *,
    temperature: float = TEMPERATURE,
    heads: Heads | None = None,
) -> Relation:
    r"""Measure how much each segment of a passage matters to each question, by attention over segments.

        p_ij = softmax_j(cos(q_i, k_j) / temperature)

    An encoder gives each segment a hidden state h_j. Its direction k_j = h_j / |h_j| is the key, by which the segment
    is found; the state itself is the value v_j = h_j, which `relation.output` averages. The state of a question is
    the query q_i.

    passage_or_segments: a passage, which `regard.relation.split` cuts, or a list of segments.
    questions: one or several, one row each. Without any, every segment is a question to all others, and none sees
    itself; to let each see itself too, as self-attention does, give the segments once more as questions.
    encoder: if None, "minilm" for English and "words" for Chinese, by the script of the texts; else the folder of a
    Hugging Face encoder or its name on the hub; or an object with a `name` and `encode(texts)`. A text of which it does
    not know half the words is refused.
    temperature: the smaller, the larger the weight of the best segment.
    heads: a head is another pair of projections of the same states, score = (W_Q q_i) · (W_K k_j) / temperature. Give
    {name: [words]} for heads that see only the directions of those words, or tensors (W_Q, W_K) of (heads, dim, width).
    The weights are then (heads, questions, segments).

    >>> import regard as rg
    >>> found = rg.relate("His father is two meters tall | He loves eating apples", "Why is Yao Ming so tall?")
    >>> found.ranking()[0].segment
    'His father is two meters tall'
    >>> found.encoder
    'minilm (all-MiniLM-L6-v2, mean of the tokens)'
    """
    segments = _texts(passage_or_segments, "passage")
    question_texts = (
        segments if questions is None else _texts([questions] if isinstance(questions, str) else questions, "question")
    )
    if not temperature > 0:
        raise ChoiceError(f"temperature must be above 0, {temperature} came")
    if questions is None and len(segments) < 2:
        raise ChoiceError("one segment alone has nothing to be related to: give questions, or two segments")
    chosen = choose_encoder(encoder, [*segments, *question_texts])
    texts = list(dict.fromkeys([*segments, *question_texts]))
    encoded = chosen.encode(texts)
    check_known(chosen, encoded, texts)
    row_of = {text: row for row, text in enumerate(texts)}
    value = encoded.states[[row_of[text] for text in segments]]
    query = torch.nn.functional.normalize(encoded.states[[row_of[text] for text in question_texts]], dim=-1)
    key, names = torch.nn.functional.normalize(value, dim=-1), ()
    score: scores.Score = scores.cosine(temperature)
    if heads is not None:
        query, key, names = project(heads, chosen, query, key)
        score = scores.scaled_dot(1 / temperature)  # not cosine: a short projection of a text is to have a small score
    mask = ~masks.window(0, 0) if questions is None else None
    unknown = {text: words for text, words in zip(texts, encoded.unknown, strict=True) if words}
    weights = Weights(query, key, score=score, mask=mask)
    return Relation(weights, value, tuple(segments), tuple(question_texts), chosen.name, unknown, names)


def _texts(value: str | Sequence[str], what: str) -> list[str]:
    texts = split(value) if isinstance(value, str) else list(value)
    if not texts:
        raise ChoiceError(f"there is nothing in the {what}: {value!r}")
    for text in texts:
        if not isinstance(text, str):
            raise DtypeError(f"a {what} is text, not {type(text).__name__}: {text!r}")
        if not text.strip():
            raise ChoiceError(f"a {what} is empty: {texts!r}")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ChoiceError(f"a {what} has half a character (a surrogate) in it: {text!r}; decode it as UTF-8")
    return texts
