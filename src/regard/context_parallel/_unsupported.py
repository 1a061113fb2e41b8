"""Models whose sequence cannot be sharded, and the errors that name them and say why."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from regard.context_parallel._hugging_face import is_hugging_face
from regard.errors import ContextParallelError

LAYER_TYPES = {"full_attention", "sliding_attention", "chunked_attention"}  # those whose masks are known
ROPE_BY_LENGTH = frozenset(("dynamic", "longrope"))  # frequencies that follow the length of the input
TASKS = ("Model", "ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForTokenClassification")  # ends of names of classes
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel")


def check_model(model: object) -> None:
    """Refuse a model of which something other than attention depends on more tokens than one."""
    if not isinstance(model, nn.Module):
        raise ContextParallelError(f"context_parallel(model) takes a torch module, not {type(model).__name__}")
    name = type(model).__name__
    for reason in (*_wrapping(model), *_layers(model), *(_hugging_face(model) if is_hugging_face(model) else ())):
        raise ContextParallelError(f"{name} cannot run on a part of its sequence: {reason}")


def _wrapping(model: nn.Module) -> Iterator[str]:
    """Reasons that lie in how a model was wrapped."""
    for module in model.modules():
        kind = type(module).__name__
        if kind in WRAPPERS:
            yield f"{kind} handles gradients itself: give the model that it wraps"
        if kind == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None:
            yield "it is compiled by torch.compile, which leaves no call of attention to serve: give the original"


def _layers(model: nn.Module) -> Iterator[str]:
    """Layers that mix tokens in other ways than attention, or whose attention cannot be reached."""
    for name, module in model.named_modules():
        where = f"{name or 'it'} ({type(module).__name__})"
        if isinstance(module, nn.RNNBase | nn.RNNCellBase):
            yield f"{where} is recurrent"
        if isinstance(module, _ConvNd) and any(size > 1 for size in module.kernel_size):
            yield f"{where} is a convolution over {module.kernel_size} positions"
        if isinstance(module, _BatchNorm | nn.modules.instancenorm._InstanceNorm):  # noqa: SLF001
            yield f"{where} takes statistics over tokens"
        if isinstance(module, nn.MultiheadAttention) or type(module).__module__.startswith("regard.nn"):
            yield f"{where} does not call scaled_dot_product_attention itself, as a layer must that is shared out"


def _hugging_face(model: Any) -> Iterator[str]:
    """Models of transformers that derive positions from their own lengths, or look at single tokens."""
    config, parameters = model.config, signature(model.forward).parameters
    tests = {
        "an encoder-decoder has two sequences, and derives positions from their lengths": (
            getattr(config, "is_encoder_decoder", False)
        ),
        "it takes no position_ids, so it derives positions from the length of its input": (
            "position_ids" not in parameters
        ),
        "its ALiBi biases are made from the length of its input": getattr(config, "alibi", False),
        "its relative position biases are made from the length of its input": _has_relative_bias(model),
        "its rotary embedding scales with the length of its input": not ROPE_BY_LENGTH.isdisjoint(_rope_types(config)),
        "its layers do not take their attention function from transformers' attention interface": (
            not model._supports_attention_backend  # noqa: SLF001
        ),
        f"some layers are not of the types {', '.join(sorted(LAYER_TYPES))}": (
            not LAYER_TYPES.issuperset(getattr(config, "layer_types", None) or ())
        ),
        f"its output is not one for each token, as that of classes named ...{', ...'.join(TASKS)} is": (
            not type(model).__name__.endswith(TASKS)
        ),
        "its pooler takes the first token, which one rank has: make it with add_pooling_layer=False": (
            any(name.split(".")[-1] == "pooler" for name, _ in model.named_modules())
        ),
        "the loss of its router is a product of means over all tokens: set output_router_logits=False": (
            getattr(config, "output_router_logits", False)
        ),
    }
    return (reason for reason, holds in tests.items() if holds)


def _has_relative_bias(model: Any) -> bool:
    kind = str(getattr(model.config, "position_embedding_type", ""))
    return kind.startswith("relative") or any("relative" in n or "rel_pos" in n for n, _ in model.named_parameters())


def _rope_types(config: Any) -> Iterator[str]:
    """The types of rotary embeddings of a config, which may have one for each type of layer."""
    parameters = getattr(config, "rope_parameters", None) or {}
    for one in (parameters, *(value for value in parameters.values() if isinstance(value, dict))):
        if "rope_type" in one:
            yield str(one["rope_type"])
