"""A first check of a model: on a short sequence, the ranks together must compute what each computes alone.

It finds what no list of architectures can: positions that a model makes itself, layers that mix tokens in other ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from regard.context_parallel._batch import Batch, shard_batch
from regard.context_parallel._context import Context
from regard.errors import ContextParallelError

LENGTH, LENGTH_PER_RANK = 32, 8  # tokens: enough that every rank has some, and attends to some of others
LABELS = ("labels", "shift_labels", "num_items_in_batch")
# Largest difference in units of the largest number: rounding of a model with many layers is a tenth of it.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4}
HALF_PRECISION_TOLERANCE = 0.05


def check_short_sequence(context: Context, batch: Batch) -> None:
    """Run a model on the first tokens of a batch, alone and shared out, and refuse it if the outputs differ."""
    model: Any = context.model
    sharding = batch.sharding
    short = _first_tokens(batch.inputs, min(sharding.n, max(LENGTH, LENGTH_PER_RANK * sharding.transport.world)))
    with _evaluating(model), torch.no_grad():
        context.suspended = True
        try:
            expected = _first_tensor(model(**short))
        except Exception:  # noqa: BLE001  it cannot run alone, so there is nothing to compare with
            return
        finally:
            context.suspended = False
        before = list(context.shardings)
        shared = _first_tensor(model(**shard_batch(short)))
        context.shardings[:] = before  # the short sequence has no backward pass
    difference = _difference(expected, shared, short, context)
    if difference > TOLERANCES.get(expected.dtype, HALF_PRECISION_TOLERANCE):
        raise ContextParallelError(
            f"{context.model_name} cannot run on a part of its sequence: on {_length(short)} tokens its output "
            f"differs by {difference:.1g} of its largest number from that on one process, so it looks at its tokens "
            f"or their number in another way than by attention and position_ids; context_parallel(model, "
            f"check='none') leaves this check out"
        )


def _length(inputs: Mapping[str, Any]) -> int:
    return next(value.shape[1] for value in inputs.values() if isinstance(value, Tensor) and value.dim() > 1)


def _first_tokens(inputs: Mapping[str, Any], length: int) -> dict[str, Any]:
    """The first tokens of a batch without its labels, all visible but the last one of the first sequence."""
    short = {
        name: value[:, :length] if isinstance(value, Tensor) and value.dim() > 1 else value
        for name, value in inputs.items()
        if name not in LABELS
    }
    if "attention_mask" in short:
        mask = torch.ones_like(short["attention_mask"])
        mask[0, -1] = 0
        short["attention_mask"] = mask
    return short


def _first_tensor(output: Any) -> Tensor:
    """The numbers of each token: what a model returns first."""
    return output if isinstance(output, Tensor) else output[0]


def _difference(
    expected: Shaped[Tensor, "batch tokens ..."],
    shared: Shaped[Tensor, "batch part ..."],
    inputs: Mapping[str, Any],
    context: Context,
) -> float:
    """The largest difference at visible tokens, in units of the largest number."""
    sharding = context.last_sharding
    whole = sharding.gather(shared, 1)
    visible = inputs.get("attention_mask")
    if visible is not None:
        expected, whole = expected[visible.bool()], whole[visible.bool()]
    largest = expected.abs().max().clamp_min(torch.finfo(expected.dtype).tiny)
    return float((expected - whole).abs().max() / largest)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout inside; each module's mode is as it was afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
