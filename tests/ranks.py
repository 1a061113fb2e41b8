"""A few gloo processes that wait for functions to run: started once, because each has to import torch.

with Ranks(2) as ranks:
    ranks.run(function, argument)  # -> the results, one of each rank
"""

import multiprocessing
import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self

PRELOADED = ["torch", "torch.distributed.tensor", "regard.engine.distributed.attention", "regard.distributed"]


class Failure(NamedTuple):
    """An error of one rank."""

    kind: str  # the name of its class
    message: str
    trace: str
    bases: tuple[str, ...]
    seconds: float  # from the start of the call


class Ranks:
    """Processes of one group, that run what they are sent until they are closed."""

    def __init__(self, world: int, *, timeout: float = 120) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self.folder = tempfile.TemporaryDirectory()
        store = Path(self.folder.name) / "store"
        self.pipes, self.processes = [], []
        for rank in range(world):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(rank, world, str(store), timeout, there), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """The results of `function(*args)` on all ranks; the first error of a rank is raised here."""
        results = self.collect(self.start(function, *args))
        for rank, result in enumerate(results):
            if isinstance(result, Failure):
                raise RuntimeError(f"rank {rank}: {result.trace}")  # noqa: TRY004  it is no wrong type
        return results

    def start(self, function: Callable[..., Any], *args: Any) -> Sequence[int]:
        """Send a function to all ranks; the ranks."""
        for pipe in self.pipes:
            pipe.send((function, args))
        return range(len(self.pipes))

    def collect(self, ranks: Sequence[int], seconds: float = 300) -> list[Any]:
        """The results of some ranks, or the Failure of each that raised an error; TimeoutError for one that hangs."""
        end = monotonic() + seconds
        results = []
        for rank in ranks:
            if not self.pipes[rank].poll(max(0.0, end - monotonic())):
                raise TimeoutError(f"rank {rank} is still busy after {seconds} seconds")
            results.append(self.pipes[rank].recv())
        return results

    def kill(self, rank: int, how: int = signal.SIGKILL) -> None:
        """Send a signal to the process of a rank."""
        os.kill(self.processes[rank].pid, how)

    def leave(self, seconds: float = 20) -> list[int | None]:
        """Let all processes come to their end by themselves; their exit codes, None for one that does not."""
        for pipe in self.pipes:
            pipe.close()
        end = monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - monotonic()))
        return [process.exitcode for process in self.processes]

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            process.join()
        self.folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(rank: int, world: int, store: str, timeout: float, pipe: Any) -> None:
    """Run functions from a pipe in a process group."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world, timeout=timedelta(seconds=timeout)
    )
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        begun = monotonic()
        try:
            pipe.send(function(*args))
        except Exception as error:  # noqa: BLE001  the test that sent the function judges it
            bases = tuple(base.__name__ for base in type(error).__mro__)
            seconds = monotonic() - begun
            pipe.send(Failure(type(error).__name__, str(error), traceback.format_exc(), bases, seconds))
