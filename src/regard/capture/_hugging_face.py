"""Route: Hugging Face models, whose attention layers take their attention function from one registry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer
from regard.capture._sdpa import SdpaMode
from regard.errors import RecordError
from regard.torch_compat.sdpa import Arguments

CHANGES_WEIGHTS = ("s_aux", "head_mask", "sinks")  # arguments that change weights in ways a recording cannot keep

_lock = Lock()
_routes: list[_Route] = []  # of all recordings that are running, in any thread
_original: Any = None  # the registry's own function, while there are routes


@contextmanager
def hugging_face(observer: Observer, mode: SdpaMode, reader: MaskReader) -> Iterator[None]:
    """Observe the attention functions that the registry gives to layers of the observed model."""
    library = sys.modules.get("transformers.modeling_utils")
    if library is None:  # then the model is not from transformers
        yield
        return
    route = _Route(observer, mode, reader)
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
    """The route of one recording."""

    def __init__(self, observer: Observer, mode: SdpaMode, reader: MaskReader) -> None:
        self.observer, self.mode, self.reader = observer, mode, reader

    def around(self, module: nn.Module, function: Any) -> Any:
        """The function, wrapped if the module belongs to the observed model."""
        name = self.observer.name_of(module)
        if name is None or self.observer.is_outside():
            return function
        call = _LayerCall(self.observer, self.mode, self.reader, name, module)
        return lambda _, *args, **options: call.run(function, args, options)


class _LayerCall:
    """One call of one attention layer."""

    def __init__(self, observer: Observer, mode: SdpaMode, reader: MaskReader, name: str, module: Any) -> None:
        self.observer, self.mode, self.reader, self.name, self.module = observer, mode, reader, name, module
        self.inner: tuple[Arguments | None, Tensor | None] = (None, None)  # the call of sdpa inside, if there was one

    def run(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        before, self.mode.inside = self.mode.inside, self._take_inner
        try:
            result = function(self.module, *args, **options)
        finally:
            self.mode.inside = before
        self.observer.observe(self.name, lambda: self._observed(args, options))
        return result

    def _take_inner(self, call: Arguments, lse: Float[Tensor, "batch heads queries"] | None) -> None:
        self.inner = call, lse

    def _observed(self, args: tuple[Any, ...], options: dict[str, Any]) -> ObservedCall:
        query, key = args[0], args[1]
        mask = args[3] if len(args) > 3 else options.get("attention_mask")
        for argument in CHANGES_WEIGHTS:
            if options.get(argument) is not None:
                raise RecordError(f"{self.name!r} attends with {argument}, which recordings do not know")
        inner, lse = self.inner
        if inner is not None:  # in the dtype that the kernel was given
            query, key = query.to(inner.query.dtype), key[..., : inner.key.shape[-2], :].to(inner.key.dtype)
        n, m = query.shape[-2], key.shape[-2]
        mask = _dense_mask(mask, query, m)
        m = m if self.observer.cross else self.reader.filled(mask, n, m)
        key, mask = key[..., :m, :], mask if mask is None else mask[..., :m]
        bias = options.get("position_bias")
        causal = (inner is not None and inner.is_causal) or self._has_folded_causal(mask, bias, n, options)
        visible, extra = self.reader.read(mask, causal=causal, n=n, m=m)
        if bias is not None:
            _, extra = self.reader.read(bias[..., :m], causal=False, n=n, m=m)
        scale = options.get("scaling")
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        return ObservedCall(query, key, float(scale), visible, extra, options.get("softcap"), lse, self.observer.cross)

    def _has_folded_causal(self, mask: Any, bias: Any, n: int, options: dict[str, Any]) -> bool:
        """True if the library has added the causal mask to a position bias, in place of passing is_causal=True."""
        if bias is None or mask is not None or self.inner[0] is None or n == 1:
            return False
        is_causal = options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if is_causal is None else is_causal)


def _dense_mask(
    mask: Any, query: Float[Tensor, "batch heads queries dim"], m: int
) -> Shaped[Tensor, "... keys"] | None:
    """The mask as a tensor; flex attention's masks are functions of indices."""
    rule = getattr(mask, "mask_mod", None)
    if rule is None:
        return mask if mask is None else mask[..., :m]
    from torch.nn.attention.flex_attention import create_mask

    return create_mask(rule, query.shape[0], 1, query.shape[2], m, device=str(query.device))
