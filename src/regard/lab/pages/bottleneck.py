"""The bottleneck: two small models learn to translate, one with attention and one with a fixed vector.

English number words become Chinese numerals. `train` makes both models learn side by side; `show` returns

    models          ["none", "bahdanau"]: the attention of each model, in this order below
    lengths         (l,) words of the test sentences; those above `longest` are longer than any sentence in training
    longest         the state's: words of the longest source in training
    at              place in `lengths` of the length that the state looks at
    memory          {words, hidden, fixed, attention, per_word}: numbers that a decoder may look at for a source of
                    `words` words: `hidden` in the fixed vector, words * hidden with attention; and hidden / words
    exact_match     (2, l) share of the test sentences of each length that are translated without a mistake
    losses          (2, steps) the loss of each step, nats for each target token
    samples         (l,) {source, target, translations, tokens, attended}: the first test sentence of each length, what
                    both models make of it, and for each token of the one with attention up to three [place, weight],
                    the words of the source with the largest weights
    seconds         that the training took
    table           the cells of the length table that comes with regard: {data, trained_words, model, rows, seed,
                    minutes, steps, threads}; a row is {words, sentences, exact_match, bleu, chrf}, null if not known
    missing         cells that the table is to have and does not have yet: {data, trained_words, model}
    printed         [{model, bleu}]: BLEU on WMT14 English-French as Bahdanau, Cho and Bengio (2015) printed it

exact_match, losses, samples and seconds are null until this server has trained the models of this state.

`train` yields {step, seconds, losses: [2]} for each step, {step, seconds, length, exact_match: [2], sample} for each
length whenever the models are tested, and at the end {done, step, seconds}. One training runs on a server at a time:
while another one does, {busy} is all that comes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regard.lab.pages._numbers import literal
from regard.lab.pages._paired_training import (
    DRAWN,
    EMBEDDING,
    MODELS,
    SETTINGS,
    SHORTEST,
    TESTED,
    PairedTraining,
    Result,
    Task,
    test_lengths,
)
from regard.lab.pages._state import Choice, Whole, setting
from regard.lab.strict_json import plain
from regard.seq2seq import length_table

PRINTED = (  # Bahdanau, Cho and Bengio 2015, table 1: trained on sentences of up to 50 words, all test sentences
    {"model": "RNNencdec-50", "bleu": 17.82},
    {"model": "RNNsearch-50", "bleu": 26.75},
)
MAX_RESULTS = 16  # trainings that are remembered
WAIT_SECONDS = 3.0  # for a training that was stopped and is about to end

_training = threading.Lock()  # held by the training that runs
_results: OrderedDict[Task, Result] = OrderedDict()
_results_lock = threading.Lock()


@dataclass(frozen=True)
class State:
    longest: int = setting(20, Whole(6, 30))  # words of a source in training
    hidden: int = setting(96, Whole(16, 256, multiple=16))  # width of the fixed vector, of a state and an annotation
    steps: int = setting(400, Whole(1, 2_000))
    pairs: int = setting(8_000, Whole(500, 20_000))
    seed: int = setting(0, Whole(0, 2**31 - 1))
    words: int = setting(17, Whole(1, 60))  # length of the sentence that is shown
    data: str = setting("numbers", Choice(("numbers", "en-fr")))  # these three choose from the stored table
    trained_words: int = setting(60, Whole(30, 60, multiple=30))
    measure: str = setting("exact_match", Choice(("exact_match", "bleu")))


def show(state: State) -> dict[str, Any]:
    """The results of the training if there are any, the width of the bottleneck, and the stored table."""
    table = length_table.read()
    lengths = test_lengths(state.longest)
    at = min(range(len(lengths)), key=lambda place: abs(lengths[place] - state.words))
    words = lengths[at]
    with _results_lock:
        result = _results.get(_task(state))
    return plain({
        "models": MODELS,
        "lengths": lengths,
        "longest": state.longest,
        "at": at,
        "memory": {
            "words": words,
            "hidden": state.hidden,
            "fixed": state.hidden,
            "attention": words * state.hidden,
            "per_word": state.hidden / words,
        },
        **_result_json(result),
        "table": [_cell_json(cell) for cell in table],
        "missing": [place._asdict() for place in length_table.missing(table)],
        "printed": PRINTED,
    })  # fmt: skip


def train(state: State) -> Iterator[dict[str, Any]]:
    """Make both models learn, and remember the result for `show`."""
    if not _training.acquire(timeout=WAIT_SECONDS):
        yield {"busy": True}
        return
    try:
        task = _task(state)
        yield {"step": 0, "seconds": 0.0}
        training = PairedTraining(task)
        for event in training.events():
            if event.get("done"):
                _remember(task, training.result)
            yield plain(event)
    finally:
        _training.release()


def _task(state: State) -> Task:
    return Task(state.longest, state.hidden, state.steps, state.pairs, state.seed)


def _remember(task: Task, result: Result) -> None:
    with _results_lock:
        _results[task] = result
        _results.move_to_end(task)
        while len(_results) > MAX_RESULTS:
            _results.popitem(last=False)


def _result_json(result: Result | None) -> dict[str, Any]:
    if result is None:
        return dict.fromkeys(("exact_match", "losses", "samples", "seconds"))
    return {
        "exact_match": list(zip(*(score.exact_match for score in result.scores), strict=True)),
        "losses": result.losses,
        "samples": [score.sample._asdict() for score in result.scores],
        "seconds": result.seconds,
    }


def _cell_json(cell: length_table.Cell) -> dict[str, Any]:
    shown = ("data", "trained_words", "model", "seed", "minutes", "steps", "threads")
    rows = [
        {name: getattr(row, name) for name in ("words", "sentences", "exact_match", "bleu", "chrf")}
        for row in cell.rows
    ]
    return {**{name: getattr(cell, name) for name in shown}, "rows": rows}


def code(state: State) -> str:
    """Python code that trains both models and computes `losses` and `exact_match`."""
    settings = ", ".join(f"{name}={literal(value)}" for name, value in SETTINGS.items())
    return f"""import regard as rg

pairs = rg.datasets.numbers({state.pairs}, words=({SHORTEST}, {state.longest}), seed={state.seed})
seen = {{pair.source for pair in pairs}}
tests = []
for n in {test_lengths(state.longest)}:  # words
    drawn = rg.datasets.numbers({DRAWN}, words=(n, n), seed={state.seed} + n)
    tests.append([pair for pair in drawn if pair.source not in seen][:{TESTED}])

losses, exact_match = [], []
for attention in ("none", "bahdanau"):
    model = rg.seq2seq.Seq2Seq(attention, embedding={EMBEDDING}, hidden={state.hidden}, dropout=0)
    run = rg.seq2seq.train(
        model, pairs, steps={state.steps}, seed={state.seed},
        {settings},
    )
    losses.append(run.losses)
    found = [model.translate([pair.source for pair in group], beam=1) for group in tests]
    exact_match.append([
        sum(one.text == pair.target for one, pair in zip(translations, group)) / len(group)
        for translations, group in zip(found, tests)
    ])
"""
