"""Training: a budget of time or steps, checkpoints from which a run goes on exactly, and the best model at the end."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.datasets import Pair, Pairs
from regard.display.progress import progress
from regard.errors import DataError, TrainingError
from regard.seq2seq import checkpoint, decoding, evaluation
from regard.seq2seq import vocabulary as vocabularies
from regard.seq2seq.batches import Batch, Sentences, encode_pairs, epochs
from regard.seq2seq.loss import output_loss
from regard.seq2seq.model import TranslationModel
from regard.seq2seq.run import LAST, PRECISIONS, Options, Record, Run, RunFolder, RunState, fingerprint, named, restore
from regard.seq2seq.transformer import TransformerDecoder
from regard.seq2seq.vocabulary import PAD

MEASURED_STEPS = 100  # after which minutes are turned into steps
CHECKPOINT_SECONDS = 45.0  # between two checkpoints: a killed run loses less than a minute
VALIDATIONS = 20  # of a run, at most
MIN_VALIDATION_STEPS = 100  # between two of them
MAX_VALIDATION_PAIRS = 2_000
SAMPLE_TOKENS = 60
ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9, "fused": True}
Report = Callable[[Run], bool | None]


def train(
    model: TranslationModel,
    pairs: Sequence[Pair] | Sequence[tuple[str, str]],
    validation: Sequence[Pair] | Sequence[tuple[str, str]] | None = None,
    *,
    minutes: float | None = None,
    steps: int | None = None,
    folder: str | Path | None = None,
    batch_tokens: int = 1_500,
    learning_rate: float = 2e-3,
    warmup: int = 200,
    smoothing: float = 0.1,
    clip: float = 1.0,
    patience: int | None = None,
    validate_every: int | None = None,
    seed: int = 0,
    vocabulary: str = "auto",
    vocabulary_size: int = 4_000,
    precision: str = "float32",
    report: Report | None = None,
) -> Run:
    """Train a model on pairs of texts, and return the run with the model that was best on the validation pairs.

    pairs: if no validation pairs are given, `pairs.split()` gives them, and its test part is never seen.
    minutes, steps: the budget; 5 minutes if neither is given. Minutes are turned into steps once, after 100 steps.
    folder: keeps checkpoints. The same call goes on where it stopped, to exactly the same numbers on as many threads;
        a folder that was made with other settings is refused.
    batch_tokens: target tokens of a batch.
    learning_rate: of Adam; it rises for `warmup` steps, then falls linearly to 0.
    smoothing: of the labels. clip: largest norm of the gradient.
    patience: validations without a better loss after which the run ends; None never ends it early.
    validate_every: steps between validations; 100 or a twentieth of the run, whichever is more, if None.
    vocabulary, vocabulary_size: "words", "bpe" or "auto", and tokens at most; see `vocabulary.learn`.
    precision: of the product with the table of embeddings that scores all tokens: "float32", or "bfloat16", which takes
        half its time on processors that compute in it.
    report: is called with the run after each validation; if it returns False, the run ends as after Ctrl-C.

    Ctrl-C ends the run after its step and keeps the best model. A loss that is not finite raises TrainingError and
    names the last good checkpoint.
    """
    if minutes is None and steps is None:
        minutes = 5.0
    options = Options(
        minutes, steps, batch_tokens, learning_rate, warmup, smoothing, clip, patience, validate_every, seed,
        vocabulary, vocabulary_size, precision,
    )  # fmt: skip
    options.check()
    trained, held_out = split_pairs(pairs, validation)
    return Trainer(model, trained, held_out, options, None if folder is None else Path(folder)).train(report)


def split_pairs(pairs: Sequence[Any], validation: Sequence[Any] | None) -> tuple[Pairs, Pairs]:
    """Training and validation pairs, neither empty."""
    whole = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    if validation is None:
        trained, held_out, _ = whole.split()
    else:
        trained = whole
        held_out = validation if isinstance(validation, Pairs) else Pairs(validation)
    for name, part in (("training", trained), ("validation", held_out)):
        if not len(part):
            kept = ", and 5 in 256 of the sources are kept for validation: give more, or validation="
            raise DataError(f"there are no {name} pairs: {len(whole):,} pairs came{kept if validation is None else ''}")
    return trained, held_out


class Trainer:
    """A run in progress: all at once by `train`, or `steps` and then `finish`."""

    def __init__(
        self, model: TranslationModel, pairs: Pairs, validation: Pairs, options: Options, folder: Path | None
    ) -> None:
        self.model: TranslationModel = model
        self.options: Options = options
        self.validation: Pairs = validation
        settings = {"kind": model.kind, **model.settings, **vars(options), "data": fingerprint(pairs, validation)}
        self.folder: RunFolder | None = None if folder is None else RunFolder(folder, settings)
        stored = None if self.folder is None else self.folder.read()
        if stored is not None:
            numbers = checkpoint.with_shared_embedding(named(stored[0], "model."))
            model.build(checkpoint.build_model(stored[1]["model"], numbers).known, options.seed)
        elif model.vocabularies is None:
            model.build(vocabularies.learn(pairs, options.vocabulary, options.vocabulary_size), options.seed)
        self.sentences: Sentences = Sentences(_encoded(pairs, model), options.batch_tokens)
        self.held_out: Sentences = Sentences(_encoded(validation[:MAX_VALIDATION_PAIRS], model), options.batch_tokens)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.0, **ADAM)
        run = Run(model, total_steps=options.steps, folder=folder)
        self.state: RunState = RunState(run, _copy(model), optimiser, None)
        if stored is not None:
            self.state = restore(self.state, *stored)
        self.seconds_before: float = self.run.seconds  # of training, in the calls that this one continues

    @property
    def run(self) -> Run:
        """The run as it stands."""
        return self.state.run

    def train(self, report: Report | None) -> Run:
        """Train until the budget is used up, Ctrl-C, or no progress, and give the model its best numbers."""
        run = self.run
        with _own_random(self.state.random, self.options.seed), _deferred_interrupt() as interrupted:
            with progress("training", run.total_steps or 2 * MEASURED_STEPS) as advance:
                for is_validated in self.steps():
                    advance(self._line(run.losses[-1]), run.total_steps)
                    is_refused = is_validated and report is not None and report(run) is False
                    run.interrupted = is_refused or interrupted.is_set()
            return self.finish()

    def steps(self) -> Iterator[bool]:
        """Train, one step at each turn of the loop over it: True if a validation followed the step.

        Between two turns the caller may do other things, such as a step of another model; `run.seconds` does not count
        them. To end the run, set `run.interrupted`, or leave the loop. Dropout draws torch's global random numbers.
        """
        run = self.run
        saved = started = resumed = time.monotonic()
        for number, batch in epochs(self.sentences, self.options.seed, run.steps):
            if run.interrupted or (run.total_steps is not None and (number >= run.total_steps or self._is_stuck())):
                break
            run.losses.append(self._step(batch))
            run.steps += 1
            run.tokens += int((batch.outputs != PAD).sum())
            run.seconds += time.monotonic() - resumed
            is_measured = run.total_steps is None and run.steps >= MEASURED_STEPS
            is_validated = is_measured or run.steps % self._interval() == 0 or run.steps == run.total_steps
            if is_validated:
                self._validate()  # which is no training, and not in `run.seconds`
            if is_measured:
                run.total_steps = self._measured_steps(time.monotonic() - started)
            yield is_validated
            if is_validated or run.interrupted or time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save()
                saved = time.monotonic()
            resumed = time.monotonic()

    def finish(self) -> Run:
        """Give the model its best numbers, and say which layer of a Transformer aligns best."""
        self.model.load_state_dict(self.state.best)
        self.model.eval()
        if isinstance(self.model.decoder, TransformerDecoder) and self.run.history:
            self.model.decoder.aligned_layer = evaluation.best_layer(self.model, self.validation)
            if self.folder is not None:
                self.folder.write_best(self.state)
        return self.run

    def _step(self, batch: Batch) -> float:
        run, options, optimiser = self.run, self.options, self.state.optimiser
        self.model.train()
        for group in optimiser.param_groups:
            group["lr"] = options.learning_rate_at(run.steps, run.total_steps)
        loss = batch_loss(self.model, batch, options.smoothing, PRECISIONS[options.precision])
        value = loss.item()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        if not math.isfinite(value) or not math.isfinite(norm.item()):
            raise TrainingError(self._diverged(value))
        optimiser.step()
        return value

    def _diverged(self, value: float) -> str:
        self.model.load_state_dict(self.state.best)
        self.model.eval()
        kept = f"the model has its {'best' if self.run.history else 'first'} numbers again"
        step = None if self.folder is None else self.folder.last_step()
        if self.folder is not None and step is not None:
            kept += f"; the last good checkpoint is {self.folder.path / LAST}, of step {step:,}"
        return (
            f"the loss is {value} (or its gradient is not finite) at step {self.run.steps + 1:,}: {kept}. "
            f"A learning rate below {self.options.learning_rate:g}, or a smaller clip, may help"
        )

    def _measured_steps(self, elapsed: float) -> int:
        """The steps that fit into the minutes, from the time that the first ones and one validation took."""
        assert self.options.minutes is not None  # noqa: S101  steps were not given
        run, every = self.run, self.options.validate_every
        elapsed += self.seconds_before
        left, step, validation = 60 * self.options.minutes - elapsed, run.seconds / run.steps, elapsed - run.seconds
        steps = left / (step + validation / (every or MIN_VALIDATION_STEPS))
        if every is None:  # in a long run they are further apart
            steps = max(steps, (left - VALIDATIONS * validation) / step)
        return run.steps + max(0, round(steps))

    def _interval(self) -> int:
        if self.options.validate_every is not None:
            return self.options.validate_every
        total = self.run.total_steps
        return MIN_VALIDATION_STEPS if total is None else max(MIN_VALIDATION_STEPS, total // VALIDATIONS)

    def _is_stuck(self) -> bool:
        patience, losses = self.options.patience, [record.validation_loss for record in self.run.history]
        if patience is None or len(losses) <= patience:
            return False
        return min(losses[-patience:]) >= min(losses[:-patience])

    def _line(self, loss: float) -> str:
        run = self.run
        sample = f"; {run.history[-1].sample}" if run.history else ""
        return f"loss {loss:.2f}, {run.tokens / max(run.seconds, 1e-9):,.0f} tokens/s{sample}"

    def _validate(self) -> None:
        run = self.run
        losses = run.losses[run.history[-1].step if run.history else 0 :]
        loss = validation_loss(self.model, self.held_out)
        if loss < run.best_loss:
            self.state = self.state._replace(best=_copy(self.model))
            run.best_step = run.steps
        pair = self.validation[len(run.history) % len(self.validation)]
        (translated,) = decoding.translate(self.model, [pair.source], beam=1, max_tokens=SAMPLE_TOKENS)
        speed, sample = run.tokens / max(run.seconds, 1e-9), f"{pair.source} -> {translated.text}"
        run.history.append(Record(run.steps, sum(losses) / len(losses), loss, speed, run.seconds, sample))

    def _save(self) -> None:
        if self.folder is not None:
            self.folder.write(self.state)


def batch_loss(
    model: TranslationModel, batch: Batch, smoothing: float, dtype: torch.dtype = torch.float32
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target tokens, in nats; only those that are no padding are computed."""
    memory = model.encode(batch.source, batch.lengths)
    features, _ = model.force(batch.inputs, memory)
    inside = batch.outputs != PAD
    chosen = model.dropout(features[inside])
    return output_loss(chosen, model.target_embedding.weight, model.bias, batch.outputs[inside], smoothing, dtype)


