"""A needle in 262,144 tokens, found by four processes that hold a quarter of them each. Nothing is trained.

Every token sees the 1,024 tokens before it and four sinks at the start. One of them asks, and another one, somewhere
in its window, answers. The matrix of 262,144 x 262,144 weights is asked for each row's largest weight, and the row
that stands out names question and answer. It is never built.

Run: python examples/long_context.py [tokens] [processes]
"""

import resource
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.multiprocessing.spawn import start_processes

import regard as rg
from regard import distributed as rd
from regard import masks

HEADS, DIM, WINDOW, SINKS = 2, 64, 1024, 4
SINK_SCORE, NEEDLE_SCORE = 6.0, 16.0


def main() -> None:
    """Start the processes, each with its share of the machine's threads."""
    given = [int(argument) for argument in sys.argv[1:]]
    tokens, world = (*given, *(262_144, 4)[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        start_processes(search, (world, tokens, f"file://{folder}/group"), world, start_method="spawn")


def search(rank: int, world: int, tokens: int, group: str) -> None:
    """Find the needle; runs on every rank."""
    torch.set_num_threads(max(1, torch.get_num_threads() // world))
    dist.init_process_group("gloo", init_method=group, rank=rank, world_size=world)
    query, key, value, planted = haystack(rank, world, tokens)

    start = time.perf_counter()
    mask = masks.causal() & (masks.window(WINDOW, 0) | masks.prefix(SINKS))
    _, weights = rg.attend(query, key, value, mask=mask)
    attended = time.perf_counter()
    largest = weights.top(1)
    values, keys = rd.gather(largest.values), rd.gather(largest.indices)  # (heads, tokens, 1)
    found = needle(values, keys)
    asked = time.perf_counter()

    memory = [torch.zeros(1) for _ in range(world)]
    dist.all_gather(memory, torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
    if rank == 0:
        print(f"{tokens:,} tokens, {world} processes, {query.to_local().shape[-2]:,} tokens on the first")
        print(f"attention {attended - start:.1f} s, question {asked - attended:.1f} s")
        print(f"planted: token {planted[0]:,} asks, token {planted[1]:,} answers")
        print(f"found:   token {found[0]:,} asks, token {found[1]:,} answers")
        print("peak memory of each process: " + ", ".join(f"{float(peak):,.0f} MB" for peak in memory))
        print(f"the matrix alone would take {4 * HEADS * tokens**2 / 1e9:,.0f} GB")
    dist.destroy_process_group()


def haystack(rank: int, world: int, tokens: int) -> tuple[DTensor, DTensor, DTensor, tuple[int, int]]:
    """Queries, keys and values of which each rank makes its own rows, and the two tokens of the needle."""
    step = -(-tokens // world)
    first, last = min(tokens, rank * step), min(tokens, (rank + 1) * step)
    generator = torch.Generator().manual_seed(rank)
    parts = [torch.randn(HEADS, last - first, DIM, generator=generator) for _ in range(3)]
    scale = DIM**0.5  # which the score divides by
    parts[0][..., 0], parts[1][..., 0] = 1.0, 0.0  # every query asks for sinks
    ask, answer = planted = tokens * 5 // 8, tokens * 5 // 8 - WINDOW // 2
    question = torch.randn(DIM, generator=torch.Generator().manual_seed(99))
    question[0] = 0.0  # this one does not ask for sinks
    question /= question.norm()
    if rank == 0:
        parts[1][:, :SINKS, 0] = SINK_SCORE * scale
    if first <= ask < last:
        parts[0][1, ask - first] = scale * question
    if first <= answer < last:
        parts[1][1, answer - first] = NEEDLE_SCORE * question
    mesh = init_device_mesh("cpu", (world,))
    shape = torch.Size((HEADS, tokens, DIM))
    shards = [DTensor.from_local(part, mesh, [Shard(-2)], shape=shape, stride=(tokens * DIM, DIM, 1)) for part in parts]
    return shards[0], shards[1], shards[2], planted


def needle(values: torch.Tensor, keys: torch.Tensor) -> tuple[int, int]:
    """The query and the key of the largest weight that is not on a sink."""
    weight = values.masked_fill(keys < SINKS, 0.0)
    best = int(weight.flatten().argmax())
    return best // weight.shape[-1] % weight.shape[-2], int(keys.flatten()[best])


if __name__ == "__main__":
    main()
