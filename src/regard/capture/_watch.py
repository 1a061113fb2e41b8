"""Where a running model is: which module, which pass; and what of its attention is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from regard.capture._append import Growing
from regard.capture._part import Part
from regard.errors import ChoiceError, RegardError
from regard.recording._call import Call

IDS = ("input_ids", "decoder_input_ids")  # what Hugging Face calls the tokens
CROSS = ("encoder_hidden_states", "key_value_states")  # how Hugging Face names the other sequence


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
                raise ChoiceError(f"layers={pattern!r} is no module of this model; modules are {_few(names)}")


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
        self.seen = 0  # calls, wanted or not
        self.failure: RegardError | None = None
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
    def hooks(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module in self.model.modules():
                if _may_attend(module):
                    stack.callback(module.register_forward_pre_hook(self._enter, with_kwargs=True).remove)
                    stack.callback(module.register_forward_hook(self._leave, always_call=True).remove)
            yield

    def _enter(self, module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not self.stack:
            self._begin(args, options)
        other = any(options.get(name) is not None for name in CROSS)
        self.stack.append((self.names[id(module)], other))

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        del module, args, output
        if self.stack:
            self.stack.pop()

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

    def saw(self, name: str, part: Part) -> None:
        """A route has seen a call. What goes wrong with it ends the recording, never the model's run."""
        self.seen += 1
        if self.failure is not None or not (self.wanted.layer(name) and self.wanted.step(self.step)):
            return
        try:
            self._keep(name, part)
        except RegardError as failure:
            self.failure = failure

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

    def _take(self, name: str, part: Part) -> None:
        self.take(part.call(name, self.step, self.wanted.heads))


def _may_attend(module: nn.Module) -> bool:
    """Not torch's own small parts, of which there are thousands."""
    own = type(module).__module__.startswith("torch.nn.modules")
    return not own or isinstance(module, nn.MultiheadAttention) or any(True for _ in module.children())


def _is_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.dim() == 2


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
