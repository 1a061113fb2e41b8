"""Sharded tensors: torch's DTensor with the layout of its sequence, made of a whole tensor and made whole again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.utils._pytree import tree_leaves, tree_map

from regard.engine.distributed.layout import Layout, check_same_length, contiguous, make_layout
from regard.engine.distributed.transport import Transport
from regard.errors import AxisError, DistributedError, DtypeError, ShapeError
from regard.masks import Mask

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class LayoutShard(Shard):
    """A shard of one dimension in a layout of our own: torch's placement, which knows the positions of all ranks.

    Where torch makes the tensor whole, or takes the shard of a whole tensor, the rows are those of the layout.
    """

    def __init__(self, dim: int, layout: Layout) -> None:
        super().__init__(dim)
        self.layout: Layout = layout

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutShard) and self.dim == other.dim and self.layout == other.layout

    def __ne__(self, other: object) -> bool:
        # torch checks with `!=` that a placement shards the dimension that it says; layouts are compared with `==`.
        return self.dim != other.dim if type(other) is Shard else not self == other

    def __hash__(self) -> int:
        return hash((LayoutShard, self.dim, self.layout))

    def __reduce__(self) -> tuple[Any, ...]:
        return LayoutShard, (self.dim, self.layout)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim}, layout={self.layout.name!r})"

    __str__ = __repr__

    def _to_replicate_tensor(
        self, local_tensor: Tensor, mesh: DeviceMesh, mesh_dim: int, current_logical_shape: Sequence[Any]
    ) -> Tensor:
        """The whole tensor, when torch makes it whole."""
        del mesh_dim, current_logical_shape
        return gathered(local_tensor, self.dim, self.layout, Transport.of_mesh(mesh), "gather")

    def _replicate_to_shard(self, local_tensor: Tensor, mesh: DeviceMesh, mesh_dim: int, shard_index: Any) -> Tensor:
        """This rank's rows, when torch shards a whole tensor."""
        del mesh, mesh_dim
        return self.layout.take(local_tensor, self.dim, int(shard_index)).contiguous()

    def _refuse(self, *_: object, **__: object) -> Any:
        """Raise DistributedError: torch would take the rows for others."""
        raise DistributedError(
            f"torch cannot move rows of a tensor in the layout {self.layout.name!r} so: "
            "regard.distributed.gather(x) gives the whole tensor, in order"
        )

    _to_new_shard_dim = _shard_tensor = _reduce_shard_tensor = _refuse


class LayoutTensor(DTensor):
    """A DTensor in a layout of our own. Operations run as those of DTensor do; their results have the layout too.

    torch's rules for operations know its own placement alone. So the layout is put back where it was lost, and tensors
    of two layouts do not meet.
    """

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        layout = _common_layout(func, tree_leaves((args, kwargs or {})))
        result = super().__torch_dispatch__(func, types, args, kwargs or {})
        return tree_map(lambda value: _with_layout(value, layout), result)


def _common_layout(func: Any, arguments: list[Any]) -> Layout | None:
    """The layout of the sharded tensors among some arguments, which must be one."""
    placed = [p for t in arguments if isinstance(t, DTensor) and t.dim() for p in t.placements if isinstance(p, Shard)]
    layouts = {p.layout if isinstance(p, LayoutShard) else None for p in placed}
    if len(layouts) > 1:
        names = " and ".join(sorted("torch's own" if one is None else repr(one.name) for one in layouts))
        raise DistributedError(f"{func} got tensors of different layouts, {names}: gather them, or shard them alike")
    return next(iter(layouts), None)


def _with_layout(value: Any, layout: Layout | None) -> Any:
    """A result as a tensor of this layout, if it is sharded; the rows of a shard have stayed where they were."""
    if layout is None or not isinstance(value, DTensor):
        return value
    (placement,) = value.placements
    if isinstance(placement, Replicate | Partial):
        return value
    if not isinstance(placement, Shard):
        raise DistributedError(
            f"the result {tuple(value.shape)} would mix the sequence, in the layout {layout.name!r}, with other "
            "dimensions: gather the tensor first, or compute with its local rows"
        )
    here = (value.shape[placement.dim], value._local_tensor.shape[placement.dim])  # noqa: SLF001  no graph here
    if here != (layout.length, layout.size(value.device_mesh.get_local_rank())):
        raise DistributedError(
            f"the result {tuple(value.shape)}, sharded along dimension {placement.dim}, cannot keep the layout "
            f"{layout.name!r} of {layout.length} positions: gather the tensor first"
        )
    return _placed(value._local_tensor, value.device_mesh, placement.dim, layout, value.shape, value.stride())  # noqa: SLF001


def _placed(
    local: Tensor, mesh: DeviceMesh, axis: int, layout: Layout, shape: Sequence[int], stride: Sequence[int]
) -> LayoutTensor:
    """A tensor in a layout, without a graph."""
    meta = TensorMeta(torch.Size(shape), tuple(stride), local.dtype)
    spec = DTensorSpec(mesh, (LayoutShard(axis, layout),), tensor_meta=meta)
    return LayoutTensor(local, spec, requires_grad=local.requires_grad)  # pyright: ignore[reportReturnType]


