"""Faults on one rank in the middle of a call, for functions that run on every rank."""

import os
import signal
import time

import torch

import regard as rg
from regard import distributed as rd
from regard import masks
from regard.engine.distributed.transport import Transport

FAULTS = ("kill", "stop", "slow", "shape", "mask", "dtype", "leave")
N = 24


def attend(causal=True, width=8, dtype=torch.float64, backward=True):
    """One call and its backward pass; the sum of the whole output."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, N, width, dtype=dtype) for _ in range(3))
    q, k, v = (rd.shard(x, -2).requires_grad_() for x in (q, k, v))
    output, weights = rg.attend(q, k, v, mask=masks.causal() if causal else masks.window(3, 0))
    if backward:
        output.sum().backward()
    return float(rd.gather(output.detach()).sum()) + float(weights.received().sum())


def with_fault(fault: str, victim: int, message: int) -> float:
    """The call of all ranks, with a fault on one: at its message of this number, or in what it asks for."""
    rank = torch.distributed.get_rank()
    if rank != victim:
        return attend()
    if fault == "shape":
        return attend(width=9)
    if fault == "mask":
        return attend(causal=False)
    if fault == "dtype":
        return attend(dtype=torch.float32)
    send, count = Transport.send, [0]

    def failing(self, *args, **options):
        count[0] += 1
        if count[0] == message:
            _strike(fault)
        return send(self, *args, **options)

    Transport.send = failing
    try:
        return attend()
    finally:
        Transport.send = send


class Left(Exception):  # noqa: N818  it is no error of regard
    """A rank that goes on with something else."""


def _strike(fault: str) -> None:
    if fault == "leave":
        raise Left
    if fault == "slow":
        time.sleep(0.5)
    else:
        os.kill(os.getpid(), signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
