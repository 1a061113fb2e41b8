"""Losses over tokens that are shared out: each rank has its own tokens' part of the loss, and is given the sum."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.engine.distributed.transport import Transport
from regard.errors import ContextParallelError


class SumOverRanks(torch.autograd.Function):
    """The sum of one number over all ranks. Each rank's backward pass goes into its own number alone.

    Ranks call backward() on the same sum, so that together they compute its gradient once.
    """

    @staticmethod
    def forward(ctx: Any, part: Float[Tensor, ""], transport: Transport, check: Callable[[], None]) -> Any:
        ctx.check = check
        return transport.all_reduce(part.detach().reshape(1), "the loss").reshape(())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.check()
        return gradients[0], None, None


class CheckedBackward(torch.autograd.Function):
    """A tensor as it is, whose backward pass first calls a function that may refuse it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, check: Callable[[], None]) -> Any:
        ctx.check = check
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.check()
        return gradients[0], None


_SIGNATURE = signature(cross_entropy)


def mean_over_ranks(args: tuple[Any, ...], options: dict[str, Any], tokens: int, transport: Transport) -> Tensor:
    """This rank's part of a mean cross entropy over the tokens of all ranks; other reductions are left as they are.

    tokens: how many this rank has, in all sequences of the batch. A loss over another number is refused: a model that
    shifts the labels itself loses the last one of each rank.
    """
    call = _SIGNATURE.bind(*args, **options)
    call.apply_defaults()
    given = call.arguments
    if given["reduction"] != "mean":
        return cross_entropy(*args, **options)
    target: Tensor = given["target"]
    by_class = not target.is_floating_point()
    if given["weight"] is not None or not by_class or target.numel() != tokens:
        raise ContextParallelError(
            f"a mean of cross entropies over {target.numel()} targets of {target.dtype}, with"
            f"{'out' if given['weight'] is None else ''} weights, and this rank has {tokens} tokens: the mean over all "
            f"ranks is known for one class index for each token, without weights of classes"
        )
    labelled = (target != given["ignore_index"]).sum().reshape(1)
    count = transport.all_reduce(labelled, "the number of labels").reshape(())
    return cross_entropy(**{**given, "reduction": "sum"}) / count


def with_global_labels(loss_function: Callable[..., Tensor], shift_labels: Tensor, items: Tensor | int) -> Any:
    """A causal model's loss function, given the labels that were shifted across the borders of ranks.

    items: how many tokens of the whole batch have a label.
    """

    def loss(logits: Any = None, labels: Any = None, *args: Any, **options: Any) -> Tensor:
        options = {**options, "shift_labels": shift_labels, "num_items_in_batch": items}
        return loss_function(logits, labels, *args, **options)

    return loss
