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
def test_each_worker_has_one_torch_thread_and_the_number_is_restored(items):
    assert threads_module.parallel_map(lambda item: (item, torch.get_num_threads()), range(items)) == [
        (i, 1) for i in range(items)
    ]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("items", [1, 2])
def test_the_number_of_threads_is_restored_after_a_failure(items):
    with pytest.raises(ZeroDivisionError):
        threads_module.parallel_map(lambda item: 1 / item, [0] * items)
    assert torch.get_num_threads() == 2


def test_one_thread_can_be_nested():
    with threads_module.one_thread(), threads_module.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_work_inside_one_thread_still_has_workers():
    with threads_module.one_thread():
        threads = threads_module.parallel_map(lambda _: threading.get_ident(), range(8))
        assert threading.get_ident() not in threads
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
