"""The observer of a running model: which module runs, in which step, and which calls are recorded."""

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

from regard.capture._generation_steps import GenerationSteps
from regard.capture._observed_call import ObservedCall
from regard.errors import ChoiceError, RecordError, RegardError
from regard.recording import Call
from regard.weights import Weights

TOKEN_INPUTS = ("input_ids", "decoder_input_ids")  # Hugging Face's names of token ids
FAST_PATH = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
CROSS_INPUTS = ("encoder_hidden_states", "key_value_states")  # Hugging Face's names of the other sequence

Listener = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]


@dataclass(frozen=True)
class Selection:
    """Which layers (names, or patterns with * and ?), heads and steps are recorded; None: all."""

    layers: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None

    def has_layer(self, name: str) -> bool:
        return self.layers is None or any(fnmatchcase(name, pattern) for pattern in self.layers)

    def has_step(self, number: int) -> bool:
        return self.steps is None or number in self.steps

    def check(self, names: Sequence[str]) -> None:
        """Refuse patterns that match no module, and empty choices."""
        for pattern in self.layers or ():
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ChoiceError(f"layers={pattern!r} is no module of this model; modules are {shortlist(names)}")
        for what, chosen in (("layers", self.layers), ("heads", self.heads), ("steps", self.steps)):
            if chosen is not None and not chosen:
                raise ChoiceError(f"{what}=() asks for nothing: name some, or leave it out for all of them")


class Observer:
    """Tracks which module of a model runs. Routes report calls to it; those that are selected go on to `take`."""

    def __init__(
        self,
        model: nn.Module,
        selection: Selection,
        dtype: torch.dtype | None,
        take: Callable[[Call], None],
        given: Callable[[int, dict[str, Tensor]], None],
    ) -> None:
        self.model, self.selection, self.dtype, self.take, self.given = model, selection, dtype, take, given
        self.names = {id(module): name or type(model).__name__ for name, module in model.named_modules()}
        selection.check(tuple(self.names.values()))
        self.stack: list[tuple[str, bool]] = []  # modules that run, and whether they attend to another sequence
        self.step = -1
        self.passes = 0
        self.seen: dict[str, int] = {}  # calls of every layer, selected or not
        self.compiled = False  # True if the model was compiled meanwhile
        self.failure: RegardError | None = None
        self.thread = get_ident()
        self.listeners: list[tuple[type | tuple[type, ...], Listener]] = []  # called after modules of a type have run
        self.generating: dict[str, GenerationSteps] | None = None  # inside generate: the calls of every layer

    # The module that runs

    @property
    def current(self) -> str | None:
        """Name of the innermost module that runs."""
        return self.stack[-1][0] if self.stack else None

    @property
    def cross(self) -> bool:
        """True if that module attends to another sequence."""
        return bool(self.stack) and self.stack[-1][1]

    def name_of(self, module: nn.Module) -> str | None:
        return self.names.get(id(module))

    @contextmanager
    def wrapped(self) -> Iterator[None]:
        """Wrap the forward of every module that may attend.

        Not by hooks: with a hook a module of torch's leaves its fast path, and the last bits of its output change.
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
        unobserved = torch._C.DisableTorchFunction if _has_fast_path(module) else nullcontext  # noqa: SLF001

        @wraps(forward)
        def run(*args: Any, **options: Any) -> Any:
            if self.is_outside():
                return forward(*args, **options)
            if not self.stack:
                self._begin(args, options)
            self.stack.append((name, any(options.get(other) is not None for other in CROSS_INPUTS)))
            try:
                with unobserved():
                    output = forward(*args, **options)
                for listener in listeners:
                    listener(module, args, options, output)
            finally:
                self.stack.pop()
            return output

        return run

    def _begin(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.passes += 1
        if self.generating is None:
            self.step += 1
        inputs = {name: options[name] for name in TOKEN_INPUTS if _is_token_ids(options.get(name))}
        if args and _is_token_ids(args[0]):
            inputs.setdefault("input_ids", args[0])
        if inputs:
            self.given(self.step, inputs)

    @contextmanager
    def generation(self) -> Iterator[None]:
        """Record all forward passes inside as one step, their queries appended."""
        if self.generating is not None:
            yield
            return
        self.step += 1
        self.generating = {}
        try:
            yield
        finally:
            generated, self.generating = self.generating, None
            for name, steps in generated.items():
                self._take(name, steps.joined())

    # Calls

    def is_outside(self) -> bool:
        """True for a run of the model that is not recorded.

        That is a backward pass that runs a checkpointed layer again, a compiler that reads the model, or another
        thread, where torch's modes of this thread do not apply.
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

    def observe(self, name: str, read: Callable[[], ObservedCall]) -> None:
        """Take a call that a route has seen. An error in reading it ends the recording, never the model's run."""
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.failure is not None or not (self.selection.has_layer(name) and self.selection.has_step(self.step)):
            return
        try:
            self._keep(name, read())
        except RegardError as failure:
            self.failure = failure
        except Exception as error:  # noqa: BLE001  the model must not suffer from what we did not foresee
            self.failure = RecordError(f"{name!r} could not be recorded: {type(error).__name__}: {error}")
            self.failure.__cause__ = error

    def _keep(self, name: str, call: ObservedCall) -> None:
        call = self._selected_heads(name, call).copied(self.dtype)
        if self.generating is None:
            self._take(name, call)
        elif name not in self.generating:
            self.generating[name] = GenerationSteps(call)
        else:
            self.generating[name].append(name, call)

    def _selected_heads(self, name: str, call: ObservedCall) -> ObservedCall:
        heads, count = self.selection.heads, call.query.shape[1]
        if heads is None:
            return call
        if not all(0 <= head < count for head in heads):
            raise ChoiceError(f"heads={heads} asks for heads that {name!r} does not have: it has {count}")
        return call.of_heads(heads)

    def observe_weights(self, name: str, weights: Weights) -> None:
        """Take weights that a layer has returned, with any score, mask and normaliser."""
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.failure is None and self.selection.has_layer(name) and self.selection.has_step(self.step):
            self.take(Call.of_weights(name, self.step, weights))

    def _take(self, name: str, call: ObservedCall) -> None:
        self.take(call.to_call(name, self.step, self.selection.heads))


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Set an attribute of one object for a while."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name)
        if before is not None:
            setattr(owner, name, before)


def _has_fast_path(module: nn.Module) -> bool:
    """True for torch's layers that have a fast path, which they leave under a torch function mode."""
    return isinstance(module, FAST_PATH) and all(
        type(m).__module__.startswith("torch.nn.modules") for m in module.modules()
    )


def _may_attend(module: nn.Module) -> bool:
    """False for torch's own small modules, of which there are thousands."""
    own = type(module).__module__.startswith("torch.nn.modules")
    return not own or isinstance(module, nn.MultiheadAttention) or any(True for _ in module.children())


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.dim() == 2


def shortlist(names: Sequence[str]) -> str:
    """The first 20 names, and how many there are."""
    return ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
