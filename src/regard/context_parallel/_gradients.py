"""Gradients of parameters, summed over all ranks at the end of each backward pass.

Each rank computes the gradient of its own tokens. Hooks keep it apart from what `.grad` held before, and when the
backward pass ends the ranks add up what they kept: so gradients accumulate over passes as on one process, a parameter
that is used twice is summed once, and a parameter that only some ranks used (an expert) is summed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Variable

from regard.engine.distributed.transport import Transport
from regard.errors import ContextParallelError

BUCKET = 1 << 25  # bytes that are summed in one message


class GradientSum:
    """Sums gradients of some parameters over all ranks."""

    def __init__(self, parameters: Iterable[nn.Parameter], transport: Transport) -> None:
        self.parameters = [one for one in dict.fromkeys(parameters) if one.requires_grad]
        self.transport = transport
        self._before: dict[int, Tensor | None] = {}  # number of a parameter -> its gradient from earlier passes
        self._arrived: set[int] = set()

    @contextmanager
    def summing(self) -> Iterator[None]:
        """Sum the gradients of every backward pass inside the block."""
        hooks = [hook for number in range(len(self.parameters)) for hook in self._hooks(number)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _hooks(self, number: int) -> tuple[Any, Any]:
        parameter = self.parameters[number]

        def set_apart(gradient: Tensor) -> None:
            if gradient.is_sparse:
                raise ContextParallelError(
                    f"a parameter of shape {tuple(parameter.shape)} has a sparse gradient: make its layer with "
                    f"sparse=False"
                )
            if not self._before:
                Variable._execution_engine.queue_callback(self._finish)  # noqa: SLF001  as torch's own DDP does
            if number not in self._before:
                self._before[number], parameter.grad = parameter.grad, None

        return (
            parameter.register_hook(set_apart),
            parameter.register_post_accumulate_grad_hook(lambda _: self._arrived.add(number)),
        )

    def _finish(self) -> None:
        """End of a backward pass: give each parameter what it had before plus the sum over all ranks."""
        before, arrived = dict(self._before), set(self._arrived)
        self._before.clear()
        self._arrived.clear()
        local: dict[int, Tensor] = {}
        for number, earlier in before.items():
            parameter = self.parameters[number]
            if number in arrived and parameter.grad is not None:
                local[number] = parameter.grad
            parameter.grad = earlier
        if arrived != set(before):
            raise ContextParallelError(
                "torch.autograd.grad would give the gradient of this rank's tokens alone: call backward(), which sums "
                "it over all ranks"
            )
        for bucket in self._buckets(self._used_anywhere(arrived)):
            for number, total in self._sum(bucket, local):
                parameter = self.parameters[number]
                parameter.grad = total if parameter.grad is None else parameter.grad.add_(total)

    def _used_anywhere(self, arrived: set[int]) -> list[int]:
        """Numbers of the parameters for which some rank has a gradient, in one order on all ranks."""
        device = self.parameters[0].device
        flags = torch.tensor([number in arrived for number in range(len(self.parameters))], dtype=torch.int32)
        used = self.transport.all_reduce(flags.to(device), "which parameters have a gradient", "max")
        return [int(number) for number in used.nonzero()]

    def _buckets(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Runs of parameters of one dtype and device, each of at most `BUCKET` bytes or of one parameter."""
        bucket: list[int] = []
        size, kind = 0, None
        for number in numbers:
            parameter = self.parameters[number]
            bytes_, own_kind = parameter.numel() * parameter.element_size(), (parameter.dtype, parameter.device)
            if bucket and (size + bytes_ > BUCKET or own_kind != kind):
                yield bucket
                bucket, size = [], 0
            bucket.append(number)
            size, kind = size + bytes_, own_kind
        if bucket:
            yield bucket

    def _sum(self, bucket: Sequence[int], local: dict[int, Tensor]) -> Iterator[tuple[int, Tensor]]:
        """The gradients of a bucket, summed over all ranks; half precision is summed in float32."""
        members = [self.parameters[number] for number in bucket]
        gradients = [local.get(number) for number in bucket]
        parts = [
            torch.zeros_like(p).flatten() if g is None else g.flatten() for p, g in zip(members, gradients, strict=True)
        ]
        dtype = torch.promote_types(members[0].dtype, torch.float32)
        flat = torch.cat([part.detach().to(dtype) for part in parts])
        flat = self.transport.all_reduce(flat, "gradients of parameters")
        sizes = [parameter.numel() for parameter in members]
        for number, parameter, total in zip(bucket, members, flat.split(sizes), strict=True):
            yield number, total.view(parameter.shape).to(parameter.dtype)
