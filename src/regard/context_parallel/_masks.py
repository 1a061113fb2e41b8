"""Mask functions of Hugging Face models, translated into masks of `regard.masks` at positions in the whole sequence.

Transformers composes the mask of a layer from functions of (batch, head, query, key). Those that it offers are known
here by name; a function that holds no tensor gives the same answer at any position, and is tabulated as it is. A
function that holds a tensor of unknown meaning is refused: the tensor may be this rank's part alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard import masks
from regard.errors import ContextParallelError
from regard.masks import Mask

MaskFunction = Callable[[Any, Any, Any, Any], Any]


class Everything(NamedTuple):
    """The mask that hides nothing, which `regard.masks` has no constructor for; it is the unit of &."""


Rule = Mask | Everything
EVERYTHING = Everything()


def global_mask(function: MaskFunction, padding: Bool[Tensor, "batch tokens"] | None, n: int) -> Mask | None:
    """The mask of n queries and n keys for a model's mask function and its padding; None if nothing is hidden.

    padding: True for the tokens that are visible, of the whole sequence.
    """
    rule = _rule(function, n)
    if padding is not None and not bool(padding.all()):
        rule = _both(rule, _visible_keys(padding))
    return rule if isinstance(rule, Mask) else None


def _rule(function: MaskFunction, n: int) -> Rule:
    """The rule for one function, which may be composed of others."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    held = _closure(function)
    reader = _READERS.get(name) if _is_of_transformers(function) else None
    if reader is None:
        raise ContextParallelError(
            f"the model composes its mask with the function {name!r}, whose meaning at positions of the whole sequence "
            f"is not known: causal, sliding, chunked and bidirectional masks, padding and packed sequences are"
        )
    return reader(held, n)


def _is_of_transformers(function: MaskFunction) -> bool:
    return getattr(function, "__module__", "") == "transformers.masking_utils"


def _closure(function: MaskFunction) -> dict[str, Any]:
    """The values that a function holds, by name."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    return (
        {}
        if code is None or cells is None
        else dict(zip(code.co_freevars, (c.cell_contents for c in cells), strict=True))
    )


def _both(one: Rule, other: Rule) -> Rule:
    if isinstance(one, Everything):
        return other
    return one if isinstance(other, Everything) else and_(one, other)


def _either(one: Rule, other: Rule) -> Rule:
    return EVERYTHING if isinstance(one, Everything) or isinstance(other, Everything) else or_(one, other)


def _visible_keys(visible: Bool[Tensor, "batch tokens"]) -> Mask:
    """The mask of padding: lengths where each sequence is padded at its end, else one boolean for each key."""
    lengths = visible.sum(-1)
    at_end = torch.arange(visible.shape[-1], device=visible.device) < lengths[:, None]
    return masks.padding(lengths) if torch.equal(at_end, visible) else masks.allow(visible[:, None, None, :])


def _sliding(held: dict[str, Any], n: int) -> Rule:
    """key > query - w: the query itself and w - 1 keys before it, and every key after it."""
    return masks.window(max(0, int(held["sliding_window"]) - 1), n)


def _sliding_both_sides(held: dict[str, Any], n: int) -> Rule:
    del n
    return masks.window(int(held["sliding_window"]), int(held["sliding_window"]))


def _chunks(held: dict[str, Any], n: int) -> Rule:
    """Chunks of equal length, counted from the first token that is no padding; `left_padding` counts the others."""
    padding: Int[Tensor, " batch"] = held["left_padding"]
    at = torch.arange(n, device=padding.device)
    return masks.segments(torch.div(at - padding[:, None], int(held["chunk_size"]), rounding_mode="floor"))


def _packed(held: dict[str, Any], n: int) -> Rule:
    ids: Int[Tensor, "batch tokens"] = held["packed_sequence_mask"]
    if ids.shape[-1] != n:
        raise ContextParallelError(
            f"the model numbers the packed sequences of {ids.shape[-1]} tokens, and the whole sequence has {n}: give "
            f"rd.shard_batch the position_ids of the whole sequence"
        )
    return masks.segments(ids)


_READERS: dict[str, Callable[[dict[str, Any], int], Rule]] = {
    "causal_mask_function": lambda _, __: masks.causal(),
    "bidirectional_mask_function": lambda _, __: EVERYTHING,
    "sliding_window_overlay.<locals>.inner_mask": _sliding,
    "sliding_window_bidirectional_overlay.<locals>.inner_mask": _sliding_both_sides,
    "chunked_overlay.<locals>.inner_mask": _chunks,
    "packed_sequence_mask_function.<locals>.inner_mask": _packed,
    "padding_mask_function.<locals>.inner_mask": lambda held, _: _visible_keys(held["padding_mask"].bool()),
    "and_masks.<locals>.and_mask": lambda held, n: reduce(_both, (_rule(f, n) for f in held["mask_functions"])),
    "or_masks.<locals>.or_mask": lambda held, n: reduce(_either, (_rule(f, n) for f in held["mask_functions"])),
}
