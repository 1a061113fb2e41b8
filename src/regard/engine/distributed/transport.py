"""Messages between ranks: every wait names the rank that is waited for, and ends with a typed error.

All messages are point to point, in the order of the program, which is the same on every rank. A wait ends after the
timeout of the process group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor

from regard.errors import DistributedError

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh


@dataclass(slots=True)
class Message:
    """A tensor on its way to or from a rank."""

    work: Any
    tensor: Tensor
    peer: int  # within the group
    step: str
    rank: int
    incoming: bool

    def wait(self) -> Tensor:
        """The tensor, once it has been sent or has arrived; DistributedError after the timeout of the group."""
        try:
            self.work.wait()
        except RuntimeError as error:
            raise lost(self.rank, self.peer, self.step, error, incoming=self.incoming) from error
        return self.tensor


def lost(rank: int, peer: int, step: str, error: BaseException, *, incoming: bool = True) -> DistributedError:
    """The error for a message that did not come through, in words that name the rank and the step."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    verb = "waited for" if incoming else "could not send to"
    return DistributedError(
        f"rank {rank} {verb} rank {peer} in the step {step!r} and gave up: that rank has died, hangs, or is in "
        f"another call ({reason[:200]})"
    )


@dataclass(frozen=True, slots=True)
class Transport:
    """Point-to-point messages of one rank within a process group."""

    group: ProcessGroup
    rank: int
    world: int
    sent: list[int] = field(default_factory=lambda: [0])  # bytes, counted for tests and benchmarks

    @classmethod
    def of_mesh(cls, mesh: DeviceMesh) -> Transport:
        """The messages between the ranks of a mesh of one dimension."""
        group = mesh.get_group()
        return cls(group, dist.get_rank(group), dist.get_world_size(group), BYTES_SENT)

    def send(self, tensor: Shaped[Tensor, "..."], peer: int, step: str, tag: int = 0) -> Message:
        """Start to send a tensor to a rank; it must not change until `wait` returns."""
        tensor = tensor.detach().contiguous()
        self.sent[0] += tensor.numel() * tensor.element_size()
        try:
            work = dist.isend(tensor, group=self.group, group_dst=peer, tag=tag)
        except RuntimeError as error:
            raise lost(self.rank, peer, step, error, incoming=False) from error
        return Message(work, tensor, peer, step, self.rank, incoming=False)

    def receive(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device, peer: int, step: str, tag: int = 0
    ) -> Message:
        """Start to receive a tensor of this shape from a rank."""
        tensor = torch.empty(tuple(shape), dtype=dtype, device=device)
        try:
            work = dist.irecv(tensor, group=self.group, group_src=peer, tag=tag)
        except RuntimeError as error:
            raise lost(self.rank, peer, step, error) from error
        return Message(work, tensor, peer, step, self.rank, incoming=True)

    def all_gather(
        self, local: Shaped[Tensor, "..."], shapes: Sequence[Sequence[int]], step: str
    ) -> list[Shaped[Tensor, "..."]]:
        """The tensors of all ranks, whose shapes are known. They are passed on from rank to rank."""
        parts: list[Tensor] = [local.detach()] * self.world
        after, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        for hop in range(self.world - 1):
            mine, theirs = (self.rank - hop) % self.world, (before - hop) % self.world
            out = self.send(parts[mine], after, step)
            parts[theirs] = self.receive(shapes[theirs], local.dtype, local.device, before, step).wait()
            out.wait()
        return parts

    def all_gather_numbers(self, numbers: Sequence[int], step: str, device: str = "cpu") -> list[list[int]]:
        """Whole numbers of all ranks, equally many of each."""
        local = torch.tensor(list(numbers), dtype=torch.int64, device=device)
        return [part.tolist() for part in self.all_gather(local, [local.shape] * self.world, step)]

    def all_reduce(
        self, tensor: Shaped[Tensor, "*shape"], step: str, op: Literal["sum", "max"] = "sum"
    ) -> Shaped[Tensor, "*shape"]:
        """The sum or the maximum over all ranks, the same to the last bit on every rank.

        Each rank reduces one chunk, which goes round the ring; then the chunks go round once more.
        """
        if self.world == 1 or not tensor.numel():
            return tensor.detach().clone()
        flat = tensor.detach().contiguous().flatten().clone()
        chunks = list(flat.tensor_split(self.world))
        after, before = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        for hop in range(2 * (self.world - 1)):
            mine, theirs = (self.rank - hop) % self.world, (before - hop) % self.world
            out = self._send_some(chunks[mine], after, step)
            if chunks[theirs].numel():
                arrived = self.receive(chunks[theirs].shape, flat.dtype, flat.device, before, step).wait()
                reducing = hop < self.world - 1
                combined = _combine(chunks[theirs], arrived, op) if reducing else arrived
                chunks[theirs].copy_(combined)
            if out is not None:
                out.wait()
        return flat.view(tensor.shape)

    def _send_some(self, tensor: Tensor, peer: int, step: str) -> Message | None:
        """Send a tensor, unless it is empty."""
        return self.send(tensor.clone(), peer, step) if tensor.numel() else None


def _combine(one: Tensor, two: Tensor, op: Literal["sum", "max"]) -> Tensor:
    """The sum or the maximum of two tensors."""
    return one + two if op == "sum" else torch.maximum(one, two)


BYTES_SENT = [0]  # by this process, since it started
