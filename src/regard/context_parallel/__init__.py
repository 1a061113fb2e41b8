"""Models whose sequence is shared out over processes: each runs on its tokens, and attention spans them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from regard.context_parallel._batch import shard_batch
from regard.context_parallel._calls import calls_of
from regard.context_parallel._context import Context
from regard.context_parallel._functions import FunctionMode
from regard.context_parallel._gradients import GradientSum
from regard.context_parallel._hugging_face import hugging_face, is_hugging_face
from regard.context_parallel._unsupported import check_model
from regard.engine.distributed.sharded import default_mesh
from regard.engine.distributed.transport import Transport
from regard.errors import ChoiceError, ContextParallelError

__all__ = ["context_parallel", "shard_batch"]


@contextmanager
def context_parallel(model: nn.Module, check: str = "first") -> Iterator[nn.Module]:
    """Run a model on sequences that are sharded over all processes, inside a ``with`` block.

    The model is called with this rank's tokens: ``model(**rd.shard_batch(inputs))``, or ``model(rd.shard(x, dim))``.
    Its layers compute what they would for these tokens alone, and attention sees the keys of all ranks, under the
    model's own masks at positions in the whole sequence. A loss that the model returns is that of the whole batch, on
    every rank. `backward()` inside the block leaves in each parameter's `.grad` what one process would have computed.

    Models are Hugging Face models that take their attention function from transformers' attention interface and
    `position_ids` as an argument, and torch models that call `torch.nn.functional.scaled_dot_product_attention`. All
    ranks must have the same parameters, and call the model in the same order. A model that derives positions from the
    length of its input (T5, BART, Whisper), or that mixes tokens in another way than by attention, is refused by name.

    check: "first" compares a Hugging Face model at its first call on a short sequence with what each process computes
        alone, without gradients, and refuses a model that differs; "none" leaves that out.
    """
    if check not in ("first", "none"):
        raise ChoiceError(f"check is 'first' or 'none', not {check!r}")
    check_model(model)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    transport = Transport.of_mesh(default_mesh(device))
    check_same_parameters(model, transport)
    context = Context(model)
    with ExitStack() as stack:
        stack.callback(setattr, context, "is_open", False)
        stack.enter_context(GradientSum(model.parameters(), transport).summing())
        stack.enter_context(calls_of(context))
        if is_hugging_face(model):
            context.check_is_due = check == "first" and transport.world > 1
            stack.enter_context(hugging_face(context))
        else:
            context.checks_positions = True
        stack.enter_context(FunctionMode(context))
        yield model


def check_same_parameters(model: nn.Module, transport: Transport) -> None:
    """Refuse models whose parameters differ between ranks, by their number and by sums over them."""
    parameters = [parameter.detach() for parameter in model.parameters()]
    device = parameters[0].device if parameters else torch.device("cpu")
    sums = torch.zeros(4, dtype=torch.float64, device=device)
    for number, parameter in enumerate(parameters):
        total, size = parameter.sum(dtype=torch.float64), parameter.abs().sum(dtype=torch.float64)
        sums += torch.stack([total, size, number * total, torch.full_like(total, parameter.numel())]).to(device)
    sums = sums.nan_to_num()  # NaN in a parameter is for others to find
    every = transport.all_gather(sums, [sums.shape] * transport.world, "parameters of the model")
    differing = [rank for rank, other in enumerate(every) if not torch.equal(other, every[0])]
    if differing:
        raise ContextParallelError(
            f"{type(model).__name__} has other parameters on rank {differing[0]} than on rank 0: make it with the same "
            f"seed, or load the same file, on every rank"
        )
