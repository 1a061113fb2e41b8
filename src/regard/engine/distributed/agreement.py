"""All ranks compute the same call: what each asks for is compared before the first block is sent."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from regard.engine.distributed.transport import Transport
from regard.errors import DistributedError
from regard.spec import Spec

Description = Mapping[str, str]
DIGEST_BYTES = 7  # of a hash, which has to fit a signed whole number of 64 bits


def digest(description: Description) -> int:
    """A number that differs for different descriptions."""
    text = repr(sorted(description.items()))
    return int.from_bytes(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest(), "big")


def agree(transport: Transport, description: Description, number: int = 0, step: str = "attend") -> int:
    """Compare what all ranks ask for; the number of rank 0, such as a seed. DistributedError where they differ."""
    numbers = transport.all_gather_numbers([digest(description), number], f"{step}: comparing the calls")
    if len({row[0] for row in numbers}) > 1:
        raise DistributedError(_difference(transport, description, [row[0] for row in numbers], step))
    return numbers[0][1]


def _difference(transport: Transport, description: Description, digests: list[int], step: str) -> str:
    """Words for what differs between the ranks: the ranks that differ from most others, and the first difference."""
    text = "\n".join(f"{name}\t{value}" for name, value in description.items()).encode()
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    sizes = transport.all_gather_numbers([len(text)], f"{step}: comparing the calls")
    parts = transport.all_gather(data, [(size,) for (size,) in sizes], f"{step}: comparing the calls")
    told = [dict(line.split("\t", 1) for line in bytes(part.tolist()).decode().split("\n")) for part in parts]
    counts = Counter(digests)
    usual = max(range(len(digests)), key=lambda rank: (counts[digests[rank]], -rank))
    words: list[str] = []
    for rank, own in enumerate(told):
        if digests[rank] == digests[usual]:
            continue
        if "error" in own:
            words.append(f"rank {rank} refused its call ({own['error']})")
            continue
        names = [name for name in {**told[usual], **own} if own.get(name) != told[usual].get(name)]
        words += [
            f"rank {rank} has {name} {own.get(name, 'none')}, rank {usual} has {told[usual].get(name, 'none')}"
            for name in names
        ]
    return f"the ranks ask for different things in {step!r}: {'; '.join(words)}"


def describe_spec(spec: Spec) -> dict[str, str]:
    """The formula in words, and checksums of its tensors: every rank must have the same numbers in them."""
    told = {"formula": repr(spec)}
    for name, tensor in spec.tensors().items():
        told[name] = f"{tuple(tensor.shape)} {tensor.dtype} (checksum {checksum(tensor):08x})"
    return told


def checksum(tensor: Tensor) -> int:
    """A checksum of the numbers in a tensor."""
    data = tensor.detach().to("cpu").contiguous().flatten().view(torch.uint8) if tensor.numel() else torch.empty(0)
    return zlib.crc32(data.numpy(force=True).data)
