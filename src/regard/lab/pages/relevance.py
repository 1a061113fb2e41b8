"""Relevance: which segments of a passage matter to a question.

`show` returns, for s segments and q questions:

    preset          the state's; for "auto" the short text in the `language` of the state
    segments        (s,) texts: the passage, cut        questions   (q,) texts
    weights         (q, s) rows sum to 1: one row of Q for each question
    encoder         what made the hidden states, in words; chosen by the writing unless named
    unknown         {text: words in it that the encoder does not know}
    rankings        q lists of all segments, the most relevant first
    verdicts        one a question: {winner, weight; answer: the segment that answers it, answer_rank; tempting: one
                    that only sounds like an answer, tempting_rank; right: whether the answer won; beaten: whether it
                    beat the tempting one}. Segments count from 0, ranks from 1. What nobody knows is null: answers are
                    known of a preset's own questions, a tempting segment of the long presets
    among           (s, s) self-attention of the segments, none sees itself; null for one segment
    pairs           presets alone, else null: {math_class, class_apples}: the mean of both directions between
                    "bad at math" and "skips class", and between "skips class" and "loves apples"
    heads           another pair of projections reads the same rows differently: {names (h,), words: h lists,
                    weights (h, q, s)}; each head looks along the directions of its words alone
    preset_text     the preset's passage, with | between the segments, to put into an editor
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from regard import datasets
from regard.errors import ChoiceError, ShapeError
from regard.lab.pages._caching_encoder import encoder_for
from regard.lab.pages._numbers import literal
from regard.lab.pages._state import Choice, Many, Maybe, Part, Real, Text, setting
from regard.lab.strict_json import plain
from regard.relation import Relation, relate, script_of, split

LOADS_MODEL = True  # an encoder of sentences
PRESETS = ("en-short", "zh-short", "en-whole", "zh-whole")
MAX_SEGMENTS = 40  # lines that fit the picture
LINE = Text(300)  # characters of a question
MATH, CLASS, APPLES = 1, 2, 3  # sentences of the short preset


@dataclass(frozen=True)
class Head:
    """A head that projects onto the directions of a few words."""

    name: str = setting("body", Text(40))
    words: tuple[str, ...] = setting(("height", "tall", "weight"), Many(Text(40), 1, 8))


HEADS = {
    "en": (Head("body", ("height", "weight", "tall", "size")), Head("school", ("math", "school", "class", "lesson"))),
    "zh": (Head("身体", ("身高", "体重", "血型", "高")), Head("学校", ("数学", "学习", "课", "成绩"))),
}


@dataclass(frozen=True)
class State:
    language: str = setting("en", Choice(("en", "zh")))  # of the page; the text that it opens with
    preset: str = setting("auto", Choice(("auto", *PRESETS)))
    passage: str | None = setting(None, Maybe(Text(8000)))  # in place of the preset's
    questions: tuple[str, ...] | None = setting(None, Maybe(Many(LINE, 1, 8)))
    encoder: str = setting("auto", Choice(("auto", "minilm", "words")))
    temperature: float = setting(0.1, Real(0.01, 2))
    heads: tuple[Head, ...] | None = setting(None, Maybe(Many(Part(Head), 1, 4)))


def show(state: State) -> dict[str, Any]:
    """The weights of every question, of the segments among themselves, and of every head."""
    preset = _preset(state)
    segments, questions = _segments(state), list(state.questions or preset.questions)
    encoder = encoder_for(None if state.encoder == "auto" else state.encoder, [*segments, *questions])
    options: Any = {"encoder": encoder, "temperature": state.temperature}
    relation = relate(segments, questions, **options)
    among = relate(segments, **options).weights.dense() if len(segments) > 1 else None
    heads = _heads(state, segments + questions)
    several = relate(segments, questions, heads=heads, **options)
    return plain({
        "preset": _preset_name(state),
        "segments": segments,
        "questions": questions,
        "weights": relation.weights.dense(),
        "encoder": relation.encoder,
        "unknown": {text: list(words) for text, words in relation.unknown.items()},
        "rankings": [[one.place for one in relation.ranking(row)] for row in range(len(questions))],
        "verdicts": [_verdict(state, relation, row) for row in range(len(questions))],
        "among": among,
        "pairs": None if among is None or state.passage is not None else {
            "math_class": (among[MATH, CLASS] + among[CLASS, MATH]) / 2,
            "class_apples": (among[CLASS, APPLES] + among[APPLES, CLASS]) / 2,
        },
        "heads": {
            "names": list(heads), "words": list(heads.values()), "weights": several.weights.dense(),
        },
        "preset_text": " | ".join(preset.segments),
    })  # fmt: skip


def _preset(state: State) -> datasets.Passage:
    language, length = _preset_name(state).split("-")
    return datasets.passage(language, short=length == "short")


def _preset_name(state: State) -> str:
    return f"{state.language}-short" if state.preset == "auto" else state.preset


def _segments(state: State) -> list[str]:
    if state.passage is None:
        return list(_preset(state).segments)
    segments = split(state.passage)
    if not segments:
        raise ChoiceError("passage must have a segment that says something, and there is none in what came")
    if len(segments) > MAX_SEGMENTS:
        raise ShapeError(f"passage must have at most {MAX_SEGMENTS} segments, {len(segments)} came")
    return segments


def _heads(state: State, texts: list[str]) -> dict[str, list[str]]:
    encoder = state.encoder if state.encoder != "auto" else {"Chinese": "words"}.get(script_of(texts), "minilm")
    heads = state.heads or HEADS["zh" if encoder == "words" else "en"]
    named = {head.name: list(head.words) for head in heads}
    if len(named) != len(heads):
        raise ChoiceError(f"heads must have different names, {literal([head.name for head in heads])} came")
    return named


def _verdict(state: State, relation: Relation, row: int) -> dict[str, Any]:
    preset, best = _preset(state), relation.ranking(row)[0]
    own = state.passage is None and state.questions is None
    answer = preset.answers[row] if own else None
    tempting = preset.tempting if own and row == 0 else None
    answer_rank = None if answer is None else relation.rank(answer, row)
    tempting_rank = None if tempting is None else relation.rank(tempting, row)
    return {
        "winner": best.place,
        "weight": best.weight,
        "answer": answer,
        "answer_rank": answer_rank,
        "tempting": tempting,
        "tempting_rank": tempting_rank,
        "right": None if answer_rank is None else answer_rank == 1,
        "beaten": None if answer_rank is None or tempting_rank is None else answer_rank < tempting_rank,
    }


def code(state: State) -> str:
    """Python code that computes `weights`."""
    segments, questions = _segments(state), list(state.questions or _preset(state).questions)
    encoder = "" if state.encoder == "auto" else f', encoder="{state.encoder}"'
    lines = [
        "import regard as rg",
        "",
        f"segments = {_texts(segments)}",
        f"questions = {_texts(questions)}",
        f"relation = rg.relate(segments, questions{encoder}, temperature={literal(state.temperature)})",
        "weights = relation.weights  # a row for each question",
        "for row, question in enumerate(questions):",
        "    best = relation.ranking(row)[0]",
        '    print(question, "->", best.segment, f"{best.weight:.2f}")',
    ]
    return "\n".join(lines) + "\n"


def _texts(texts: list[str]) -> str:
    rows = ",\n    ".join(json.dumps(text, ensure_ascii=False) for text in texts)
    return f"[\n    {rows},\n]"
