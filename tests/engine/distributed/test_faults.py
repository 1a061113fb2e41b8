"""A rank that dies, hangs or asks for something else: every other rank has a typed error in time."""

import random
import subprocess
import sys

import pytest
import torch
from distributed_faults import FAULTS, attend, with_fault
from ranks import Failure, Ranks

TIMEOUT = 5  # seconds of the process group
LIMIT = 4 * TIMEOUT  # a rank may wait for one that waits itself


def check_fault(ranks, fault, victim, message):
    """True if the group can go on."""
    (expected,) = set(ranks.run(attend)) if fault == "slow" else (None,)
    ranks.start(with_fault, fault, victim, message)
    others = [rank for rank in range(len(ranks.pipes)) if rank != victim]
    results = ranks.collect(others, LIMIT)
    if fault == "slow":
        assert results == [expected] * len(others)
        ranks.collect([victim])
        return True
    for result in results:
        if not isinstance(result, Failure):  # the victim had sent all that this rank needs
            continue
        assert result.kind == "DistributedError", result.trace
        assert "RuntimeError" in result.bases
        assert "rank" in result.message
        assert fault in {"kill", "stop", "leave"} or f"rank {victim}" in result.message
    assert fault in {"kill", "stop", "leave"} or all(isinstance(result, Failure) for result in results)
    return False


@pytest.mark.parametrize(
    ("fault", "victim", "message"), [("kill", 1, 5), ("stop", 1, 1), ("mask", 0, 0), ("shape", 1, 0)]
)
def test_one_fault(fault, victim, message):
    with Ranks(2, timeout=TIMEOUT) as ranks:
        ranks.run(attend)
        check_fault(ranks, fault, victim, message)


def test_processes_end_by_themselves_after_a_rank_has_died():
    with Ranks(2, timeout=TIMEOUT) as ranks:
        ranks.run(attend)
        check_fault(ranks, "kill", 0, 3)
        assert ranks.leave()[1] == 0


def test_without_a_process_group_the_error_says_how_to_start_one():
    from regard import distributed
    from regard.errors import DistributedError

    with pytest.raises(DistributedError, match="torchrun"):
        distributed.shard(torch.ones(4, 2), dim=-2)


def test_torch_imports_nothing_distributed_for_plain_attention():
    call = "import sys, torch, regard; regard.attend(*[torch.ones(4, 4)] * 3)"
    code = f"{call}; print('regard.engine.distributed.ring' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_twenty_random_faults(seed):
    chance = random.Random(seed)
    ranks = None
    try:
        for _ in range(20):
            world = chance.choice([2, 3])
            fault, victim = chance.choice(FAULTS), chance.randrange(world)
            if ranks is not None and len(ranks.pipes) != world:
                ranks.close()
                ranks = None
            if ranks is None:
                ranks = Ranks(world, timeout=TIMEOUT)
                ranks.run(attend)
            if not check_fault(ranks, fault, victim, chance.randrange(1, 12)):
                processes = ranks.processes
                ranks.close()
                assert not any(process.is_alive() for process in processes)
                ranks = None
    finally:
        if ranks is not None:
            ranks.close()
