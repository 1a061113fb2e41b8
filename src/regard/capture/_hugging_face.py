"""Route: Hugging Face models, whose attention layers take their attention function from one registry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from jaxtyping import Float, Shaped
from torch import Tensor, nn

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer
from regard.capture._output_check import PooledOutput
from regard.errors import RecordError
from regard.torch_compat.sdpa import Arguments

CHANGES_WEIGHTS = ("s_aux", "head_mask", "sinks")  # arguments that change weights in ways a recording cannot keep

_lock = Lock()
_routes: list[_Route] = []  # of all recordings that are running, in any thread
_original: Any = None  # the registry's own function, while there are routes


@contextmanager
def hugging_face(observer: Observer, reader: MaskReader) -> Iterator[None]:
    """Observe the attention functions that the registry gives to layers of the observed model."""
    library = sys.modules.get("transformers.modeling_utils")
    if library is None:  # then the model is not from transformers
        yield
        return
    route = _Route(observer, reader)
    _enter(library, route)
    try:
        yield
    finally:
        _leave(library, route)


def is_hugging_face(model: nn.Module) -> bool:
    """True if the model or a part of it is a model of the library transformers."""
    library = sys.modules.get("transformers.modeling_utils")
    return library is not None and any(isinstance(part, library.PreTrainedModel) for part in model.modules())


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

    def __init__(self, observer: Observer, reader: MaskReader) -> None:
        self.observer, self.reader = observer, reader

    def around(self, module: nn.Module, function: Any) -> Any:
        """The function, wrapped if the module belongs to the observed model."""
        name = self.observer.name_of(module)
        if name is None or self.observer.is_outside():
            return function
        call = _LayerCall(self.observer, self.reader, name, module)
        return lambda _, *args, **options: call.run(function, args, options)


ORDER = ("query", "key", "value", "attention_mask")  # of the positional arguments of an attention function


class _LayerCall:
    """One call of one attention layer."""

    def __init__(self, observer: Observer, reader: MaskReader, name: str, module: Any) -> None:
        self.observer, self.reader, self.name, self.module = observer, reader, name, module
        self.inner: Arguments | None = None  # the call of sdpa inside, if there was one
        self.lse: Tensor | None = None  # the log-sum-exp that it returned

    def run(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        with self.observer.serving(self._take_inner):
            result = function(self.module, *args, **options)
        arguments = {**dict(zip(ORDER, args, strict=False)), **options}
        self.observer.observe(self.name, lambda: replace(self._observed(arguments, result), function=id(function)))
        return result

    def _take_inner(self, call: Arguments, output: Tensor, lse: Float[Tensor, "batch heads queries"] | None) -> None:
        del output
        self.inner, self.lse = call, lse

    def _observed(self, arguments: dict[str, Any], result: Any) -> ObservedCall:
        for argument in CHANGES_WEIGHTS:
            if arguments.get(argument) is not None:
                raise RecordError(f"it attends with {argument}, which recordings do not know")
        query, key, value = (arguments[name] for name in ("query", "key", "value"))
        mask = arguments.get("attention_mask")
        inner = self.inner
        if inner is not None:  # in the dtype that the kernel was given
            query, key = query.to(inner.query.dtype), key[..., : inner.key.shape[-2], :].to(inner.key.dtype)
        n, m = query.shape[-2], key.shape[-2]
        mask = _dense_mask(mask, query, m)
        m = m if self.observer.cross else self.reader.filled(mask, n, m)
        key, mask = key[..., :m, :], mask if mask is None else mask[..., :m]
        bias = arguments.get("position_bias")
        causal = (inner is not None and inner.is_causal) or self._has_folded_causal(mask, bias, n, arguments)
        visible, extra = self.reader.read(mask, causal=causal, n=n, m=m)
        if bias is not None:
            _, extra = self.reader.read(bias[..., :m], causal=False, n=n, m=m)
        scale = arguments.get("scaling")
        scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
        return ObservedCall(
            query, key, scale, visible, extra, arguments.get("softcap"), self.lse, self.observer.cross,
            watched=PooledOutput(value[..., :m, :], _heads_first(result, query)),
            dropout=bool(arguments.get("dropout")), rounded=inner is None,
        )  # fmt: skip

    def _has_folded_causal(self, mask: Any, bias: Any, n: int, options: dict[str, Any]) -> bool:
        """True if the library has added the causal mask to a position bias, in place of passing is_causal=True."""
        if bias is None or mask is not None or self.inner is None or n == 1:
            return False
        is_causal = options.get("is_causal")
        return bool(getattr(self.module, "is_causal", True) if is_causal is None else is_causal)


def _heads_first(
    result: Any, query: Float[Tensor, "batch heads queries dim"]
) -> Float[Tensor, "batch heads queries _"]:
    """The output that an attention function returned, (batch, queries, heads, dim_v), with the heads first."""
    output = result[0] if isinstance(result, tuple | list) else result
    batch, heads, n = query.shape[:3]
    if not isinstance(output, Tensor) or output.shape[:3] != (batch, n, heads):
        raise RecordError(
            f"its attention function returned {tuple(getattr(output, 'shape', ()))}, and not (batch, queries, heads, "
            f"dim) with {(batch, n, heads)}"
        )
    return output.transpose(1, 2)


def _dense_mask(
    mask: Any, query: Float[Tensor, "batch heads queries dim"], m: int
) -> Shaped[Tensor, "... keys"] | None:
    """The mask as a tensor; flex attention's masks are functions of indices."""
    rule = getattr(mask, "mask_mod", None)
    if rule is None:
        return mask if mask is None else mask[..., :m]
    from torch.nn.attention.flex_attention import create_mask

    return create_mask(rule, query.shape[0], 1, query.shape[2], m, device=str(query.device))
