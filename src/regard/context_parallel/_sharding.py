"""The layout of a sequence over the ranks of a mesh, and this rank's part in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from regard.engine.distributed import sharded
from regard.engine.distributed.layout import Layout, check_same_length, make_layout
from regard.engine.distributed.transport import Transport
from regard.masks import Mask


@dataclass(frozen=True, slots=True)
class Sharding:
    """Where the tokens of a sequence are: a layout over the ranks of a mesh of one dimension."""

    layout: Layout
    mesh: DeviceMesh

    @classmethod
    def make(cls, n: int, layout: str | Layout, mask: Mask | None, device: torch.device) -> Sharding:
        """The sharding of n tokens over all processes, in the layout of this name."""
        mesh = sharded.default_mesh(device)
        made = make_layout(layout, n, mesh.size(), mask) if isinstance(layout, str) else layout
        check_same_length(made, n, "the batch")
        return cls(made, mesh)

    @classmethod
    def of_shard(cls, x: DTensor) -> tuple[Sharding, int] | None:
        """The sharding of a DTensor and the dimension of its sequence; None if every rank has the whole tensor."""
        axis = sharded.shard_axis(x)
        layout = None if axis is None else sharded.layout_of(x, axis)
        return None if axis is None or layout is None else (cls(layout, x.device_mesh), axis)

    @property
    def n(self) -> int:
        """The length of the whole sequence."""
        return self.layout.length

    @property
    def here(self) -> int:
        """The number of tokens of this rank."""
        return self.layout.size(self.mesh.get_local_rank())

    @property
    def transport(self) -> Transport:
        return Transport.of_mesh(self.mesh)

    def take(self, whole: Shaped[Tensor, "..."], dim: int) -> Shaped[Tensor, "..."]:
        """This rank's part of a whole tensor, in memory of its own."""
        return self.layout.take(whole, dim, self.mesh.get_local_rank()).clone()

    def shard(self, local: Shaped[Tensor, "..."], dim: int) -> DTensor:
        """The sharded tensor of which `local` is this rank's part. Differentiable."""
        return sharded.from_local(local, self.mesh, dim % local.dim(), self.layout)

    def gather(self, local: Shaped[Tensor, "..."], dim: int) -> Shaped[Tensor, "..."]:
        """The whole tensor of which `local` is this rank's part, on every rank."""
        return sharded.gather(local, dim, self.layout)