def validation_loss(model: TranslationModel, sentences: Sentences) -> float:
    """Mean cross-entropy over all target tokens of some sentences, without dropout and smoothing."""
    model.eval()
    total, tokens = 0.0, 0
    with torch.no_grad():
        for pairs in sentences.order(None):
            batch = sentences.batch(pairs)
            count = int((batch.outputs != PAD).sum())
            total += batch_loss(model, batch, 0.0).item() * count
            tokens += count
    return total / tokens


def _encoded(pairs: Pairs, model: TranslationModel) -> list[tuple[list[int], list[int]]]:
    """Numbers of the pairs; those with an empty side are left out."""
    found = [(source, target) for source, target in encode_pairs(pairs, model.known) if source and target]
    if not found:
        raise DataError(f"none of {len(pairs):,} pairs has a word on both sides")
    longest = max(max(len(source), len(target)) for source, target in found)
    if longest > decoding.MAX_SOURCE_TOKENS:
        raise DataError(
            f"a text has at most {decoding.MAX_SOURCE_TOKENS:,} tokens, and one to learn from has {longest:,}: cut it "
            "into sentences"
        )
    return found


def _copy(model: TranslationModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@contextmanager
def _own_random(state: Tensor | None, seed: int) -> Iterator[None]:
    """Random numbers of the run alone: they start from its seed or its checkpoint, and disturb nobody else's."""
    with torch.random.fork_rng(devices=[]):
        if state is None:
            torch.manual_seed(seed)
        else:
            torch.set_rng_state(state)
        yield


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Let the first Ctrl-C set the event that the block receives, and the second one interrupt at once.

    A step that is cut in the middle could not be continued exactly. Only the main thread gets Ctrl-C.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
