"""Threads of torch's, lent to workers and given back."""

import threading

import pytest
import torch

from regard.engine import threads as threads_module


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("items", [1, 2, 7])
def test_each_worker_has_one_thread_and_all_come_back(items):
    assert threads_module.parallel_map(lambda item: (item, torch.get_num_threads()), range(items)) == [
        (i, 1) for i in range(items)
    ]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("items", [1, 2])
def test_threads_come_back_after_a_failure(items):
    with pytest.raises(ZeroDivisionError):
        threads_module.parallel_map(lambda item: 1 / item, [0] * items)
    assert torch.get_num_threads() == 2


def test_one_thread_inside_one_thread():
    with threads_module.one_thread(), threads_module.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_work_within_one_thread_is_dealt_out_all_the_same():
    with threads_module.one_thread():
        threads = threads_module.parallel_map(lambda _: threading.get_ident(), range(8))
        assert threading.get_ident() not in threads
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
