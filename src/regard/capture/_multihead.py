"""Route: `torch.nn.MultiheadAttention` and `torch.nn.functional.multi_head_attention_forward`.

A layer that runs torch's own forward is observed as a whole, since under a torch function mode it would leave its fast
path; that of `nn.TransformerEncoderLayer` never calls its attention module. Any other module, also a subclass with a
forward of its own, is observed where it calls the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial, wraps
from threading import Lock
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, multi_head_attention_forward

from regard.capture._mask_reader import MaskReader
from regard.capture._observed_call import ObservedCall
from regard.capture._observer import Observer, has_fast_path, has_torch_forward
from regard.capture._output_check import KnownByType, ProjectedOutput, WatchedOutput
from regard.capture._patching import unwrapped, wrapped
from regard.capture._torch_functions import not_observed
from regard.errors import RecordError
from regard.torch_compat.multihead import call_arguments, query_and_key, sdpa_mask

FORWARD = nn.TransformerEncoderLayer.forward
ENCODER_LAYER = inspect.signature(FORWARD)
FUNCTION = inspect.signature(multi_head_attention_forward)
BLOCK = nn.TransformerEncoderLayer._sa_block  # noqa: SLF001  the part of the layer that calls its attention module
BYPASSED = (
    "torch computed the layer in its fast path, which does not call {what}, so the model ran without it; "
    "torch.backends.mha.set_fastpath_enabled(False) makes torch call it"
)


class MultiheadRoute:
    """Computes queries and keys of torch's layers again, from their arguments and parameters."""

    def __init__(self, observer: Observer, reader: MaskReader) -> None:
        self.observer, self.reader = observer, reader
        self.attended: set[int] = set()  # encoder layers whose attention block has run
        observer.listeners.append((nn.MultiheadAttention, self.attention))

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Observe the encoder layers of the model: their forward, and whether it calls their attention block."""
        with ExitStack() as stack:
            for module in self.observer.model.modules():
                if isinstance(module, nn.TransformerEncoderLayer):
                    stack.enter_context(self.observing_block(module))
            stack.enter_context(_observe_layers(self))
            yield

    def observing_block(self, module: nn.TransformerEncoderLayer) -> AbstractContextManager[None]:
        """Note whether an encoder layer calls its attention block."""
        return wrapped(module, "_sa_block", partial(self._wrap_block, module))

    def _wrap_block(self, module: nn.Module, block: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            if self.observer.is_outside():
                return block(*args, **options)
            self.attended.add(id(module))
            with self.observer.seeing_functions(True):
                return block(*args, **options)

        return run

    def attention(self, module: Any, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """An attention module has run."""
        if not has_fast_path(module):
            return  # what it called was observed there
        arguments = call_arguments(module, args, options)
        watched = ProjectedOutput(module, arguments["value"], output[0])
        name = self.observer.name_of(module)
        if name is not None:
            self.observer.observe(name, lambda: self._observed(module, arguments, watched))

    def layer(self, module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """An encoder layer has run torch's forward. If that did not call its attention block, it took the fast path.

        The fast path computes what the parameters say. A layer that says something else by its code is missing.
        """
        if id(module) in self.attended:
            return
        for part, what, own in (
            (module, "the layer's own _sa_block", _has_torch_block(module)),
            (module.self_attn, "the forward of its self_attn", has_torch_forward(module.self_attn)),
        ):
            name = self.observer.owner_of(part)
            if not own and name is not None:
                self.observer.miss(name, BYPASSED.format(what=what))
                return
        name = self.observer.owner_of(module.self_attn)
        if name is not None:
            self.observer.observe(name, lambda: self._observed_layer(module, args, options))

    @torch.no_grad()
    def _observed_layer(self, module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> ObservedCall:
        bound = ENCODER_LAYER.bind(module, *args, **options).arguments
        x, padded = _padded(bound["src"], bound.get("src_key_padding_mask"))
        if module.norm_first:  # the fast path takes the parameters of norm1, and does not call it
            norm = module.norm1
            x = layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
        arguments = {"query": x, "key": x, "attn_mask": bound.get("src_mask"), "key_padding_mask": padded}
        return self._observed(module.self_attn, arguments, KnownByType())

    def function(self, args: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        """A module has called the function itself."""
        name = self.observer.current
        if name is None or self.observer.inner is not None:
            return
        bound = FUNCTION.bind(*args, **options)
        bound.apply_defaults()
        layer, arguments = _layer_of_function(bound.arguments), bound.arguments
        watched = ProjectedOutput(layer, arguments["value"], output[0])
        self.observer.observe(name, lambda: self._observed(layer, arguments, watched))

    @torch.no_grad()
    def _observed(self, layer: Any, arguments: dict[str, Any], watched: WatchedOutput | KnownByType) -> ObservedCall:
        if arguments.get("static_k") is not None or arguments.get("static_v") is not None:
            raise RecordError("it hands static_k or static_v to multi_head_attention_forward")
        query, key = query_and_key(layer, arguments)
        n, m = query.shape[-2], key.shape[-2]
        mask = sdpa_mask(layer, arguments, m)
        if isinstance(watched, KnownByType) and mask is not None and mask.is_floating_point():
            mask = mask == 0  # the fast path turns numbers into True and False, and adds none of them
        visible, bias = self.reader.read(mask, causal=False, n=n, m=m)
        cross = arguments["key"] is not arguments["query"]
        dropout = bool(layer.training and layer.dropout)
        scale = query.shape[-1] ** -0.5
        return ObservedCall(
            query, key, scale, visible, bias, cross=cross, watched=watched, dropout=dropout, rounded=True
        )


_lock = Lock()
_routes: list[MultiheadRoute] = []  # of all recordings that are running, in any thread


@contextmanager
def _observe_layers(route: MultiheadRoute) -> Iterator[None]:
    """Observe torch's forward of encoder layers in their class: a subclass may call it from a forward of its own."""
    with _lock:
        if not _routes and nn.TransformerEncoderLayer.forward is FORWARD:
            nn.TransformerEncoderLayer.forward = _forward
        _routes.append(route)
    try:
        yield
    finally:
        with _lock:
            _routes.remove(route)
            if not _routes and nn.TransformerEncoderLayer.forward is _forward:
                nn.TransformerEncoderLayer.forward = FORWARD


