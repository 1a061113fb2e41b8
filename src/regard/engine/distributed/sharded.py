"""Sharded tensors: torch's DTensor with the layout of its sequence, made of a whole tensor and made whole again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from regard.engine.distributed.layout import Layout, check_same_length, contiguous, make_layout
from regard.engine.distributed.transport import Transport
from regard.errors import AxisError, DistributedError, DtypeError, ShapeError
from regard.masks import Mask

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class LayoutShard(Shard):
    """A shard of one dimension in a layout of our own: torch's placement, which remembers the positions of all ranks.

    Operations that keep rows apart (detach, arithmetic, sums) pass it on. Whatever would move rows between ranks is
    refused: torch would take the shard for a contiguous one.
    """

    def __init__(self, dim: int, layout: Layout) -> None:
        super().__init__(dim)
        self.layout = layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutShard) and self.dim == other.dim and self.layout == other.layout

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((LayoutShard, self.dim, self.layout))

    def __reduce__(self) -> tuple[Any, ...]:
        return LayoutShard, (self.dim, self.layout)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim}, layout={self.layout.name!r})"

    __str__ = __repr__

    def _refuse(self, *_: object, **__: object) -> Any:
        raise DistributedError(
            f"torch cannot move rows of a tensor in the layout {self.layout.name!r}: "
            "regard.distributed.gather(x) gives the whole tensor, in order"
        )

    _to_replicate_tensor = _to_new_shard_dim = _shard_tensor = _reduce_shard_tensor = _replicate_to_shard = _refuse


class Shared(NamedTuple):
    """This rank's part of a tensor. The layout is None if every rank has the whole tensor."""

    local: Tensor
    layout: Layout | None


_meshes: dict[tuple[str, int], DeviceMesh] = {}  # of the default group, by device type and its id


def default_mesh(device: torch.device) -> DeviceMesh:
    """The mesh of all processes, in one dimension."""
    group = default_group()
    kind = (device.type, id(group))
    if kind not in _meshes:
        _meshes.clear()
        _meshes[kind] = DeviceMesh.from_group(group, device.type)
    return _meshes[kind]


def default_group() -> ProcessGroup:
    """The default process group; an error says how to start one where there is none."""
    if not dist.is_available():
        raise DistributedError("this build of torch has no torch.distributed: attention over processes needs it")
    if not dist.is_initialized():
        raise DistributedError(
            "there is no process group: start the program with `torchrun --nproc-per-node 4 program.py` and call "
            "torch.distributed.init_process_group('gloo') ('nccl' for GPUs) before sharding"
        )
    group = dist.group.WORLD
    assert group is not None  # noqa: S101  there is one once torch.distributed is initialised
    return group


def shard(
    x: Shaped[Tensor, "..."], dim: int, layout: str | Layout, mask: Mask | None, mesh: DeviceMesh | None = None
) -> DTensor:
    """This rank's rows of a whole tensor that every rank has, as a DTensor. Differentiable."""
    if not isinstance(x, Tensor):
        raise DtypeError(f"shard needs a tensor, the whole of it on every rank, but it is {type(x).__name__}")
    if isinstance(x, DTensor):
        raise DistributedError("this tensor is sharded already: gather it first, to give it another layout")
    axis = axis_of(x, dim)
    mesh = default_mesh(x.device) if mesh is None else mesh
    world, rank = mesh.size(), mesh.get_local_rank()
    if isinstance(layout, str):
        layout = make_layout(layout, x.shape[axis], world, mask)
    check_same_length(layout, x.shape[axis], "the tensor")
    if layout.world != world:
        raise ShapeError(f"the layout is one of {layout.world} ranks, but there are {world}")
    local = layout.take(x, axis, rank).contiguous()
    return from_local(local, mesh, axis, layout)


def axis_of(x: Tensor, dim: int) -> int:
    """A dimension counted from the front, after a check that the tensor has it."""
    if not -x.dim() <= dim < x.dim():
        raise AxisError(f"dim {dim} is not there: the tensor is {tuple(x.shape)}")
    return dim % x.dim()