class PlaceRows(torch.autograd.Function):
    """A tensor in a layout, from this rank's rows. The gradient is that of these rows."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, mesh: DeviceMesh, axis: int, layout: Layout) -> LayoutTensor:
        ctx.axis, ctx.layout = axis, layout
        shape = (*local.shape[:axis], layout.length, *local.shape[axis + 1 :])
        stride = torch.empty(shape, device="meta").stride()
        return _placed(local.view_as(local), mesh, axis, layout, shape, stride)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        target = LayoutShard(ctx.axis, ctx.layout)
        (placement,) = grad.placements
        if not isinstance(placement, Shard):
            grad = grad.redistribute(placements=[target])
        return grad._local_tensor, None, None, None  # noqa: SLF001


class LocalRows(torch.autograd.Function):
    """This rank's rows of a tensor in a layout. The gradient is a tensor in that layout."""

    @staticmethod
    def forward(ctx: Any, x: LayoutTensor) -> Tensor:
        (placement,) = x.placements
        ctx.mesh, ctx.axis, ctx.layout = x.device_mesh, placement.dim, placement.layout  # pyright: ignore[reportAttributeAccessIssue]
        return x._local_tensor.view_as(x._local_tensor)  # noqa: SLF001

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        shape = (*grad.shape[: ctx.axis], ctx.layout.length, *grad.shape[ctx.axis + 1 :])
        stride = torch.empty(shape, device="meta").stride()
        return _placed(grad, ctx.mesh, ctx.axis, ctx.layout, shape, stride)


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
    world = mesh.size()
    if isinstance(layout, str):
        layout = make_layout(layout, x.shape[axis], world, mask)
    check_same_length(layout, x.shape[axis], "the tensor")
    if layout.world != world:
        raise ShapeError(f"the layout is one of {layout.world} ranks, but there are {world}")
    local = ShardRows.apply(x, axis, layout, Transport.of_mesh(mesh))
    return from_local(local, mesh, axis, layout)  # pyright: ignore[reportArgumentType]


def axis_of(x: Tensor, dim: int) -> int:
    """A dimension counted from the front, after a check that the tensor has it."""
    if not -x.dim() <= dim < x.dim():
        raise AxisError(f"dim {dim} is not there: the tensor is {tuple(x.shape)}")
    return dim % x.dim()


def from_local(local: Shaped[Tensor, "..."], mesh: DeviceMesh, axis: int, layout: Layout) -> DTensor:
    """A DTensor of this rank's rows along `axis`. Differentiable."""
    if layout.name != "contiguous":
        return PlaceRows.apply(local, mesh, axis, layout)  # pyright: ignore[reportReturnType]
    shape = torch.Size((*local.shape[:axis], layout.length, *local.shape[axis + 1 :]))
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(local, mesh, [Shard(axis)], run_check=False, shape=shape, stride=stride)


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
    return Shared(local_rows(x), layout)


def local_rows(x: DTensor) -> Tensor:
    """This rank's rows of a sharded tensor. Differentiable."""
    return LocalRows.apply(x) if isinstance(x, LayoutTensor) else x.to_local()  # pyright: ignore[reportReturnType]


def shard_axis(x: DTensor) -> int | None:
    """The dimension along which a DTensor is sharded; None if it is not."""
    return next((p.dim % max(1, x.dim()) for p in x.placements if isinstance(p, Shard)), None)


class ShardRows(torch.autograd.Function):
    """This rank's rows of a whole tensor. The gradient is that of the whole tensor, on every rank."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, layout: Layout, transport: Transport) -> Tensor:
        ctx.axis, ctx.layout, ctx.transport = axis, layout, transport
        return layout.take(x, axis, transport.rank).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gathered(grad, ctx.axis, ctx.layout, ctx.transport, "backward: gather"), None, None, None


def gathered(local: Tensor, axis: int, layout: Layout, transport: Transport, step: str) -> Tensor:
    """The whole tensor in the order of positions, from the rows of each rank. Without a graph."""
    shapes = [(*local.shape[:axis], layout.size(rank), *local.shape[axis + 1 :]) for rank in range(layout.world)]
    return layout.join(transport.all_gather(local, shapes, step), axis)


class Gather(torch.autograd.Function):
    """The whole tensor on every rank, from the rows of each. The gradient is that of this rank's rows.

    Every rank is taken to compute the same of the whole tensor, so gradients are not summed over ranks.
    """

    @staticmethod
    def forward(ctx: Any, local: Tensor, axis: int, layout: Layout, transport: Transport) -> Tensor:
        ctx.axis, ctx.layout, ctx.rank = axis, layout, transport.rank
        return gathered(local, axis, layout, transport, "gather")

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
        layout, mesh, x = layout_of(x, axis), x.device_mesh, local_rows(x)
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
    runs = [((a, b),) if a < b else () for a, b in pairwise(edges)]
    return Layout("parts", sum(lengths), tuple(runs))
