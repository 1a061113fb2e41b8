"""Processes of one gloo group: started once, they call functions and send back what these return."""

import contextlib
import multiprocessing
import os
import traceback
from datetime import timedelta

TIMEOUT = 120  # seconds a rank waits for another; a busy machine is slow to start processes


class RankError(Exception):
    """A function that raised an error on some rank: its message is the traceback there."""


class Ranks:
    """The processes of a group. Functions must be in a module that another process can import.

    folder: where the processes meet; a new one for each group.
    """

    def __init__(self, world, folder, threads=1):
        spawn = multiprocessing.get_context("spawn")
        pairs = [spawn.Pipe() for _ in range(world)]
        self.pipes = [ours for ours, _ in pairs]
        with _threads_of_children(threads):
            self.processes = [
                spawn.Process(target=_serve, args=(rank, world, f"file://{folder}/group", threads, theirs), daemon=True)
                for rank, (_, theirs) in enumerate(pairs)
            ]
            for process in self.processes:
                process.start()

    def run(self, function, *args, **options):
        """What the function returns on each rank, as a list; it is called as function(*args, **options) on all."""
        for pipe in self.pipes:
            pipe.send((function, args, options))
        answers = [pipe.recv() for pipe in self.pipes]
        errors = [f"rank {rank}: {error}" for rank, (error, _) in enumerate(answers) if error]
        if errors:
            raise RankError("\n".join(errors))
        return [result for _, result in answers]

    def close(self):
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()


@contextlib.contextmanager
def _threads_of_children(threads):
    """Let processes that start inside use so many threads each."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _serve(rank, world, method, threads, pipe):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import torch.distributed as dist

    torch.set_num_threads(threads)
    timeout = timedelta(seconds=TIMEOUT)
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world, timeout=timeout)
    while (work := pipe.recv()) is not None:
        function, args, options = work
        torch.manual_seed(0)
        try:
            answer = None, function(*args, **options)
        except Exception:  # noqa: BLE001  whatever it is, the caller shows it
            answer = traceback.format_exc(), None
        pipe.send(answer)
    dist.destroy_process_group()