@wraps(FORWARD)
def _forward(self: nn.TransformerEncoderLayer, *args: Any, **options: Any) -> Any:
    """Let torch choose between its fast path and the other one as it does without a recording."""
    if torch.compiler.is_compiling():
        return FORWARD(self, *args, **options)
    routes = [r for r in tuple(_routes) if r.observer.owner_of(self) is not None and not r.observer.is_outside()]
    with ExitStack() as stack:
        if not routes:
            stack.enter_context(not_observed())
        for route in routes:
            route.attended.discard(id(self))  # of a run that ended in an error
            if route.observer.name_of(self) is None:
                stack.enter_context(route.observing_block(self))
            stack.enter_context(route.observer.seeing_functions(False))
        output = FORWARD(self, *args, **options)
    for route in routes:
        route.layer(self, args, options)
    return output


def _has_torch_block(layer: nn.TransformerEncoderLayer) -> bool:
    """True if the attention block of an encoder layer is torch's own."""
    return getattr(unwrapped(layer, "_sa_block"), "__func__", None) is BLOCK


def _layer_of_function(arguments: dict[str, Any]) -> Any:
    """The parameters that multi_head_attention_forward was given, under the names that they have in a layer."""
    separate = arguments["use_separate_proj_weight"]
    return SimpleNamespace(
        embed_dim=arguments["embed_dim_to_check"],
        num_heads=arguments["num_heads"],
        head_dim=arguments["embed_dim_to_check"] // arguments["num_heads"],
        in_proj_weight=None if separate else arguments["in_proj_weight"],
        q_proj_weight=arguments["q_proj_weight"],
        k_proj_weight=arguments["k_proj_weight"],
        v_proj_weight=arguments["v_proj_weight"],
        in_proj_bias=arguments["in_proj_bias"],
        bias_k=arguments["bias_k"],
        bias_v=arguments["bias_v"],
        add_zero_attn=arguments["add_zero_attn"],
        out_proj=SimpleNamespace(weight=arguments["out_proj_weight"], bias=arguments["out_proj_bias"]),
        batch_first=False,
        training=arguments["training"],
        dropout=arguments["dropout_p"],
    )


def _padded(x: Tensor, padded: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Sequences and their padding mask; torch's encoder may have turned padded sequences into a nested tensor."""
    if not x.is_nested:
        return x, padded
    lengths = torch.tensor([len(row) for row in x.unbind()])
    padded_x = torch.nested.to_padded_tensor(x, 0.0)
    return padded_x, torch.arange(padded_x.shape[1]) >= lengths[:, None]
