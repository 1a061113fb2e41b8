"""Training: a budget of time or steps, checkpoints from which a run goes on exactly, and the best model at the end."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.datasets import Pair, Pairs
from regard.display.progress import progress
from regard.errors import ChoiceError, DataError, TrainingError
from regard.seq2seq import alignment, checkpoint, vocabulary
from regard.seq2seq.batches import Batch, Sentences, encode_pairs, epochs
from regard.seq2seq.loss import output_loss
from regard.seq2seq.model import TranslationModel
from regard.seq2seq.transformer import TransformerDecoder
from regard.seq2seq.vocabulary import PAD

MEASURED_STEPS = 100  # after which minutes are turned into steps
CHECKPOINT_SECONDS = 45.0  # between two checkpoints: a killed run loses less than a minute
VALIDATIONS = 20  # of a run, at most
MIN_VALIDATION_STEPS = 100  # between two of them
MAX_VALIDATION_PAIRS = 2_000
SAMPLE_TOKENS = 60
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAM = {"betas": (0.9, 0.98), "eps": 1e-9}
LAST, BEST, SETTINGS = "last.safetensors", "best.safetensors", "run.json"


class Record(NamedTuple):
    """One validation of a run."""

    step: int
    loss: float  # mean of the training losses since the record before
    validation_loss: float  # nats for each target token, without label smoothing
    tokens_per_second: float  # target tokens, in training
    seconds: float  # of training since the run began
    sample: str  # a validation sentence and its translation at this step


@dataclass(frozen=True)
class Options:
    """Settings of a run, as `train` takes them."""

    minutes: float | None
    steps: int | None
    batch_tokens: int
    learning_rate: float
    warmup: int
    smoothing: float
    clip: float
    patience: int | None
    seed: int
    vocabulary: str
    vocabulary_size: int
    precision: str

    def check(self) -> None:
        """Refuse settings that no run can have."""
        if (self.minutes is None) == (self.steps is None):
            raise ChoiceError(f"train takes minutes or steps: minutes={self.minutes} and steps={self.steps} came")
        budget = self.minutes if self.steps is None else self.steps
        if budget is None or not 0 < budget < math.inf:
            raise ChoiceError(f"the budget of train is a positive number, and came as {budget}")
        if not self.learning_rate > 0 or not self.clip > 0 or not 0 <= self.smoothing < 1:
            raise ChoiceError(
                "learning_rate and clip are positive and smoothing is a share from 0 to 1, and they came as "
                f"{self.learning_rate}, {self.clip} and {self.smoothing}"
            )
        if self.precision not in PRECISIONS:
            raise ChoiceError(f"precision is 'float32' or 'bfloat16', and came as {self.precision!r}")
        for name in ("batch_tokens", "warmup"):
            if getattr(self, name) < 1:
                raise ChoiceError(f"{name} is 1 or more, and came as {getattr(self, name)}")


@dataclass
class Run:
    """A run of `train`: the best model, and how it came about."""

    model: TranslationModel
    history: list[Record] = field(default_factory=list)
    losses: list[float] = field(default_factory=list, repr=False)  # of each step
    steps: int = 0  # done
    total_steps: int | None = None  # of the whole run; None until minutes have been turned into steps
    seconds: float = 0.0
    tokens: int = 0  # target tokens seen
    best_step: int = 0
    interrupted: bool = False  # by Ctrl-C
    folder: Path | None = None

    @property
    def best_loss(self) -> float:
        """The smallest validation loss."""
        return min((record.validation_loss for record in self.history), default=math.inf)


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
    seed: int = 0,
    vocabulary: str = "auto",
    vocabulary_size: int = 4_000,
    precision: str = "float32",
    report: Callable[[Run], None] | None = None,
) -> Run:
    """Train a model on pairs of texts, and return the run with the model that was best on the validation pairs.

    pairs: if no validation pairs are given, `pairs.split()` gives them, and its test part is never seen.
    minutes, steps: the budget; 5 minutes if neither is given. Minutes are turned into steps once, after 100 steps.
    folder: keeps checkpoints. The same call goes on where it stopped, to exactly the same numbers on as many threads;
        a folder that was made with other settings is refused.
    batch_tokens: target tokens of a batch. learning_rate: of Adam; it rises for `warmup` steps, then falls linearly to 0.
    smoothing: of the labels. clip: largest norm of the gradient. patience: validations without a better loss after which
        the run ends; None never ends it early.
    vocabulary, vocabulary_size: "words", "bpe" or "auto", and tokens at most; see `vocabulary.learn`.
    precision: of the product with the table of embeddings that scores all tokens: "float32", or "bfloat16", which takes
        half its time on processors that compute in it.
    report: is called with the run after each validation.

    Ctrl-C ends the run and keeps the best model. A loss that is not finite raises TrainingError and names the last good
    checkpoint.
    """
    if minutes is None and steps is None:
        minutes = 5.0
    options = Options(
        minutes, steps, batch_tokens, learning_rate, warmup, smoothing, clip, patience, seed, vocabulary,
        vocabulary_size, precision,
    )  # fmt: skip
    options.check()
    trained, held_out = _parts(pairs, validation)
    trainer = _Trainer(model, trained, held_out, options, None if folder is None else Path(folder))
    return trainer.run(report)


def _parts(pairs: Sequence[Any], validation: Sequence[Any] | None) -> tuple[Pairs, Pairs]:
    """Training and validation pairs, neither empty."""
    whole = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    if validation is None:
        trained, held_out, _ = whole.split()
    else:
        trained = whole
        held_out = validation if isinstance(validation, Pairs) else Pairs(validation)
    for name, part in (("training", trained), ("validation", held_out)):
        if not len(part):
            raise DataError(
                f"there are no {name} pairs: {len(whole):,} pairs came"
                + ("" if validation is not None else ", of which 5 in 256 are for validation: give more, or validation=")
            )
    return trained, held_out


class _Trainer:
    """The state of a run: model, optimiser, random numbers, and how far it came."""

    def __init__(
        self, model: TranslationModel, pairs: Pairs, validation: Pairs, options: Options, folder: Path | None
    ) -> None:
        self.model, self.options, self.folder = model, options, folder
        self.fingerprint: str = _fingerprint(pairs, validation)
        stored = None if folder is None else self._stored()
        if stored is None:
            learned = model.vocabularies or vocabulary.learn(pairs, options.vocabulary, options.vocabulary_size)
            if model.vocabularies is None:
                model.build(learned, options.seed)
        else:
            source = checkpoint.build_model(stored[1]["model"], checkpoint.with_shared(_named(stored[0], "model.")))
            model.build(source.known, options.seed)
        self.validation: Pairs = validation
        self.sentences: Sentences = Sentences(_encoded(pairs, model), options.batch_tokens)
        self.held_out: Sentences = Sentences(_encoded(validation[:MAX_VALIDATION_PAIRS], model), options.batch_tokens)
        parameters = list(model.parameters())
        self.optimiser: torch.optim.Adam = torch.optim.Adam(parameters, lr=0.0, fused=True, **ADAM)  # pyright: ignore[reportArgumentType]
        self.state: Run = Run(model, total_steps=options.steps, folder=folder)
        self.best: dict[str, Tensor] = _copy(model)
        self.random: Tensor | None = None  # state of the generator of dropout
        if stored is not None:
            self._restore(*stored)
        elif folder is not None:
            self._begin_folder()

    # The loop

    def run(self, report: Callable[[Run], None] | None) -> Run:
        """Train until the budget is used up, Ctrl-C, or no progress."""
        try:
            with _own_random(self), progress("training", self.state.total_steps or 2 * MEASURED_STEPS) as advance:
                self._loop(report, advance)
        except KeyboardInterrupt:
            self.state.interrupted = True
            self._save()
        self.model.load_state_dict(self.best)
        self.model.eval()
        return self.state

    def _loop(self, report: Callable[[Run], None] | None, advance: Callable[..., None]) -> None:
        run = self.state
        saved = began = time.monotonic()
        before = run.seconds
        for number, batch in epochs(self.sentences, self.options.seed, run.steps):
            if run.total_steps is not None and (number >= run.total_steps or self._is_stuck()):
                break
            loss = self._step(batch)
            run.losses.append(loss)
            run.steps += 1
            run.tokens += int((batch.outputs != PAD).sum())
            run.seconds = before + time.monotonic() - began
            if run.total_steps is None and run.steps >= MEASURED_STEPS:
                run.total_steps = self._measured_steps()
            advance(self._line(loss), run.total_steps)
            if run.steps % self._interval() == 0 or run.steps == run.total_steps:
                self._validate()
                if report is not None:
                    report(run)
                began, before = time.monotonic(), run.seconds  # validation is no training
                if run.steps == run.total_steps:
                    self._find_alignment()
                self._save()
                saved = time.monotonic()
            elif time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save()
                saved = time.monotonic()

    def _step(self, batch: Batch) -> float:
        run, options = self.state, self.options
        self.model.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(run.steps, run.total_steps, options)
        loss = batch_loss(self.model, batch, options.smoothing, PRECISIONS[options.precision])
        value = loss.item()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        if not math.isfinite(value) or not math.isfinite(norm.item()):
            raise TrainingError(self._diverged(value))
        self.optimiser.step()
        return value

    def _diverged(self, value: float) -> str:
        self.model.load_state_dict(self.best)
        self.model.eval()
        kept = "the model has its best weights again" if self.state.history else "the model has its first weights again"
        if self.folder is not None and (self.folder / LAST).exists():
            _, about = checkpoint.read(self.folder / LAST)
            kept += f"; the last good checkpoint is {self.folder / LAST}, of step {about['steps']:,}"
        return (
            f"the loss is {value} (or its gradient is not finite) at step {self.state.steps + 1:,}: {kept}. "
            f"A learning rate below {self.options.learning_rate:g}, or a smaller clip, may help"
        )

    def _measured_steps(self) -> int:
        """The steps that fit into the minutes, from the time that the first ones took."""
        assert self.options.minutes is not None  # noqa: S101  steps were not given
        run = self.state
        return max(run.steps, round(run.steps * 60 * self.options.minutes / run.seconds))

    def _interval(self) -> int:
        total = self.state.total_steps
        return MIN_VALIDATION_STEPS if total is None else max(MIN_VALIDATION_STEPS, total // VALIDATIONS)

    def _is_stuck(self) -> bool:
        patience, history = self.options.patience, self.state.history
        if patience is None or len(history) <= patience:
            return False
        losses = [record.validation_loss for record in history]
        return min(losses[-patience:]) >= min(losses[:-patience])

    def _line(self, loss: float) -> str:
        run = self.state
        sample = f"; {run.history[-1].sample}" if run.history else ""
        return f"loss {loss:.2f}, {run.tokens / max(run.seconds, 1e-9):,.0f} tokens/s{sample}"

    # Validation

    def _validate(self) -> None:
        run = self.state
        since = run.history[-1].step if run.history else 0
        losses = run.losses[since:]
        loss = validation_loss(self.model, self.held_out)
        if loss < run.best_loss:
            self.best, run.best_step = _copy(self.model), run.steps
        pair = self.validation[len(run.history) % len(self.validation)]
        translated = self.model.translate(pair.source, beam=1, max_tokens=SAMPLE_TOKENS)
        speed = run.tokens / max(run.seconds, 1e-9)
        sample = f"{pair.source} -> {translated.text}"
        run.history.append(Record(run.steps, sum(losses) / len(losses), loss, speed, run.seconds, sample))

    def _find_alignment(self) -> None:
        """Choose the layer of a Transformer whose weights align best, on the validation pairs, for the best weights."""
        if isinstance(self.model.decoder, TransformerDecoder):
            current = _copy(self.model)
            self.model.load_state_dict(self.best)
            self.model.decoder.aligned_layer = alignment.best_layer(self.model, self.validation)
            self.model.load_state_dict(current)

    # Checkpoints

    def _settings(self) -> dict[str, Any]:
        options = {name: value for name, value in vars(self.options).items()}
        return {"kind": self.model.kind, **self.model.settings, **options, "data": self.fingerprint}

    def _begin_folder(self) -> None:
        assert self.folder is not None  # noqa: S101  called with a folder
        self.folder.mkdir(parents=True, exist_ok=True)
        checkpoint.write_json(self.folder / SETTINGS, {"settings": self._settings()})

    def _stored(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last checkpoint of the folder; None if it has none. A folder of another run is refused."""
        assert self.folder is not None  # noqa: S101  called with a folder
        if self.folder.exists() and not self.folder.is_dir():
            raise ChoiceError(f"folder={str(self.folder)!r} is a file: name a folder for the checkpoints")
        path = self.folder / SETTINGS
        if not path.exists():
            if self.folder.is_dir() and any(self.folder.iterdir()):
                raise ChoiceError(f"{self.folder}: holds other files and no run of regard; choose an empty folder")
            return None
        old, new = checkpoint.read_json(path).get("settings", {}), json.loads(json.dumps(self._settings()))
        other = [f"{name} was {old.get(name)!r} and is {new.get(name)!r}" for name in new if old.get(name) != new[name]]
        if other:
            raise ChoiceError(
                f"{self.folder}: holds a run with other settings: {'; '.join(other)}. Choose another folder, or make "
                "the same call to go on"
            )
        return checkpoint.read(self.folder / LAST) if (self.folder / LAST).exists() else None

    def _save(self) -> None:
        """Write the whole state of the run, and the best model if it is new."""
        if self.folder is None:
            return
        run = self.state
        moments = {}
        for place, parameter in enumerate(self.model.parameters()):
            for name, value in self.optimiser.state.get(parameter, {}).items():
                moments[f"optimiser.{place}.{name}"] = value
        model = {f"model.{name}": tensor for name, tensor in checkpoint.model_tensors(self.model).items()}
        best = {f"best.{name}": tensor for name, tensor in self.best.items() if f"model.{name}" in model}
        more = {"losses": torch.tensor(run.losses, dtype=torch.float64), "random": torch.get_rng_state()}
        about = {
            "model": checkpoint.describe_model(self.model),
            "steps": run.steps, "total_steps": run.total_steps, "seconds": run.seconds, "tokens": run.tokens,
            "best_step": run.best_step, "history": [list(record) for record in run.history],
        }  # fmt: skip
        checkpoint.write(self.folder / LAST, {**moments, **model, **best, **more}, about)
        kept = {name.removeprefix("best."): tensor for name, tensor in best.items()}
        checkpoint.write(self.folder / BEST, kept, {key: about[key] for key in ("model", "best_step", "history")})

    def _restore(self, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Continue exactly where a checkpoint was written."""
        self.model.load_state_dict(checkpoint.with_shared(_named(tensors, "model.")))
        self.best = checkpoint.with_shared(_named(tensors, "best."))
        if isinstance(self.model.decoder, TransformerDecoder):
            self.model.decoder.aligned_layer = about["model"]["aligned_layer"]
        for place, parameter in enumerate(self.model.parameters()):
            moments = _named(tensors, f"optimiser.{place}.")
            if moments:
                self.optimiser.state[parameter] = moments
        self.random = tensors["random"]
        history = [Record(*record) for record in about["history"]]
        self.state = replace(
            self.state,
            losses=tensors["losses"].tolist(), history=history, steps=about["steps"],
            total_steps=about["total_steps"], seconds=about["seconds"], tokens=about["tokens"],
            best_step=about["best_step"],
        )  # fmt: skip


def learning_rate(step: int, total: int | None, options: Options) -> float:
    """The learning rate of a step: up linearly in the warm-up, then linearly down to 0 at the end.

    The warm-up is at most a quarter of the run. While the length of the run is not known, it is `warmup`.
    """
    warmup = options.warmup if total is None else max(1, min(options.warmup, total // 4))
    rising = (step + 1) / warmup
    falling = 1.0 if total is None else (total - step) / max(1, total - warmup)
    return options.learning_rate * min(1.0, rising, falling)


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
    return found


def _fingerprint(*parts: Pairs) -> str:
    """A hash of the texts, so that a folder is not continued with others."""
    digest = hashlib.sha256()
    for part in parts:
        for pair in part:
            digest.update(f"{pair.source}\t{pair.target}\n".encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def _copy(model: TranslationModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _named(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextmanager
def _own_random(trainer: _Trainer) -> Iterator[None]:
    """Random numbers of the run alone: they start from its seed or its checkpoint, and disturb nobody else's."""
    with torch.random.fork_rng(devices=[]):
        if trainer.random is None:
            torch.manual_seed(trainer.options.seed)
        else:
            torch.set_rng_state(trainer.random)
        yield
