"""The attention and mask functions that Hugging Face models are given while their sequence is sharded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard import masks, scores
from regard.context_parallel._context import Context
from regard.context_parallel._masks import global_mask
from regard.context_parallel._sharding import Sharding
from regard.errors import ContextParallelError
from regard.masks import Mask

NAME = "regard_context_parallel"  # of the attention implementation, in the registries of transformers
CHANGES_WEIGHTS = ("s_aux", "sinks", "head_mask", "position_bias")  # arguments that change weights in other ways

_contexts: dict[int, tuple[Context, str]] = {}  # id of a config -> whose it is, and its own implementation


@dataclass(frozen=True, eq=False)
class WholeMask:
    """The mask of one kind of layer over the whole sequence. It stands where models pass a tensor."""

    context: Context
    sharding: Sharding
    mask: Mask | None


@contextmanager
def hugging_face(context: Context) -> Iterator[None]:
    """Let the layers of a Hugging Face model attend over the whole sequence inside the block."""
    import transformers.masking_utils as library
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _mask)
    configs = _configs(context.model)
    own = [(config, config._attn_implementation) for config in configs]  # noqa: SLF001
    find_packed = library.find_packed_sequence_indices

    def find_packed_in_whole(position_ids: Tensor) -> Tensor | None:
        running = context.running
        whole = None if running is None else running.position_ids
        return find_packed(position_ids if whole is None else whole)

    for config, implementation in own:
        _contexts[id(config)] = context, implementation
        config._attn_implementation_internal = NAME  # noqa: SLF001
    library.find_packed_sequence_indices = find_packed_in_whole
    try:
        yield
    finally:
        library.find_packed_sequence_indices = find_packed
        for config, implementation in own:
            config._attn_implementation_internal = implementation  # noqa: SLF001
            _contexts.pop(id(config), None)


def _configs(model: nn.Module) -> list[Any]:
    """Every config of a model and of its parts."""
    found: dict[int, Any] = {}

    def visit(config: Any) -> None:
        if hasattr(config, "_attn_implementation_internal") and id(config) not in found:
            found[id(config)] = config
            for name in getattr(config, "sub_configs", None) or {}:
                visit(getattr(config, name, None))

    for module in model.modules():
        visit(getattr(module, "config", None))
    return list(found.values())


def _mask(
    *, batch_size: int, mask_function: Any, attention_mask: Any = None, config: Any = None, **options: Any
) -> Any:
    """The mask of one kind of layer; called by transformers in place of its own function."""
    context, implementation = _contexts[id(config)]
    if context.running is None:  # another model with the same config
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as REGISTRY

        return REGISTRY[implementation](
            batch_size=batch_size, mask_function=mask_function, attention_mask=attention_mask, config=config, **options
        )
    batch = context.running
    return WholeMask(context, batch.sharding, global_mask(mask_function, batch.padding, batch.sharding.n))


def _attention(
    module: nn.Module,
    query: Float[Tensor, "batch heads queries dim"],
    key: Float[Tensor, "batch key_heads keys dim"],
    value: Float[Tensor, "batch key_heads keys dim_v"],
    attention_mask: WholeMask | Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    **options: Any,
) -> tuple[Float[Tensor, "batch queries heads dim_v"], None]:
    """Attention of one layer; called by transformers in place of its own function."""
    context, implementation = _contexts[id(getattr(module, "config", None))]
    if not isinstance(attention_mask, WholeMask):
        if context.suspended or not context.owns_module(module):
            return _own_attention(
                implementation, module, query, key, value, attention_mask,
                scaling=scaling, dropout=dropout, softcap=softcap, **options,
            )  # fmt: skip
        attention_mask = _plain(context, module, attention_mask, options.get("is_causal"))
    for argument in CHANGES_WEIGHTS:
        if options.get(argument) is not None:
            raise ContextParallelError(
                f"{context.name_of(module)} attends with {argument}, whose meaning for the whole sequence is not known"
            )
    here = attention_mask.sharding.here
    if query.shape[-2] != here or key.shape[-2] != here:
        raise ContextParallelError(
            f"{context.name_of(module)} attends with {query.shape[-2]} queries and {key.shape[-2]} keys, and this rank "
            f"has {here} tokens: only self attention over the sequence can be shared out, without a filled cache"
        )
    score = scores.scaled_dot(query.shape[-1] ** -0.5 if scaling is None else float(scaling))
    if softcap is not None:
        score = scores.softcap(score, float(softcap))
    output = context.attend(query, key, value, attention_mask.sharding, score, attention_mask.mask, float(dropout))
    return output.transpose(1, 2).contiguous(), None


def _plain(context: Context, module: nn.Module, attention_mask: Any, is_causal: bool | None) -> WholeMask:
    """The mask of a layer whose model passes none: causal or nothing, as the layer says."""
    if attention_mask is not None:
        raise ContextParallelError(
            f"{context.name_of(module)} attends with a mask that its model has made itself, "
            f"{tuple(getattr(attention_mask, 'shape', ()))}, and not through transformers' mask functions: what it "
            f"means for the whole sequence is not known"
        )
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    return WholeMask(context, context.sharding_now(), masks.causal() if causal else None)


def _own_attention(implementation: str, module: nn.Module, *args: Any, **options: Any) -> Any:
    """The attention of a model outside of the block that shares its config with one inside."""
    from transformers import AttentionInterface

    eager: Any = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    return AttentionInterface().get_interface(implementation, eager)(module, *args, **options)


def is_hugging_face(model: nn.Module) -> bool:
    """True for a model of the library transformers."""
    library = sys.modules.get("transformers.modeling_utils")
    return library is not None and isinstance(model, library.PreTrainedModel)
