"""Where a running model is: which module, which pass; and what of its attention is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture._generation_steps import Growing
from regard.capture._observed_call import Part
from regard.errors import ChoiceError, RecordError, RegardError
from regard.recording._call import Call
from regard.weights import Weights

IDS = ("input_ids", "decoder_input_ids")  # what Hugging Face calls the tokens
FAST = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
CROSS = ("encoder_hidden_states", "key_value_states")  # how Hugging Face names the other sequence

Listener = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]


@dataclass(frozen=True)
class Wanted:
    """Which layers (names, or patterns with * and ?), heads and steps are kept; None: all."""

    layers: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def layer(self, name: str) -> bool:
        return self.layers is None or any(fnmatchcase(name, pattern) for pattern in self.layers)

    def step(self, number: int) -> bool:
        return self.steps is None or number in self.steps

    def check(self, names: Sequence[str]) -> None:
        for pattern in self.layers or ():
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ChoiceError(f"layers={pattern!r} is no module of this model; modules are {few(names)}")
        for what, chosen in (("layers", self.layers), ("heads", self.heads), ("steps", self.steps)):
            if chosen is not None and not chosen:
                raise ChoiceError(f"{what}=() asks for nothing: name some, or leave it out for all of them")


class Watch:
    """Knows which module runs. Routes tell it of calls; wanted ones go on to `take`."""

    def __init__(
        self,
        model: nn.Module,
        wanted: Wanted,
        dtype: torch.dtype | None,
        take: Callable[[Call], None],
        given: Callable[[int, dict[str, Tensor]], None],
    ) -> None:
        self.model, self.wanted, self.dtype, self.take, self.given = model, wanted, dtype, take, given
        self.names = {id(module): name or type(model).__name__ for name, module in model.named_modules()}
        wanted.check(tuple(self.names.values()))
        self.stack: list[tuple[str, bool]] = []  # the modules that run, and whether they look at another sequence
        self.step = -1
        self.passes = 0
        self.seen: dict[str, int] = {}  # calls of every layer, wanted or not
        self.compiled = False  # whether somebody has compiled the model meanwhile
        self.failure: RegardError | None = None
        self.thread = get_ident()
        self.listeners: list[tuple[type | tuple[type, ...], Listener]] = []  # told after modules of a kind have run
        self.growing: dict[str, Growing] | None = None  # inside generate: what every layer has so far

    # Where we are

    @property
    def here(self) -> str | None:
        return self.stack[-1][0] if self.stack else None

    @property
    def cross(self) -> bool:
        return bool(self.stack) and self.stack[-1][1]

    def name_of(self, module: nn.Module) -> str | None:
        return self.names.get(id(module))

    @contextmanager
    def wrapped(self) -> Iterator[None]:
        """Every module's forward says where it begins and ends.

        Not by hooks: a module of torch's with a hook in it leaves its fast path, and its last bits change.
        """
        with ExitStack() as stack:
            for module in self.model.modules():
                if module is self.model or _may_attend(module):
                    stack.enter_context(replaced(module, "forward", self._wrap(module)))
            yield

    def _wrap(self, module: nn.Module) -> Any:
        forward = module.forward
        name = self.names[id(module)]
        listeners = [listener for kind, listener in self.listeners if isinstance(module, kind)]
        quiet = torch._C.DisableTorchFunction if _is_torchs_own(module) else nullcontext  # noqa: SLF001

        @wraps(forward)
        def run(*args: Any, **options: Any) -> Any:
            if self.elsewhere():
                return forward(*args, **options)
            if not self.stack:
                self._begin(args, options)
            self.stack.append((name, any(options.get(other) is not None for other in CROSS)))
            try:
                with quiet():
                    output = forward(*args, **options)
                for listener in listeners:
                    listener(module, args, options, output)
            finally:
                self.stack.pop()
            return output

        return run

    def _begin(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.passes += 1
        if self.growing is None:
            self.step += 1
        given = {name: options[name] for name in IDS if _is_ids(options.get(name))}
        if args and _is_ids(args[0]):
            given.setdefault("input_ids", args[0])
        if given:
            self.given(self.step, given)

    @contextmanager
    def one_step(self) -> Iterator[None]:
        """All passes inside are one step, whose rows are appended."""
        if self.growing is not None:
            yield
            return
        self.step += 1
        self.growing = {}
        try:
            yield
        finally:
            growing, self.growing = self.growing, None
            for name, layer in growing.items():
                self._take(name, layer.part())

    # What was seen

    def elsewhere(self) -> bool:
        """Whether this is not what is recorded: a backward pass that runs a checkpointed layer again, a compiler that
        reads the model, or another thread. What torch does there cannot be watched from here.
        """
        if torch.compiler.is_compiling():
            self.compiled = True
            return True
        if get_ident() == self.thread:
            return torch._C._current_graph_task_id() >= 0  # noqa: SLF001  the number of the backward pass, or -1
        self.failure = self.failure or RecordError(
            "the model ran in another thread than the one that records it: put `with record(model)` into that thread"
        )
        return True

    def saw(self, name: str, read: Callable[[], Part]) -> None:
        """A route has seen a call. What goes wrong in reading it ends the recording, never the model's run."""
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.failure is not None or not (self.wanted.layer(name) and self.wanted.step(self.step)):
            return
        try:
            self._keep(name, read())
        except RegardError as failure:
            self.failure = failure
        except Exception as error:  # noqa: BLE001  the model must not suffer from what we did not foresee
            self.failure = RecordError(f"{name!r} could not be recorded: {type(error).__name__}: {error}")
            self.failure.__cause__ = error

    def _keep(self, name: str, part: Part) -> None:
        part = self._chosen(name, part)
        if self.growing is None:
            self._take(name, part.kept(self.dtype))
        elif name not in self.growing:
            self.growing[name] = Growing(part.kept(self.dtype))
        else:
            self.growing[name].append(name, part.kept(self.dtype))

    def _chosen(self, name: str, part: Part) -> Part:
        heads, count = self.wanted.heads, part.query.shape[1]
        if heads is None:
            return part
        if not all(0 <= head < count for head in heads):
            raise ChoiceError(f"heads={heads} asks for heads that {name!r} does not have: it has {count}")
        return part.of_heads(heads)

    def saw_weights(self, name: str, weights: Weights) -> None:
        """A layer that returns its weights itself, of whatever formula."""
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.failure is None and self.wanted.layer(name) and self.wanted.step(self.step):
            self.take(Call.of_weights(name, self.step, weights))

    def _take(self, name: str, part: Part) -> None:
        self.take(part.call(name, self.step, self.wanted.heads))


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """An attribute of one object, for a while."""
    had = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)
        if had is not None:
            setattr(owner, name, had)


def _is_torchs_own(module: nn.Module) -> bool:
    """Layers in which no call could be seen, and which leave their fast path when somebody looks for calls."""
    return isinstance(module, FAST) and all(type(m).__module__.startswith("torch.nn.modules") for m in module.modules())


def _may_attend(module: nn.Module) -> bool:
    """Not torch's own small parts, of which there are thousands."""
    own = type(module).__module__.startswith("torch.nn.modules")
    return not own or isinstance(module, nn.MultiheadAttention) or any(True for _ in module.children())


def _is_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.dim() == 2


def few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
