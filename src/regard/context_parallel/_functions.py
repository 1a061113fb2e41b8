"""Functions of torch that a model calls on this rank's tokens and that concern the whole sequence.

Attention goes to `regard.attend` with sharded tensors, a mean cross entropy becomes one over all ranks, and positions
that a model makes from the length of its input are refused: it is the length of this rank's part.
"""

from __future__ import annotations

from inspect import BoundArguments, signature
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.autograd import Variable
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from regard import masks, scores
from regard.context_parallel._context import Context
from regard.context_parallel._loss import mean_over_ranks
from regard.context_parallel._sharding import Sharding
from regard.errors import ContextParallelError
from regard.masks import Mask
from regard.torch_compat.sdpa import Arguments

ATEN_SDPA = torch.ops.aten.scaled_dot_product_attention
SDPA = frozenset((scaled_dot_product_attention, ATEN_SDPA, ATEN_SDPA.default))
BACKWARD = frozenset((Tensor.backward, torch.autograd.backward))
SLICES = frozenset((Tensor.__getitem__, Tensor.narrow, torch.narrow))


class FunctionMode(TorchFunctionMode):
    """A torch function mode that serves the calls of one model, while it runs forward or is recomputed backward."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func in BACKWARD:  # torch takes a mode away while it handles a call
            with self:
                return _run_backward(signature(func).bind(*args, **options))
        if func in SDPA and self.context.is_serving():
            return self._attend(Arguments(*args, **options))
        if func is cross_entropy and self.context.running is not None:
            batch = self.context.running
            self.context.losses += 1
            return mean_over_ranks(args, options, batch.tokens, batch.sharding.transport)
        if self.context.checks_positions and self.context.running is not None:
            self._check_positions(func, args, options)
        return func(*args, **options)

    def _attend(self, call: Arguments) -> Tensor:
        sharding = self.context.sharding_now()
        call, _ = call.with_plain_mask()  # with equal lengths both alignments are one
        lengths = call.query.shape[-2], call.key.shape[-2], call.value.shape[-2]
        local = sharding.here
        if set(lengths) != {local}:
            raise ContextParallelError(
                f"{self.context.model_name} calls scaled_dot_product_attention with {lengths[0]} queries, {lengths[1]} "
                f"keys and {lengths[2]} values, and this rank has {local} tokens: only self attention over the "
                f"sequence can be shared out"
            )
        mask = masks.causal() if call.is_causal else None
        if call.attn_mask is not None:
            given = whole_mask(call.attn_mask, sharding)
            mask = given if mask is None else mask & given
        score = scores.scaled_dot(call.scale) if call.scale is not None else None
        return self.context.attend(call.query, call.key, call.value, sharding, score, mask, call.dropout_p)

    def _check_positions(self, func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Refuse a count from 0 to this rank's length, and that many rows of a parameter or buffer."""
        sharding = self.context.sharding_now()
        length = sharding.here
        if length == sharding.n:  # one rank has everything
            return
        if func is torch.arange:
            ends = [a for a in args if isinstance(a, int)][:2] or [options.get("end")]
            counts = ends[-1] == length and (len(ends) == 1 or ends[0] == 0)
        else:
            counts = func in SLICES and self.context.owns(args[0]) and _takes_first(func, args, options, length)
        if counts:
            raise ContextParallelError(
                f"{self.context.model_name} derives positions from the length of its input, {length}, which is this "
                f"rank's part of {sharding.n} tokens: let it take the positions as an input, and share them out as the "
                f"tokens are, rd.shard(torch.arange(n), dim=0)"
            )


def _run_backward(call: BoundArguments) -> None:
    """Tensor.backward and torch.autograd.backward as torch defines them, but with the modes of this thread in place.

    The engine hands the modes that are there when it starts to layers that checkpointing recomputes.
    """
    given = call.arguments
    tensors = _tuple(given.get("self", given.get("tensors")))
    gradients = _tuple(given.get("gradient", given.get("grad_tensors"))) or (None,) * len(tensors)
    keep = given.get("retain_graph")
    Variable._execution_engine.run_backward(  # noqa: SLF001
        tensors,
        torch.autograd._make_grads(tensors, gradients, is_grads_batched=False),  # noqa: SLF001
        bool(given.get("create_graph")) if keep is None else keep,
        bool(given.get("create_graph")),
        _tuple(given.get("inputs")),
        allow_unreachable=True,
        accumulate_grad=True,
    )


def _tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _takes_first(func: Any, args: tuple[Any, ...], options: dict[str, Any], length: int) -> bool:
    """True for tensor[..., :length, ...] and tensor.narrow(dim, 0, length)."""
    if func is not Tensor.__getitem__:
        given = (*args[1:], *options.values())
        return len(given) == 3 and given[1] == 0 and given[2] == length
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(isinstance(one, slice) and one.start in (None, 0) and one.stop == length for one in index)


def whole_mask(attn_mask: Shaped[Tensor, "..."], sharding: Sharding) -> Mask:
    """The mask of the whole sequence for the `attn_mask` of a call on this rank's part.

    It is known for a boolean mask of the whole sequence, (..., n, n), which every rank has, and for one that has a
    boolean for each key of this rank, (..., 1, keys), whose parts are put together.
    """
    rows, keys = (1, *attn_mask.shape)[-2:]
    if attn_mask.dtype == torch.bool and keys == sharding.n and rows in (1, sharding.n):
        return masks.allow(attn_mask)
    if attn_mask.dtype == torch.bool and rows == 1 and keys == sharding.here:
        return masks.allow(sharding.gather(attn_mask, -1))
    raise ContextParallelError(
        f"an attn_mask {tuple(attn_mask.shape)} of {attn_mask.dtype} does not say what it means for a sequence of "
        f"{sharding.n} tokens, of which this rank has {sharding.here}: give is_causal=True, a boolean mask of the "
        f"whole sequence (..., {sharding.n}, {sharding.n}), or one of this rank's keys (..., 1, {sharding.here})"
    )
