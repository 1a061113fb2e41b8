"""Batches of whole sequences, cut into each rank's part: tokens, positions, labels, and what all ranks must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.utils.weak import WeakIdKeyDictionary

from regard.context_parallel._sharding import Sharding
from regard.engine.distributed.layout import Layout
from regard.errors import ContextParallelError
from regard.masks import Mask

IGNORED = -100  # the label of a token that counts in no loss, as in torch and transformers


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of which every rank has a part, and what the ranks know of the whole."""

    sharding: Sharding
    tokens: int  # of this rank, in all sequences
    padding: Bool[Tensor, "batch tokens"] | None = None  # of the whole sequence: True for tokens that are visible
    position_ids: Int[Tensor, "batch tokens"] | None = None  # of the whole sequence
    shift_labels: Int[Tensor, "batch _"] | None = None  # of this rank
    items: Tensor | int = 0  # how many tokens of the whole batch have a label
    added: frozenset[str] = frozenset()  # names that the caller's inputs did not have
    inputs: Mapping[str, Any] = field(default_factory=dict)  # those of the caller, whole


_batches: WeakIdKeyDictionary = WeakIdKeyDictionary()  # a tensor of a part -> its batch


def shard_batch(
    inputs: Mapping[str, Any], layout: str | Layout = "contiguous", mask: Mask | None = None
) -> dict[str, Any]:
    """This rank's part of a batch of token sequences, for a model inside of `context_parallel`.

    Every rank passes the same whole batch and gets its own part of each tensor (batch, tokens, ...), as plain tensors.
    Three entries are added if they are missing: `position_ids`, the positions in the whole sequence; `shift_labels`,
    for each token the label of the next one, also across the border of two ranks; and `num_items_in_batch`, how many
    labels the whole batch has.

    inputs: as for the model on one process: input_ids or inputs_embeds, attention_mask (batch, tokens), position_ids,
        labels, token_type_ids. Packed documents are given by position_ids that begin again at 0.
    layout: "contiguous", "zigzag" or "balanced", which needs mask=.
    """
    inputs = {name: value for name, value in inputs.items() if value is not None}
    given = {name: value for name, value in inputs.items() if _is_cut(value)}
    batch, n = _checked_shape(given)
    device = next(iter(given.values())).device
    sharding = Sharding.make(n, layout, mask, device)
    whole = _completed(inputs, torch.arange(n, device=device).expand(batch, n))
    part = {name: sharding.take(value, 1) if _is_cut(value) else value for name, value in whole.items()}
    record = Batch(
        sharding,
        batch * sharding.here,
        given["attention_mask"].bool() if "attention_mask" in given else None,
        whole["position_ids"].expand(batch, n),
        part.get("shift_labels"),
        whole.get("num_items_in_batch", 0),
        frozenset(whole) - frozenset(inputs),
        inputs,
    )
    for value in part.values():
        if _is_cut(value):
            _batches[value] = record
    return part


def _is_cut(value: object) -> bool:
    """True for tensors of which each rank has a part."""
    return isinstance(value, Tensor) and value.dim() > 0


def _completed(inputs: Mapping[str, Any], positions: Int[Tensor, "batch tokens"]) -> dict[str, Any]:
    """A whole batch with positions, the label of the token after each, and the number of labels."""
    whole = {"position_ids": positions, **inputs}
    if "labels" in whole and "shift_labels" not in whole:
        whole["shift_labels"] = torch.nn.functional.pad(whole["labels"], (0, 1), value=IGNORED)[:, 1:]
    if "shift_labels" in whole and "num_items_in_batch" not in whole:
        whole["num_items_in_batch"] = (whole["shift_labels"] != IGNORED).sum()
    return whole


def _checked_shape(tensors: Mapping[str, Tensor]) -> tuple[int, int]:
    """(batch, tokens) of a batch, after a check that all its tensors begin with them."""
    shape = _batch_shape(tensors)
    for name, tensor in tensors.items():
        if tensor.shape[:2] != shape and not (name == "position_ids" and tensor.shape == (1, shape[1])):
            raise ContextParallelError(
                f"shard_batch cuts tensors (batch, tokens, ...), here {shape}, but {name} is {tuple(tensor.shape)}"
            )
    return shape


def _batch_shape(tensors: Mapping[str, Tensor]) -> tuple[int, int]:
    """(batch, tokens) of a batch."""
    for name in ("input_ids", "inputs_embeds"):
        if name in tensors and tensors[name].dim() >= 2:
            return tensors[name].shape[0], tensors[name].shape[1]
    listed = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in tensors.items()) or "no tensor"
    raise ContextParallelError(f"shard_batch needs input_ids or inputs_embeds, (batch, tokens, ...), and got {listed}")


def find_batch(args: tuple[Any, ...], options: Mapping[str, Any], name: str) -> Batch:
    """The batch to which the arguments of a model belong: parts made by `shard_batch`, or shards made by `shard`."""
    found: list[Batch] = []
    for value in (*args, *options.values()):
        if isinstance(value, DTensor):
            if (whole := Sharding.of_shard(value)) is not None:
                sharding, dim = whole
                found.append(Batch(sharding, value.to_local().shape[: dim + 1].numel()))
        elif isinstance(value, Tensor) and value in _batches:
            found.append(_batches[value])
    if not found:
        raise ContextParallelError(
            f"{name} was called inside context_parallel with tensors that are no shards: call "
            f"model(**rd.shard_batch(inputs)), or model(rd.shard(x, dim)). Move tensors to their device, and change "
            f"them, before they are sharded"
        )
    if any(one.sharding != found[0].sharding for one in found):
        raise ContextParallelError(f"{name} was called with shards of different lengths or layouts: shard all alike")
    return next((one for one in found if one.position_ids is not None), found[0])


def local(value: Shaped[Tensor, "..."] | Any) -> Any:
    """A shard as the plain tensor of this rank; anything else as it is."""
    return value.to_local() if isinstance(value, DTensor) else value
