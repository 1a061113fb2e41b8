"""What a few minutes of training reach: numbers with and without attention, short English to French, one translation.

    python -m benchmarks.translation_quality numbers numbers/none            exact match at 10, 14, 20 words; AER
    python -m benchmarks.translation_quality en-fr --corpus DIR              BLEU of sources of up to 8 words
    python -m benchmarks.translation_quality joeynmt --corpus DIR --joeynmt PLACE    the same, by joeynmt==2.3.0
    python -m benchmarks.translation_quality latency                         one translation of 12 words, beam 4

DIR holds nmt-0.0.6.tar.gz; without it the error says how to fetch it. PLACE is a folder for PYTHONPATH in which joeynmt
and what it needs can be imported; `benchmarks/translation_joeynmt.py` says how to fill it.

A minute of training is one of the processor's: the steps that fit into the budget are found from the processor time of
a few steps, so that a busy machine gives the same result. `latency` alone needs a quiet machine. Results go to
benchmarks/results/translation_quality.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine, translation_joeynmt
from regard import datasets, seq2seq
from regard.datasets import Pairs, tokenise
from regard.seq2seq import TranslationModel
from regard.seq2seq.evaluation import Evaluation

RESULTS = Path(__file__).parent / "results" / "translation_quality.json"
NUMBER_MINUTES, FRENCH_MINUTES = 3.0, 5.0
NUMBER_LENGTHS = (10, 14, 20)
FRENCH_WORDS = 8  # of a source, at most
NUMBER_TRAINING: dict[str, Any] = {"batch_tokens": 1_500, "learning_rate": 3e-3, "smoothing": 0.0}
FRENCH_TRAINING: dict[str, Any] = {
    "batch_tokens": 1_500, "learning_rate": 2e-3, "smoothing": 0.1, "vocabulary": "words", "vocabulary_size": 3_000,
}  # fmt: skip
TIMED_STEPS = 30, 130  # the difference of two short runs is the time of the steps between them
SENTENCE = "i told him that we would be late for dinner tonight ."  # 12 words
TRANSLATIONS = 30


def number_model(attention: str) -> TranslationModel:
    """The model of numbers."""
    return seq2seq.Seq2Seq(attention, embedding=64, hidden=128, dropout=0.0)


def french_model() -> TranslationModel:
    """The model of short sentences, of the sizes of its peer."""
    return seq2seq.Seq2Seq("bahdanau", embedding=128, hidden=256, dropout=0.1)


def steps_within(minutes: float, build: Callable[[], TranslationModel], train: Pairs, options: dict[str, Any]) -> int:
    """The steps that take some minutes of one processor."""
    seconds: list[float] = []
    for steps in TIMED_STEPS:
        began = time.process_time()
        seq2seq.train(build(), train, train[:50], steps=steps, validate_every=10 * steps, **options)
        seconds.append(time.process_time() - began)
    return round(60 * minutes * (TIMED_STEPS[1] - TIMED_STEPS[0]) / (seconds[1] - seconds[0]))


def trained(minutes: float, build: Callable[[], TranslationModel], parts: Any, options: dict[str, Any]) -> seq2seq.Run:
    """A model after some minutes of one processor."""
    steps = steps_within(minutes, build, parts.train, options)

    def report(run: seq2seq.Run) -> None:
        last = run.history[-1]
        print(f"{last.step}/{run.total_steps} loss {last.loss:.3f} validation {last.validation_loss:.4f}", flush=True)

    return seq2seq.train(build(), parts.train, parts.validation, steps=steps, report=report, **options)


def numbers(attention: str, minutes: float) -> dict[str, Any]:
    """Exact match of fresh numbers of some lengths, and the alignment error rate."""
    parts = datasets.numbers(60_000, words=(1, 20), seed=0).split()
    run = trained(minutes, lambda: number_model(attention), parts, NUMBER_TRAINING)
    learned = {pair.source for pair in parts.train}
    figures: dict[str, Any] = {}
    for words in NUMBER_LENGTHS:
        drawn = datasets.numbers(1_000, words=(words, words), seed=1_000 + words)
        fresh = drawn.take(i for i, pair in enumerate(drawn) if pair.source not in learned)
        figures[f"exact_match_{words}"] = seq2seq.evaluate(run.model, fresh).exact_match
    if attention != "none":
        figures["alignment_error_rate"] = seq2seq.evaluate(run.model, parts.test, beam=1).alignment_error_rate
    return figures | {"steps": run.steps, "minutes": minutes}


def short_french(corpus: Path) -> Any:
    """The sides of the split of all pairs whose source has at most 8 words."""
    pairs = datasets.pairs(corpus)
    short = pairs.take(i for i, pair in enumerate(pairs) if len(tokenise(pair.source, "en")) <= FRENCH_WORDS)
    return short.split()


def english_french(corpus: Path, minutes: float) -> dict[str, Any]:
    """BLEU with all references of short sources, and target tokens for each second of the processor."""
    parts = short_french(corpus)
    run = trained(minutes, french_model, parts, FRENCH_TRAINING)
    return figures_of(seq2seq.evaluate(run.model, parts.test)) | {
        "steps": run.steps, "minutes": minutes, "tokens_per_second": run.tokens / (60 * minutes),
    }  # fmt: skip


def figures_of(result: Evaluation) -> dict[str, Any]:
    """The figures of an evaluation on English to French."""
    return {
        "bleu": result.bleu, "bleu_single_reference": result.bleu_single, "chrf": result.chrf,
        "test_sentences": len(result.sentences),
    }  # fmt: skip


def peer(corpus: Path, place: Path, minutes: float) -> dict[str, Any]:
    """The same by joeynmt: the same tokens, sizes, batches and processor minutes, judged in the same way."""
    parts = short_french(corpus)
    model = french_model()
    run = seq2seq.train(model, parts.train, parts.validation, steps=1, **FRENCH_TRAINING)  # builds the vocabularies
    made = translation_joeynmt.train_and_translate(parts, run.model, place, minutes, FRENCH_TRAINING)
    found = translation_joeynmt.judged(made.translations, parts.test)
    return figures_of(found) | {
        "steps": made.steps, "minutes": minutes, "tokens_per_second": made.tokens_per_second,
    }  # fmt: skip


def latency() -> dict[str, Any]:
    """Milliseconds of one translation by the shipped model, beam 4, with the dense weights that a lesson draws."""
    model = seq2seq.load("en-fr")
    times: list[float] = []
    computed = 0.0
    for i in range(TRANSLATIONS + 1):
        computed = time.process_time() if i == 1 else computed  # the first one is warming up
        began = time.perf_counter()
        found = model.translate(SENTENCE, beam=4)
        assert found.weights is not None  # noqa: S101  this model has attention
        found.weights.dense()
        times.append(1_000 * (time.perf_counter() - began))
    processor = 1_000 * (time.process_time() - computed) / TRANSLATIONS
    return {
        "median_ms": statistics.median(times[1:]), "worst_ms": max(times[1:]), "first_ms": times[0],
        "processor_ms": processor,
    }  # fmt: skip


GOALS = {
    "numbers": "exact match at 10 / 14 / 20 words >= 0.99 / 0.99 / 0.98, AER <= 0.15",
    "numbers/none": "reported: the drop is the lesson",
    "en-fr": "bleu >= 37, and at least that of joeynmt with at least its tokens per second",
    "joeynmt": "the peer of en-fr",
    "latency": "median_ms < 150",
}


def store(name: str, figures: dict[str, Any]) -> None:
    """Keep the figures of one measurement, with the command that repeats it."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
    needs = {"en-fr": " --corpus DIR", "joeynmt": " --corpus DIR --joeynmt PLACE"}.get(name, "")
    stored[name] = {
        **rounded,
        "goal": GOALS[name],
        "command": f"python -m benchmarks.translation_quality {name}{needs}",
        "threads": torch.get_num_threads(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine.describe(),
        "versions": {"python": platform.python_version(), **machine.versions()},
    }
    ordered = {name: stored[name] for name in GOALS if name in stored}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(name, rounded, flush=True)


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(GOALS))
    parser.add_argument("--corpus", type=Path, default=Path(), help="folder of nmt-0.0.6.tar.gz")
    parser.add_argument("--joeynmt", type=Path, help="folder from which joeynmt can be imported")
    parser.add_argument("--minutes", type=float, help="other than 3 for numbers and 5 for French: nothing is stored")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if "joeynmt" in asked.names and asked.joeynmt is None:
        parser.error("joeynmt needs --joeynmt PLACE")
    short, long = (asked.minutes or usual for usual in (NUMBER_MINUTES, FRENCH_MINUTES))
    measurements: dict[str, Callable[[], dict[str, Any]]] = {
        "numbers": lambda: numbers("bahdanau", short),
        "numbers/none": lambda: numbers("none", short),
        "en-fr": lambda: english_french(asked.corpus, long),
        "joeynmt": lambda: peer(asked.corpus, asked.joeynmt, long),
        "latency": latency,
    }
    for name in asked.names:
        figures = measurements[name]()
        if asked.minutes is None:
            store(name, figures)
        else:
            print(name, figures, flush=True)


if __name__ == "__main__":
    main()
