"""Attention over several processes: tensors whose sequence is divided between ranks, and how they are made whole again.

# torchrun --nproc-per-node 4 program.py
torch.distributed.init_process_group("gloo")
q, k, v = (rd.shard(x, dim=-2) for x in (q, k, v))
output, weights = regard.attend(q, k, v, mask=masks.causal())
rd.gather(output)

with rd.context_parallel(model):  # a Hugging Face or torch model
    loss = model(**rd.shard_batch(inputs)).loss
"""

from __future__ import annotations

from jaxtyping import Shaped
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from regard.context_parallel import context_parallel, shard_batch
from regard.engine.distributed import sharded
from regard.engine.distributed.estimate import DEVICES, LINKS, Estimate, Link, estimate
from regard.engine.distributed.layout import Layout
from regard.masks import Mask

__all__ = [
    "DEVICES", "LINKS", "Estimate", "Layout", "Link", "context_parallel", "estimate", "gather", "shard", "shard_batch",
]  # fmt: skip


def shard(
    x: Shaped[Tensor, "..."],
    dim: int = -2,
    layout: str | Layout = "contiguous",
    mask: Mask | None = None,
    mesh: DeviceMesh | None = None,
) -> DTensor:
    """This rank's part of a tensor along its sequence, as a DTensor that remembers the layout. Differentiable.

    Every rank gives the same whole tensor. Queries, keys and values of self-attention share one layout.

    x: the whole tensor.
    dim: the dimension of the sequence, -2 for queries, keys and values.
    layout: "contiguous" (one run of neighbours a rank, as torch's own Shard), "zigzag" (a run from the front and one
        from the back, which balances a causal mask), "balanced" (runs with equally many visible pairs; it needs
        `mask`), or the `Layout` of another tensor.
    mask: the mask of the attention, for "balanced".
    mesh: a mesh of one dimension. Default: all processes.
    """
    return sharded.shard(x, dim, layout, mask, mesh)


def gather(x: Shaped[Tensor, "..."], dim: int | None = None, layout: Layout | str | None = None) -> Tensor:
    """The whole plain tensor in the order of positions, on every rank. Differentiable.

    It undoes the layout, also of gradients and of answers of `Weights`.

    x: a DTensor, or a plain tensor that is this rank's part along `dim`.
    dim: the dimension of the sequence; known for a DTensor.
    layout: of a plain tensor, a `Layout` or "zigzag". Default: the parts of the ranks follow one another.
    """
    return sharded.gather(x, dim, layout)


def layout_of(x: DTensor) -> Layout | None:
    """The layout of a sharded tensor; None if every rank has the whole of it."""
    axis = sharded.shard_axis(x)
    return None if axis is None else sharded.layout_of(x, axis)
