"""Why attention: what the last state of a GRU still knows of each word, and what attention over all its states knows.

Two small models that come with regard (`regard.lab.recall`) read a sentence of up to 40 words, and answer: which word
stood at place i? Each has 64 words to choose from. `show` returns, for a sentence of n words:

    n, place        as in the state; the place is n at most. The first place is 1
    words           {en, zh}, each (n,)
    own             how many of them were typed; the others are drawn
    vocabulary      {en, zh}, each (64,)
    longest         words of the longest sentence in training
    models          ["none", "luong"]: the attention of each model, in this order below
    recalled        (2, n) the probability that each model gives to the right word, of this sentence
    guesses         (2, n) the likeliest word, as a place in `vocabulary`
    right           (2,) for how many places that is the right word
    candidates      (2, 3) the likeliest words for the place that is asked for: {word, probability}
    weights         (n,) the weights of this question over the states, with attention
    mean            (2, n) the mean of `recalled` over random sentences of n words, and `sentences`, how many
    by_length       (2, longest) the same as a mean over all places, for sentences of 1 to `longest` words
    hidden          numbers in a state
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ShapeError
from regard.lab import recall
from regard.lab.pages._state import Maybe, Text, Whole, setting
from regard.lab.strict_json import plain

CANDIDATES = 3
MAX_CHARACTERS = 600


@dataclass(frozen=True)
class State:
    n: int = setting(24, Whole(2, recall.LONGEST))
    place: int = setting(2, Whole(1, recall.LONGEST))
    text: str | None = setting(None, Maybe(Text(MAX_CHARACTERS)))  # the first words; drawn ones follow
    seed: int = setting(6, Whole(0, 2**31 - 1))


def show(state: State) -> dict[str, Any]:
    """The memory that both models have of a sentence, and their answers to one question."""
    sentence, own = _sentence(state)
    n, place = len(sentence), min(state.place, len(sentence))
    answers = [_model(name)(sentence) for name in recall.MODELS]
    probabilities = torch.stack([answer.logits.softmax(-1) for answer in answers])
    guesses = probabilities.argmax(-1)
    likeliest = probabilities[:, place - 1].topk(CANDIDATES)
    (weights,) = (answer.weights for answer in answers if answer.weights is not None)
    means = [_means(name) for name in recall.MODELS]
    return plain({
        "n": n,
        "place": place,
        "words": _named(sentence.tolist()),
        "own": own,
        "vocabulary": _named(range(len(recall.WORDS))),
        "longest": recall.LONGEST,
        "models": recall.MODELS,
        "recalled": probabilities[:, range(n), sentence],
        "guesses": guesses,
        "right": (guesses == sentence).sum(-1),
        "candidates": [
            [{"word": word, "probability": p} for word, p in zip(words, row, strict=True)]
            for words, row in zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        ],
        "weights": weights[place - 1],
        "mean": [mean[n - 1, :n] for mean, _ in means],
        "sentences": means[0][1],
        "by_length": [mean.sum(-1) / torch.arange(1, recall.LONGEST + 1) for mean, _ in means],
        "hidden": recall.HIDDEN,
    })  # fmt: skip


def _sentence(state: State) -> tuple[Int[Tensor, " words"], int]:
    """The sentence, and how many of its words were typed."""
    typed = _typed(state.text)
    return torch.cat([typed, recall.draw(recall.LONGEST, state.seed)])[: state.n], min(len(typed), state.n)


def _typed(text: str | None) -> Int[Tensor, " words"]:
    typed = recall.read(text or "")
    if len(typed) > recall.LONGEST:
        raise ShapeError(f"text must have at most {recall.LONGEST} words, {len(typed)} came")
    return typed


@lru_cache
def _model(attention: str) -> recall.Recall:
    return recall.load(attention)


@lru_cache
def _means(attention: str) -> tuple[Float[Tensor, "longest longest"], int]:
    return recall.mean_probability(attention)


def _named(numbers: Any) -> dict[str, list[str]]:
    words = [recall.WORDS[number] for number in numbers]
    return {"en": [word.en for word in words], "zh": [word.zh for word in words]}


def code(state: State) -> str:
    """Python code that computes `recalled`, and `weights` of the question."""
    if state.text is None:
        sentence = f"recall.draw({state.n}, seed={state.seed})"
    else:
        text = json.dumps(state.text, ensure_ascii=False)
        own = min(len(_typed(state.text)), state.n)
        sentence = f"recall.read({text})[:{state.n}]"
        if own < state.n:
            sentence = f"torch.cat([{sentence}, recall.draw({state.n - own}, seed={state.seed})])"
    place = min(state.place, state.n)
    return f"""import torch
from regard.lab import recall

sentence = {sentence}
recalled = []
for attention in ("none", "luong"):
    model = recall.load(attention)
    states, query = model.read(sentence), model.questions(sentence)
    if attention == "none":
        context = states[-1]  # the same for every question
    else:
        weights = torch.softmax(query @ model.attention.w @ torch.cat([states, query], -1).mT, -1)
        context = weights @ states  # one for each question
        weights = weights[{place - 1}]  # of the question that is asked
    probability = model.output(model.content(context) * model.gate(query)).softmax(-1)
    recalled.append(probability[range({state.n}), sentence].tolist())
"""
