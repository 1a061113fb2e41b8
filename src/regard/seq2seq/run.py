"""A training run: its settings, what it has reached, and its folder of checkpoints, from which it goes on exactly."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.datasets import Pairs
from regard.errors import ChoiceError
from regard.seq2seq import checkpoint
from regard.seq2seq.model import TranslationModel

LAST, BEST, SETTINGS = "last.safetensors", "best.safetensors", "run.json"
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


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
    validate_every: int | None
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
        if not 0 < self.learning_rate < math.inf or not self.clip > 0 or not 0 <= self.smoothing < 1:
            raise ChoiceError(
                "learning_rate and clip are positive and smoothing is a share from 0 to 1, and they came as "
                f"{self.learning_rate}, {self.clip} and {self.smoothing}"
            )
        if self.precision not in PRECISIONS:
            raise ChoiceError(f"precision is 'float32' or 'bfloat16', and came as {self.precision!r}")
        for name in ("batch_tokens", "warmup", "patience", "validate_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ChoiceError(f"{name} is 1 or more, and came as {value}")

    def learning_rate_at(self, step: int, total: int | None) -> float:
        """The learning rate of a step: up linearly in the warm-up, then linearly down to 0 at the end.

        The warm-up is at most a quarter of the run. While the length of the run is not known, it is `warmup`.
        """
        warmup = self.warmup if total is None else max(1, min(self.warmup, total // 4))
        rising = (step + 1) / warmup
        falling = 1.0 if total is None else (total - step) / max(1, total - warmup)
        return self.learning_rate * min(1.0, rising, falling)


class Record(NamedTuple):
    """One validation of a run."""

    step: int
    loss: float  # mean of the training losses since the record before
    validation_loss: float  # nats for each target token, without label smoothing
    tokens_per_second: float  # target tokens, in training
    seconds: float  # of training since the run began
    sample: str  # a validation sentence and its translation at this step


@dataclass
class Run:
    """A run of `train`: the best model, and how it came about."""

    model: TranslationModel
    history: list[Record] = field(default_factory=list)
    losses: list[float] = field(default_factory=list, repr=False)  # of each step
    steps: int = 0  # done
    total_steps: int | None = None  # of the whole run; None until minutes have been turned into steps
    seconds: float = 0.0  # of training
    tokens: int = 0  # target tokens seen
    best_step: int = 0
    interrupted: bool = False  # by Ctrl-C, or by `report`
    folder: Path | None = None

    @property
    def best_loss(self) -> float:
        """The smallest validation loss."""
        return min((record.validation_loss for record in self.history), default=math.inf)


Tensors = dict[str, Tensor]  # by name


class RunState(NamedTuple):
    """All that a run needs to go on exactly: its history, the parameters, the optimiser and the random state."""

    run: Run
    best: Tensors  # parameters at the best validation
    optimiser: torch.optim.Optimizer
    random: Tensor | None  # state of the random numbers; None at the start


class RunFolder:
    """The folder of a run: `run.json` has its settings, `last.safetensors` its state, `best.safetensors` the model."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path: Path = path
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))  # as JSON gives them back

    def read(self) -> tuple[Tensors, dict[str, Any]] | None:
        """The last checkpoint; None if there is none. A folder of another run, or of something else, is refused."""
        path = self.path / SETTINGS
        if self.path.exists() and not self.path.is_dir():
            raise ChoiceError(f"folder={str(self.path)!r} is a file: name a folder for the checkpoints")
        if not path.exists():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise ChoiceError(f"{self.path}: holds other files and no run of regard; choose an empty folder")
            self.path.mkdir(parents=True, exist_ok=True)
            checkpoint.write_json(path, {"settings": self.settings})
            return None
        old = checkpoint.read_json(path).get("settings", {})
        new = self.settings
        other = [f"{name} was {old.get(name)!r} and is {new[name]!r}" for name in new if old.get(name) != new[name]]
        if other:
            raise ChoiceError(
                f"{self.path}: holds a run with other settings: {'; '.join(other)}. Choose another folder, or make the "
                "same call to go on"
            )
        return checkpoint.read(self.path / LAST) if (self.path / LAST).exists() else None

    def write(self, state: RunState) -> None:
        """Write the whole state, then the best model."""
        run, model = state.run, state.run.model
        numbers = {f"model.{name}": tensor for name, tensor in checkpoint.model_tensors(model).items()}
        best = {f"best.{name}": tensor for name, tensor in state.best.items() if f"model.{name}" in numbers}
        for place, parameter in enumerate(model.parameters()):
            for name, value in state.optimiser.state.get(parameter, {}).items():
                numbers[f"optimiser.{place}.{name}"] = value
        numbers["losses"] = torch.tensor(run.losses, dtype=torch.float64)
        numbers["random"] = torch.get_rng_state()
        about = {
            "model": checkpoint.describe_model(model), "steps": run.steps, "total_steps": run.total_steps,
            "seconds": run.seconds, "tokens": run.tokens, "best_step": run.best_step,
            "history": [list(record) for record in run.history],
        }  # fmt: skip
        checkpoint.write(self.path / LAST, {**numbers, **best}, about)
        self.write_best(state)

    def write_best(self, state: RunState) -> None:
        """Write the best model so far."""
        names = checkpoint.model_tensors(state.run.model)
        kept = {name: tensor for name, tensor in state.best.items() if name in names}
        history = [list(record) for record in state.run.history]
        about = {"model": checkpoint.describe_model(state.run.model), "best_step": state.run.best_step}
        checkpoint.write(self.path / BEST, kept, {**about, "history": history})

    def last_step(self) -> int | None:
        """The step of the last checkpoint, if there is one."""
        return checkpoint.read(self.path / LAST)[1]["steps"] if (self.path / LAST).exists() else None


def restore(state: RunState, tensors: Tensors, about: dict[str, Any]) -> RunState:
    """The state at a checkpoint, whose parameters the model gets."""
    model = state.run.model
    model.load_state_dict(checkpoint.with_shared_embedding(named(tensors, "model.")))
    for place, parameter in enumerate(model.parameters()):
        moments = named(tensors, f"optimiser.{place}.")
        if moments:
            state.optimiser.state[parameter] = moments
    run = replace(
        state.run,
        losses=tensors["losses"].tolist(),
        history=[Record(*record) for record in about["history"]],
        **{name: about[name] for name in ("steps", "total_steps", "seconds", "tokens", "best_step")},
    )
    return RunState(run, checkpoint.with_shared_embedding(named(tensors, "best.")), state.optimiser, tensors["random"])


def named(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors whose name begins with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def fingerprint(*parts: Pairs) -> str:
    """A hash of the texts, so that a folder is not continued with others."""
    digest = hashlib.sha256()
    for part in parts:
        for pair in part:
            digest.update(f"{pair.source}\t{pair.target}\n".encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]
