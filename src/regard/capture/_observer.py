"""The observer of a running model: which module runs, in which step, and which calls are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial, wraps
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture._generation import Generation
from regard.capture._output_check import OutputCheck
from regard.capture._patching import unwrapped, wrapped
from regard.errors import ChoiceError, RecordError, RegardError
from regard.recording import FileSink, MemorySink
from regard.tracing import is_transforming

TOKEN_INPUTS = ("input_ids", "decoder_input_ids")  # Hugging Face's names of token ids
FAST_PATH = frozenset((nn.TransformerEncoder.forward, nn.MultiheadAttention.forward))  # see also `_multihead`
CROSS_INPUTS = ("encoder_hidden_states", "key_value_states")  # Hugging Face's names of the other sequence

Listener = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None]
_recording: Counter[tuple[int, int]] = Counter()  # recordings that are running, by thread and id of the model


@dataclass(frozen=True)
class Selection:
    """Layers (names, or patterns with * and ?), heads and steps that are recorded; None: all."""

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
    """Tracks which module of a model runs. Routes report calls to it; those that are selected go on to the sink."""

    def __init__(
        self,
        model: nn.Module,
        selection: Selection,
        dtype: torch.dtype | None,
        check: OutputCheck,
        sink: MemorySink | FileSink,
    ) -> None:
        self.model, self.selection, self.dtype, self.check, self.sink = model, selection, dtype, check, sink
        self.names = {id(module): name or type(model).__name__ for name, module in model.named_modules()}
        selection.check(tuple(self.names.values()))
        self.stack: list[tuple[str, bool]] = []  # modules that run, and whether they attend to another sequence
        self.step = -1
        self.passes = 0
        self.seen: dict[str, int] = {}  # calls of every layer, selected or not
        self.refused: set[str] = set()  # layers that are missing, of which nothing more is kept
        self.compiled = False  # True if the model was compiled meanwhile
        self.failure: RegardError | None = None
        self.thread = get_ident()
        self.sees_functions = True  # False inside a forward of torch's that may take its fast path
        self.listeners: list[tuple[type | tuple[type, ...], Listener]] = []  # called after modules of a type have run
        self.on_pass: list[Callable[[], None]] = []  # called when a forward pass begins
        self.generating: Generation | None = None  # inside generate
        # Takes the calls of scaled_dot_product_attention that are part of a call which a route observes as a whole.
        self.inner: Callable[..., None] | None = None

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

    def owner_of(self, module: nn.Module) -> str | None:
        """Name of a module; of one that the model has not registered, that of the module inside which it runs."""
        name = self.name_of(module)
        return self.current if name is None and get_ident() == self.thread else name

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Wrap the forward of every module that may attend.

        Not by hooks: with a hook a module of torch's leaves its fast path, and the last bits of its output change.
        """
        key = self.thread, id(self.model)
        _recording[key] += 1
        with ExitStack() as stack:
            stack.callback(_recording.subtract, {key: 1})
            for module in self.model.modules():
                if module is self.model or _may_attend(module):
                    stack.enter_context(wrapped(module, "forward", partial(self._wrap, module)))
            yield

    def _wrap(self, module: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
        name = self.names[id(module)]
        listeners = [listener for kind, listener in self.listeners if isinstance(module, kind)]

        @wraps(forward)
        def run(*args: Any, **options: Any) -> Any:
            if self.is_outside():
                return forward(*args, **options)
            if not self.stack:
                self._begin(args, options)
            self.stack.append((name, _attends_elsewhere(module, options)))
            try:
                with self.seeing_functions(not has_fast_path(module)):
                    output = forward(*args, **options)
                for listener in listeners:
                    listener(module, args, options, output)
            finally:
                self.stack.pop()
            return output

        return run

    def _begin(self, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.passes += 1
        for listener in self.on_pass:
            listener()
        inputs = {name: options[name] for name in TOKEN_INPUTS if _is_token_ids(options.get(name))}
        if args and _is_token_ids(args[0]):
            inputs.setdefault("input_ids", args[0])
        if self.generating is not None:
            self.generating.begin(inputs, options.get("past_key_values"))
            return
        self.step += 1
        if inputs:
            self.sink.add_inputs(self.step, inputs)

    @contextmanager
    def generation(self) -> Iterator[Generation | None]:
        """Record all forward passes inside as one step, their queries appended."""
        if self.generating is not None:
            yield None
            return
        self.step += 1
        self.generating = Generation()
        try:
            yield self.generating
        finally:
            generation, self.generating = self.generating, None
            generation.close()
            self._take_generation(generation)

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
        if not _recording[get_ident(), id(self.model)]:  # else that thread has a recording of its own
            self.failure = self.failure or RecordError(
                "the model ran in another thread than the one that records it: put `with record(model)` into that "
                "thread"
            )
        return True

    def observe(self, name: str, read: Callable[[], Any]) -> None:
        """Take a call that a route has seen: an `ObservedCall` or an `AttendCall`, which `read` makes.

        What cannot be read, or does not give the model's own output, is named as missing. The model's run goes on.
        """
        self.seen[name] = self.seen.get(name, 0) + 1
        if self.failure is not None or name in self.refused or not self._is_selected(name):
            return
        with torch.no_grad(), self._missing_on_error(name), self.serving(ignore):
            if is_transforming():
                raise RecordError("it ran in a transform of torch.func (vmap, grad), whose tensors are gone after it")
            call = read()
            self._keep(name, call, self.check.status(name, call))

    @contextmanager
    def seeing_functions(self, sees: bool) -> Iterator[None]:
        """Let torch function modes see what is called inside, or not.

        Under such a mode torch's layers leave their fast path. Then the last bits of the output change, or all of
        it: the fast path does not call what a subclass, or a module inside, has overridden.
        """
        if sees == self.sees_functions:
            yield
            return
        switch = torch._C._EnableTorchFunction if sees else torch._C.DisableTorchFunction  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]
        before, self.sees_functions = self.sees_functions, sees
        try:
            with switch():
                yield
        finally:
            self.sees_functions = before

    @contextmanager
    def serving(self, inner: Callable[..., None]) -> Iterator[None]:
        """Hand what is called inside to a route that observes the whole, and to no other."""
        before, self.inner = self.inner, inner
        try:
            yield
        finally:
            self.inner = before

    def miss(self, name: str, reason: str) -> None:
        """Name a layer as missing: it attended, and what it did is not in the recording."""
        if self._is_selected(name):
            self.refused.add(name)
            self.sink.miss(name, reason)

    def _is_selected(self, name: str) -> bool:
        return self.selection.has_layer(name) and self.selection.has_step(self.step)

    @contextmanager
    def _missing_on_error(self, name: str) -> Iterator[None]:
        try:
            yield
        except ChoiceError as failure:  # the caller's, not the model's
            self.failure = self.failure or failure
        except RegardError as error:
            self.miss(name, str(error))
        except Exception as error:  # noqa: BLE001  the model must not suffer from what we did not foresee
            self.miss(name, f"it could not be read: {type(error).__name__}: {error}")

    def _keep(self, name: str, call: Any, check: str) -> None:
        kept = self._selected_heads(name, call).copied(self.dtype)
        if self.generating is not None and kept.joins:
            self.generating.add(name, kept, call.watched, check)
        else:
            self.sink.take(kept.to_call(name, self.step, self.selection.heads, check))

    def _selected_heads(self, name: str, call: Any) -> Any:
        heads = self.selection.heads
        if heads is None or call.query.dim() != 4:
            return call
        count = call.query.shape[1]
        if not all(0 <= head < count for head in heads):
            raise ChoiceError(f"heads={heads} asks for heads that {name!r} does not have: it has {count}")
        return call.of_heads(heads)

    def _take_generation(self, generation: Generation) -> None:
        inputs = generation.token_inputs()
        if inputs:
            self.sink.add_inputs(self.step, inputs)
        for (name, _), steps in generation.layers.items():
            if name in self.refused:
                continue
            with self._missing_on_error(name):
                rows = generation.chosen_rows()
                call = steps.joined(rows)
                if self.check.which != "none" and self.dtype is None:
                    steps.check_last_row(call, (self.selection.heads or (0,))[0], rows)
                self.sink.take(call.to_call(name, self.step, self.selection.heads, steps.check))


def ignore(*_: Any) -> None:
    """Take no notice of a kernel that is part of something else."""


def _attends_elsewhere(module: nn.Module, options: dict[str, Any]) -> bool:
    """True if a module of a Hugging Face model attends to another sequence."""
    return getattr(module, "is_cross_attention", False) is True or any(
        options.get(other) is not None for other in CROSS_INPUTS
    )


def has_fast_path(module: nn.Module) -> bool:
    """True if a module runs a forward of torch's that may take a fast path, which it leaves under a function mode.

    In training there is none. There the parameters may also be computed anew, or drawn, each time that they are read.
    """
    return not module.training and has_torch_forward(module)


def has_torch_forward(module: nn.Module) -> bool:
    """True if a module runs one of the forwards of torch's that have a fast path."""
    return getattr(unwrapped(module, "forward"), "__func__", None) in FAST_PATH


def _may_attend(module: nn.Module) -> bool:
    """False for torch's own small modules, of which there are thousands."""
    own = type(module).__module__.startswith("torch.nn.modules")
    return not own or isinstance(module, nn.MultiheadAttention) or any(True for _ in module.children())


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.dim() == 2


def shortlist(names: Sequence[str]) -> str:
    """The first 20 names, and how many there are."""
    return ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
