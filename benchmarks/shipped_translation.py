"""Make the translation models that come with regard: train them, measure them on the test sentences, and store them.

    python -m benchmarks.shipped_translation numbers numbers/none numbers/transformer --runs runs
    python -m benchmarks.shipped_translation en-fr en-fr/none en-fr/transformer --runs runs --corpus DIR
    python -m benchmarks.shipped_translation --runs runs --store      write what the runs have reached into the package

DIR holds nmt-0.0.6.tar.gz; without it the error says how to fetch it. A run that was stopped goes on.
"""

import argparse
import hashlib
import json
import platform
from math import isnan
from pathlib import Path
from typing import Any

import torch

from regard import datasets, seq2seq
from regard.datasets import Pairs
from regard.seq2seq import checkpoint, pretrained
from regard.seq2seq.network import EncoderDecoder

NUMBERS = {"steps": 1_200, "batch_tokens": 1_500}
ENGLISH_FRENCH = {
    "steps": 10_000, "batch_tokens": 2_000, "vocabulary": "bpe", "vocabulary_size": 4_000, "precision": "bfloat16",
}  # fmt: skip
# name -> how its model is made, and the options of its training
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "numbers": (lambda: seq2seq.Seq2Seq("bahdanau", hidden=192), NUMBERS),
    "numbers/none": (lambda: seq2seq.Seq2Seq("none", hidden=192), NUMBERS),
    "numbers/transformer": (
        lambda: seq2seq.Transformer(layers=2),
        {**NUMBERS, "steps": 3_000, "learning_rate": 1.5e-3},
    ),
    "en-fr": (lambda: seq2seq.Seq2Seq("bahdanau", embedding=256, hidden=320, dropout=0.2), ENGLISH_FRENCH),
    "en-fr/none": (
        lambda: seq2seq.Seq2Seq("none", embedding=256, hidden=320, dropout=0.2),
        {**ENGLISH_FRENCH, "steps": 4_000},
    ),
    "en-fr/transformer": (
        lambda: seq2seq.Transformer(embedding=256, layers=2, dropout=0.1),
        {**ENGLISH_FRENCH, "steps": 7_000, "learning_rate": 1e-3, "warmup": 400},
    ),
}
NUMBER_PAIRS = 60_000
FIGURES = "figures.json"
MARK = "<!-- figures -->\n"  # in the model card, before its table


def pairs_of(name: str, corpus: Path) -> Pairs:
    """The pairs that a model learns from, before they are split."""
    if name.startswith("numbers"):
        return datasets.numbers(NUMBER_PAIRS, words=(1, 20), seed=0)
    return datasets.pairs(corpus)


def folder_of(name: str, runs: Path) -> Path:
    """The folder of a model's run."""
    return runs / name.replace("/", "-")


def make(name: str, runs: Path, corpus: Path) -> None:
    """Train one model, or go on where its run stopped, and measure it."""
    build, options = MODELS[name]
    parts = pairs_of(name, corpus).split()

    def report(run: seq2seq.Run) -> None:
        last = run.history[-1]
        print(
            f"{name} {last.step}/{run.total_steps} loss {last.loss:.3f} validation {last.validation_loss:.4f} "
            f"{last.tokens_per_second:,.0f} tokens/s {last.seconds:,.0f} s | {last.sample}",
            flush=True,
        )

    run = seq2seq.train(
        build(), parts.train, validation=parts.validation, folder=folder_of(name, runs), report=report, **options
    )
    if not run.interrupted:
        measure(name, run.model, parts.test, runs)


def measure(name: str, model: EncoderDecoder, test: Pairs, runs: Path) -> None:
    """Translate the test sentences, and keep the figures beside the run."""
    result = seq2seq.evaluate(model, test)
    _, about = checkpoint.read(folder_of(name, runs) / "last.safetensors")
    figures = {
        "exact_match": round(result.exact_match, 4),
        "bleu": round(result.bleu, 2),
        "bleu_single_reference": round(result.bleu_single, 2),
        "chrf": round(result.chrf, 2),
        "alignment_error_rate": None if isnan(result.alignment_error_rate) else round(result.alignment_error_rate, 4),
        "test_sentences": len(result.sentences),
        "steps": about["best_step"],  # of the numbers that are stored
        "of_steps": about["total_steps"],
        "tokens": about["tokens"],
        "minutes": round(about["seconds"] / 60, 1),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__.split("+")[0],
        "processor": platform.machine(),
        "by_length": [[*row[:-1], None if isnan(row[-1]) else row[-1]] for row in result.by_length()],
    }
    checkpoint.write_json(folder_of(name, runs) / FIGURES, figures)
    print(name, result, flush=True)
    print(result.by_length(), flush=True)


def store(runs: Path) -> None:
    """Write the best model of each run into the package in float16, with its checksum and figures."""
    checksums = json.loads(pretrained.CHECKSUMS.read_text(encoding="utf-8"))
    for name in MODELS:
        folder = folder_of(name, runs)
        if not (folder / FIGURES).exists():
            continue
        path = pretrained.weights_path(name)
        model = checkpoint.load_model(folder)
        checkpoint.save_model(model, path, torch.float16, figures=checkpoint.read_json(folder / FIGURES))
        checksums[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path} {path.stat().st_size / 1e6:.2f} MB")
    checkpoint.write_json(pretrained.CHECKSUMS, {name: checksums[name] for name in MODELS if name in checksums})
    write_card([name for name in MODELS if name in checksums])


def write_card(names: list[str]) -> None:
    """Put the figures of the stored models into the model card."""
    lines = [
        "| Name | Exact match | BLEU | one reference | chrF | AER | Steps | Minutes, one thread | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        path = pretrained.weights_path(name)
        f = checkpoint.read(path)[1]["figures"]
        rate = "" if f["alignment_error_rate"] is None else f"{f['alignment_error_rate']:.3f}"
        steps = f"{f['steps']:,}" + ("" if f["steps"] == f["of_steps"] else f" of {f['of_steps']:,}")
        bleu = f"{f['bleu']:.1f} | {f['bleu_single_reference']:.1f}"
        quality = f"{100 * f['exact_match']:.1f} % | {bleu} | {f['chrf']:.1f}"
        size = path.stat().st_size / 1e6
        lines.append(f"| `{name}` | {quality} | {rate} | {steps} | {f['minutes']:.0f} | {size:.1f} |")
    card = pretrained.WEIGHTS / "README.md"
    before, _, rest = card.read_text(encoding="utf-8").partition(MARK)
    after = rest[rest.index("## Data") :]
    card.write_text(f"{before}{MARK}\n" + "\n".join(lines) + f"\n\n{after}", encoding="utf-8")


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], help="models to train")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--corpus", type=Path, default=Path(), help="folder of nmt-0.0.6.tar.gz")
    parser.add_argument("--measure", action="store_true", help="only measure what the runs have reached")
    parser.add_argument("--store", action="store_true", help="write models into the package")
    asked = parser.parse_args()
    for name in asked.names:
        if asked.measure:
            test = pairs_of(name, asked.corpus).split().test
            measure(name, checkpoint.load_model(folder_of(name, asked.runs)), test, asked.runs)
        else:
            make(name, asked.runs, asked.corpus)
    if asked.store:
        store(asked.runs)


if __name__ == "__main__":
    main()
