"""Translation: what a decoder looks at while it writes, word by word, with attention or without.

The models are those that come with regard. `show` returns, for m source tokens and n steps (one for each token that is
written, and one for the end):

    direction       as in the state; `models`: the models that there are for each direction, and `figures` of those of
                    this direction, on test sentences: {exact_match, bleu}
    examples        texts to begin with, for each direction; `source_text` is the one that is translated
    text            the translation, `expected`: the right one where it is known, else null
    finished        false if the translation was cut off
    source          (m,) tokens of the source. A token that goes on with a word begins with "·"
    target          (n,) tokens that are written; "</s>" is the end
    unknown         tokens of the source that the model does not know
    at              the step of the state, or the last one if there are fewer
    probabilities   (n,) of the tokens that are written
    candidates      n lists of the likeliest tokens, {token, probability}
    weights         (heads, n, m), rows sum to 1; null without attention
    query           (heads, n, w) the first w = `SHOWN_WIDTH` numbers of each query; null without attention
    key, value      (heads, m, w) of the source tokens; without attention one row, the whole source
    context         (heads, n, w) what is pooled. `widths`: {query, value}, how many numbers there are
    output          the whole context of the step `at`: (heads, width)
    layer           whose attention it is, and of how many `layers`, counted from 0; null if there is one
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError
from regard.lab.pages._state import Choice, Maybe, Text, Whole, setting
from regard.lab.strict_json import plain
from regard.seq2seq import Replay, Translation, TranslationModel, load, pretrained
from regard.seq2seq.transformer import TransformerDecoder
from regard.seq2seq.vocabulary import SPECIAL, UNKNOWN, WORD_START

LOADS_MODEL = True  # a translation model
DIRECTIONS = ("en-fr", "numbers")
MODELS = ("bahdanau", "transformer", "none")
MAX_TOKENS = 60  # source tokens that fit the picture
MOST_STEPS = 2 * MAX_TOKENS + 11  # that a translation of them may have
SHOWN_WIDTH = 32  # numbers of a vector that are drawn
BEAM = 4
CONTINUES = "·"  # before a token that goes on with a word

# The last ones are long enough for the decoder without attention to mix up digits.
NUMBERS = {
    "fourteen thousand seven": "一万四千零七",
    "nine hundred thirty two thousand four hundred seventeen": "九十三万二千四百一十七",
    "six hundred eighty three billion forty two million two hundred thirty one thousand eighty eight": (
        "六千八百三十亿四千二百二十三万一千零八十八"
    ),
    "thirty seven trillion three hundred ninety one billion nine hundred forty eight million six hundred eight "
    "thousand eight hundred twenty": "三十七万三千九百一十九亿四千八百六十万八千八百二十",
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "en-fr": (
        "I mistook him for my brother.",
        "She gave me a book that I have never read before.",
        "I did not know that he was ill.",
        "We have to finish this work before tomorrow morning.",
        "He is taller than his older brother.",
    ),
    "numbers": tuple(NUMBERS),
}


@dataclass(frozen=True)
class State:
    direction: str = setting("en-fr", Choice(DIRECTIONS))
    model: str = setting("bahdanau", Choice(MODELS))
    text: str | None = setting(None, Maybe(Text(8000)))  # none: the first example
    step: int = setting(1, Whole(0, MOST_STEPS))
    head: int | None = setting(None, Maybe(Whole(0, 63)))  # none: the mean of all heads
    row: int | None = setting(None, Maybe(Whole(0, MOST_STEPS)))  # the target token that is pinned
    column: int | None = setting(None, Maybe(Whole(0, MAX_TOKENS)))  # the source token that is pinned
    view: str = setting("lines", Choice(("lines", "map")))


def show(state: State) -> dict[str, Any]:
    """All steps of one translation."""
    text, name = _text(state), name_of(state.direction, state.model)
    walk = _walk(name, text)
    replay = walk.replay
    at = min(state.step, len(replay.tokens) - 1)
    return plain({
        "direction": state.direction,
        "models": {direction: _models(direction) for direction in DIRECTIONS},
        "figures": {model: _figures(name_of(state.direction, model)) for model in _models(state.direction)},
        "examples": EXAMPLES,
        "source_text": text,
        "text": walk.translation.text,
        "expected": NUMBERS.get(text),
        "at": at,
        **walk.shown,
        "output": _stacked(replay.context)[:, at],
    })  # fmt: skip


@dataclass(frozen=True, eq=False)
class Walk:
    """A translation with its steps, and those of them that are shown."""

    translation: Translation
    replay: Replay
    shown: dict[str, Any]


@lru_cache(maxsize=64)
def _walk(name: str, text: str) -> Walk:
    model = model_of(name)
    count = len(model.known.source.encode(text).ids)
    if count > MAX_TOKENS:
        raise ShapeError(f"text must have at most {MAX_TOKENS} tokens to be drawn, {count} came")
    translation = model.translate(text, beam=BEAM)
    replay = model.replay(translation)
    return Walk(translation, replay, plain(_shown(model, translation, replay)))


def _shown(model: TranslationModel, translation: Translation, replay: Replay) -> dict[str, Any]:
    """The part of the answer that does not depend on the step."""
    source, target = model.known
    decoder = model.decoder
    queries, weights = replay.queries, replay.weights
    of_transformer = isinstance(decoder, TransformerDecoder)
    return {
        "finished": translation.finished,
        "source": _written(replay.source_tokens, parts=source.merges is not None),
        "target": _written(replay.tokens, parts=target.merges is not None),
        "unknown": [
            token
            for token, i in zip(replay.source_tokens, source.numbers(replay.source_tokens), strict=True)
            if i == UNKNOWN
        ],
        "probabilities": replay.probabilities,
        "candidates": [
            [
                {"token": token, "probability": one.probability}
                for token, one in zip(
                    _written(tuple(one.token for one in row), parts=target.merges is not None), row, strict=True
                )
            ]
            for row in replay.candidates
        ],
        "weights": None if weights is None else _stacked(weights.dense()).double().round(decimals=6),
        "query": None if queries is None else _short(queries),
        "key": _short(replay.keys),
        "value": _short(replay.values),
        "context": _short(replay.context),
        "widths": {"query": None if queries is None else queries.shape[-1], "value": replay.values.shape[-1]},
        "layer": decoder.aligned_layer if of_transformer else None,
        "layers": len(decoder.layers) if of_transformer else None,
    }


def _stacked(tensor: Float[Tensor, "*heads rows columns"]) -> Float[Tensor, "heads rows columns"]:
    return tensor if tensor.dim() == 3 else tensor[None]


def _short(tensor: Float[Tensor, "*heads rows dim"]) -> Float[Tensor, "heads rows shown"]:
    return _stacked(tensor)[..., :SHOWN_WIDTH].double().round(decimals=4)


def _written(tokens: tuple[str, ...], *, parts: bool) -> list[str]:
    """Tokens as a person reads them: the marks of the vocabulary become a dot where a word goes on."""
    if not parts:
        return list(tokens)
    return [
        token if token in SPECIAL else token[1:] if token.startswith(WORD_START) else CONTINUES + token
        for token in tokens
    ]


def _text(state: State) -> str:
    return EXAMPLES[state.direction][0] if state.text is None else state.text


def name_of(direction: str, model: str) -> str:
    """The name by which `regard.seq2seq.load` knows a decoder of a direction."""
    return direction if model == "bahdanau" else f"{direction}/{model}"


def _models(direction: str) -> list[str]:
    """The models that come with regard for a direction."""
    shipped = pretrained.names()
    return [model for model in MODELS if name_of(direction, model) in shipped]


@lru_cache(maxsize=len(DIRECTIONS) * len(MODELS))
def model_of(name: str) -> TranslationModel:
    """The model of this name, loaded once."""
    return load(name)


@lru_cache(maxsize=len(DIRECTIONS) * len(MODELS))
def _figures(name: str) -> dict[str, Any]:
    found = pretrained.figures(name)
    return {"exact_match": found["exact_match"], "bleu": found["bleu"]}


def code(state: State) -> str:
    """Python code that computes `weights`, where there are any, and `output`, the context of the step."""
    text, name = _text(state), name_of(state.direction, state.model)
    at = min(state.step, len(_walk(name, text).replay.tokens) - 1)
    weights = "" if state.model == "none" else "weights = replay.weights\n"
    return f"""import regard as rg

model = rg.seq2seq.load({json.dumps(name)})
translation = model.translate({json.dumps(text, ensure_ascii=False)}, beam={BEAM})
print(translation.text)
replay = model.replay(translation)
{weights}output = replay.context[..., {at}, :]
print(replay.tokens[{at}], replay.candidates[{at}])
"""
