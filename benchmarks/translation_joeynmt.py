"""joeynmt 2.3.0 as a peer: a model of the same sizes on the same tokens, in a process of its own.

joeynmt asks for many packages, most of which training never imports. This is enough, into a folder of its own:

    pip install --no-deps --target PLACE joeynmt==2.3.0 tensorboard sentencepiece subword-nmt importlib_metadata zipp \
        absl-py markdown werkzeug tensorboard-data-server grpcio protobuf

It gets the tokens of our vocabularies with spaces between them, and it knows the same tokens.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from regard.datasets import Pair, Pairs, tokenise
from regard.seq2seq import TranslationModel
from regard.seq2seq.evaluation import Evaluation, Sentence
from regard.seq2seq.vocabulary import SPECIAL, UNKNOWN, Vocabulary

TIMED_UPDATES = 30, 130  # the difference of two short runs is the time of the updates between them
VALIDATION_PAIRS = 1_000


class Made(NamedTuple):
    """What joeynmt made."""

    translations: dict[str, str]  # by source
    steps: int
    tokens_per_second: float  # target tokens for each second of the processor


def train_and_translate(
    parts: Any, model: TranslationModel, place: Path, minutes: float, options: Mapping[str, Any]
) -> Made:
    """Train joeynmt for some minutes of one processor, and translate the test sources."""
    source, target = model.known
    sources = list(dict.fromkeys(pair.source for pair in parts.test))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, pairs in (("train", parts.train), ("dev", parts.validation[:VALIDATION_PAIRS])):
            _write_lines(folder / f"{side}.en", [_tokens(pair.source, source) for pair in pairs])
            _write_lines(folder / f"{side}.fr", [_tokens(pair.target, target) for pair in pairs])
        for vocabulary, language in ((source, "en"), (target, "fr")):
            _write_lines(folder / f"vocabulary.{language}", vocabulary.tokens[len(SPECIAL) :])
        _write_lines(folder / "test.en", [_tokens(text, source) for text in sources])
        _write_lines(folder / "test.fr", [SPECIAL[UNKNOWN]] * len(sources))  # references: only its own score needs them
        timed = [_train(folder, place, updates, model.settings, options) for updates in TIMED_UPDATES]
        updates, between = TIMED_UPDATES[1] - TIMED_UPDATES[0], timed[1] - timed[0]
        steps = round(60 * minutes * updates / between)
        _train(folder, place, steps, model.settings, options)
        state = torch.load(folder / "model" / "latest.ckpt", map_location="cpu", weights_only=False)
        tokens = state["stats_state"]["total_tokens"]
        # Not its mode "translate", which fails when it writes: it looks for n_best where it is not.
        _run(folder, place, "test", "--output-path", str(folder / "translated"))
        lines = (folder / "translated.test").read_text(encoding="utf-8").splitlines()
    translations = {text: target.text(line.split()) for text, line in zip(sources, lines, strict=True)}
    return Made(translations, steps, tokens / (60 * minutes))


def judged(translations: Mapping[str, str], test: Pairs) -> Evaluation:
    """Translations as our own evaluation sees them."""
    references: dict[str, list[Pair]] = {}
    for pair in test:
        references.setdefault(pair.source, []).append(pair)
    sentences = [
        Sentence(text, len(tokenise(text, "en")), translations[text], tuple(pair.target for pair in group), ())
        for text, group in references.items()
    ]
    return Evaluation(tuple(sentences), test.target_language)


def _tokens(text: str, vocabulary: Vocabulary) -> str:
    return " ".join(vocabulary.encode(text).tokens)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _train(folder: Path, place: Path, updates: int, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> float:
    """Train for some updates, and return the seconds of the processor."""
    settings = configuration(folder, updates, sizes, options)
    (folder / "joeynmt.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return _run(folder, place, "train", "--skip-test")


def _run(folder: Path, place: Path, mode: str, *more: str) -> float:
    """Run joeynmt, and return the seconds of the processor."""
    threads = str(torch.get_num_threads())
    environment = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    command = [sys.executable, "-m", "joeynmt", mode, str(folder / "joeynmt.yaml"), *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"joeynmt {mode} failed:\n{done.stderr[-2_000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def configuration(folder: Path, updates: int, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """joeynmt's settings: the sizes of our model, our batches, and its own schedule of learning rates."""
    embedding, hidden, dropout = sizes["embedding"], sizes["hidden"], sizes["dropout"]
    embeddings = {"embedding_dim": embedding, "scale": True, "dropout": dropout}
    recurrent = {"type": "recurrent", "rnn_type": "gru", "embeddings": embeddings, "num_layers": 1, "dropout": dropout}
    sides = {
        name: {"lang": language, "level": "word", "voc_file": str(folder / f"vocabulary.{language}")}
        for name, language in (("src", "en"), ("trg", "fr"))
    }
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "random_seed": 0,
        "data": {
            **{part: str(folder / part) for part in ("train", "dev", "test")}, "dataset_type": "plain", **sides,
        },
        "training": {
            "optimizer": "adam", "adam_betas": [0.9, 0.98], "learning_rate": options["learning_rate"],
            "scheduling": "warmupinversesquareroot", "learning_rate_warmup": 200, "normalization": "tokens",
            "batch_type": "token", "batch_size": options["batch_tokens"], "label_smoothing": options["smoothing"],
            "clip_grad_norm": 1.0, "early_stopping_metric": "ppl", "epochs": 1_000, "updates": updates,
            "validation_freq": updates, "logging_freq": updates, "overwrite": True, "keep_best_ckpts": 1,
        },
        "testing": {
            "beam_size": 4, "beam_alpha": 1.0, "batch_type": "token", "batch_size": 2_000, "eval_metrics": ["bleu"],
            "max_output_length": 40,
        },
        "model": {
            "encoder": {**recurrent, "hidden_size": hidden // 2, "bidirectional": True},
            "decoder": {**recurrent, "hidden_size": hidden, "attention": sizes["attention"], "init_hidden": "bridge"},
        },
    }  # fmt: skip