def from_local(local: Shaped[Tensor, "..."], mesh: DeviceMesh, axis: int, layout: Layout) -> DTensor:
    """A DTensor of this rank's rows along `axis`. Differentiable."""
    shape = torch.Size((*local.shape[:axis], layout.length, *local.shape[axis + 1 :]))
    placement = Shard(axis) if layout.name == "contiguous" else LayoutShard(axis, layout)
    return DTensor.from_local(
        local, mesh, [placement], run_check=False, shape=shape, stride=torch.empty(shape, device="meta").stride()
    )


def layout_of(x: DTensor, axis: int, name: str = "the tensor") -> Layout | None:
    """The layout of a DTensor along `axis`; None if every rank has the whole tensor."""
    if x.device_mesh.ndim != 1:
        raise DistributedError(f"{name} is on a mesh of {x.device_mesh.ndim} dimensions: attention needs one of 1")
    (placement,) = x.placements
    if isinstance(placement, Replicate):
        return None
    if not isinstance(placement, Shard) or placement.dim % x.dim() != axis:
        raise DistributedError(
            f"{name} {tuple(x.shape)} must be sharded along dimension {axis}, its sequence, but it is {placement}"
        )
    if isinstance(placement, LayoutShard):
        return placement.layout
    return contiguous(x.shape[axis], x.device_mesh.size())


def shared_of(x: Tensor, axis: int, name: str) -> Shared:
    """This rank's part of a tensor and its layout; a plain tensor is whole on every rank. Differentiable."""
    if not isinstance(x, DTensor):
        return Shared(x, None)
    layout = layout_of(x, axis % x.dim(), name)
    return Shared(x.to_local(), layout)


def shard_axis(x: DTensor) -> int | None:
    """The dimension along which a DTensor is sharded; None if it is not."""
    return next((p.dim % max(1, x.dim()) for p in x.placements if isinstance(p, Shard)), None)


class Gather(torch.autograd.Function):
    """The whole tensor on every rank, from the rows of each. The gradient is that of this rank's rows.

    Every rank is taken to compute the same of the whole tensor, so gradients are not summed over ranks.
    """

    @staticmethod
    def forward(ctx: Any, local: Tensor, axis: int, layout: Layout, transport: Transport) -> Tensor:
        ctx.axis, ctx.layout, ctx.rank = axis, layout, transport.rank
        shapes = [(*local.shape[:axis], layout.size(r), *local.shape[axis + 1 :]) for r in range(layout.world)]
        return layout.join(transport.all_gather(local, shapes, "gather"), axis)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ctx.layout.take(grad, ctx.axis, ctx.rank), None, None, None


def gather(x: Tensor, dim: int | None, layout: Layout | str | None = None) -> Tensor:
    """The whole plain tensor in the order of positions, on every rank. Differentiable.

    A plain tensor is taken as this rank's rows along `dim`; without a layout the ranks' rows follow one another.
    """
    if isinstance(x, DTensor):
        axis = shard_axis(x)
        if axis is None:
            return x.full_tensor()
        if dim is not None and axis_of(x, dim) != axis:
            raise AxisError(f"the tensor is sharded along dimension {axis}, not along {dim}")
        layout, mesh, x = layout_of(x, axis), x.device_mesh, x.to_local()
    else:
        mesh = default_mesh(x.device)
        if dim is None:
            raise DistributedError("gather of a plain tensor needs dim=, along which it is this rank's part")
        axis = axis_of(x, dim)
    transport = Transport.of_mesh(mesh)
    if layout is None or isinstance(layout, str):
        lengths = transport.all_gather_numbers([x.shape[axis]], "gather: lengths")
        layout = _layout_of_parts([length for (length,) in lengths], layout)
    if layout.size(transport.rank) != x.shape[axis]:
        expected = layout.size(transport.rank)
        raise ShapeError(f"rank {transport.rank} has {x.shape[axis]} rows, but its part of the layout is {expected}")
    return Gather.apply(x, axis, layout, transport)  # pyright: ignore[reportReturnType]


def _layout_of_parts(lengths: list[int], name: str | None) -> Layout:
    """The layout of parts with these lengths: one after the other, or in the named layout."""
    if name is not None and name != "contiguous":
        return make_layout(name, sum(lengths), len(lengths))
    edges = [sum(lengths[:rank]) for rank in range(len(lengths) + 1)]
    runs = [((a, b),) if a < b else () for a, b in zip(edges[:-1], edges[1:], strict=True)]
    return Layout("parts", sum(lengths), tuple(runs))
