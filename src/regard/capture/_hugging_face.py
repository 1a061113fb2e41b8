"""Hugging Face models: every attention layer asks one registry for the function that attends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from torch import Tensor, nn

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import Part
from regard.capture._observer import Watch
from regard.capture._sdpa import SdpaMode
from regard.errors import RecordError

CHANGES_WEIGHTS = ("s_aux", "head_mask", "sinks")  # arguments that change weights in ways we do not know

_lock = Lock()
_routes: list[_Route] = []  # all recordings that go on, in whatever thread
_original: Any = None  # the registry's own function, while there are any


@contextmanager
def hugging_face(watch: Watch, mode: SdpaMode, reader: MaskReader) -> Iterator[None]:
    """While this lasts, functions that the registry gives to layers of the watched model tell of their calls."""
    library = sys.modules.get("transformers.modeling_utils")
    if library is None:  # then the model is none of theirs
        yield
        return
    route = _Route(watch, mode, reader)
    _enter(library, route)
    try:
        yield
    finally:
        _leave(library, route)


def _enter(library: Any, route: _Route) -> None:
    global _original  # noqa: PLW0603  the registry is one for all, so is what we put into it
    with _lock:
        if not _routes:
            _original = library.AttentionInterface.get_interface
            library.AttentionInterface.get_interface = _get_interface
        _routes.append(route)


def _leave(library: Any, route: _Route) -> None:
    with _lock:
        _routes.remove(route)
        if not _routes:
            library.AttentionInterface.get_interface = _original


def _get_interface(self: Any, implementation: str, default: Any) -> Any:
    function = _original(self, implementation, default)

    def attend(module: nn.Module, *args: Any, **options: Any) -> Any:
        call: Any = function
        for route in tuple(_routes):
            call = route.around(module, call)
        return call(module, *args, **options)

    return attend


class _Route:
    """What one recording does with calls of its model's layers."""

    def __init__(self, watch: Watch, mode: SdpaMode, reader: MaskReader) -> None:
        self.watch, self.mode, self.reader = watch, mode, reader

    def around(self, module: nn.Module, function: Any) -> Any:
        name = self.watch.name_of(module)
        if name is None or self.watch.elsewhere():
            return function
        layer = _Layer(self.watch, self.mode, self.reader, name, module)
        return lambda _, *args, **options: layer.run(function, args, options)


class _Layer:
    """One call of one layer."""

    def __init__(self, watch: Watch, mode: SdpaMode, reader: MaskReader, name: str, module: Any) -> None:
        self.watch, self.mode, self.reader, self.name, self.module = watch, mode, reader, name, module
        self.inner: tuple[dict[str, Any], Tensor | None] | None = None

    def run(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        before, self.mode.inside = self.mode.inside, self._tell
        try:
            result = function(self.module, *args, **options)
        finally:
            self.mode.inside = before
        self.watch.saw(self.name, lambda: self._part(args, options))
        return result

    def _tell(self, given: dict[str, Any], lse: Tensor | None) -> None:
        self.inner = given, lse

    def _part(self, args: tuple[Any, ...], options: dict[str, Any]) -> Part:
        query, key = args[0], args[1]
        mask = args[3] if len(args) > 3 else options.get("attention_mask")
        for argument in CHANGES_WEIGHTS:
            if options.get(argument) is not None:
                raise RecordError(f"{self.name!r} attends with {argument}, which recordings do not know")
        given, lse = self.inner or ({}, None)
        if given:  # in the digits that the kernel was given
            query, key = query.to(given["query"].dtype), key[..., : given["key"].shape[-2], :].to(given["key"].dtype)
        n, m = query.shape[-2], key.shape[-2]
        mask = _written_out(mask, query, m)
        m = m if self.watch.cross else self.reader.filled(mask, n, m)
        key, mask = key[..., :m, :], mask if mask is None else mask[..., :m]
        bias = options.get("position_bias")
        causal = bool(given.get("is_causal")) or self._folded(mask, bias, n, options)
        visible, extra = self.reader.read(mask, causal=causal, n=n, m=m)
        if bias is not None:
            _, extra = self.reader.read(bias[..., :m], causal=False, n=n, m=m)
        scale = options.get("scaling")
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return Part(query, key, float(scale), visible, extra, options.get("softcap"), lse, self.watch.cross)

    def _folded(self, mask: Any, bias: Any, n: int, options: dict[str, Any]) -> bool:
        """With a bias, the library folds the causal mask into it, where it would have said `is_causal` otherwise."""
        if bias is None or mask is not None or self.inner is None or n == 1:
            return False
        said = options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if said is None else said)


def _written_out(mask: Any, query: Tensor, m: int) -> Tensor | None:
    """flex attention's masks are rules, others are tensors."""
    rule = getattr(mask, "mask_mod", None)
    if rule is None:
        return mask if mask is None else mask[..., :m]
    from torch.nn.attention.flex_attention import create_mask

    return create_mask(rule, query.shape[0], 1, query.shape[2], m, device=str(query.device))
