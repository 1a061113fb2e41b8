"""Questions that are divided among workers: the same answers, and the number of torch's threads is left alone."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import reference
import torch
from every_plan import every, qkv
from torch import Tensor

import regard as rg
from regard import masks


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


WORKED: dict[str, tuple[Callable[[Any], Tensor], Callable[[Tensor], Tensor]]] = {
    "entropy": (lambda w: w.entropy(), reference.entropy),
    "saturation": (lambda w: w.saturation(), reference.saturation),
    "received": (lambda w: w.received(), reference.received),
    "distance": (lambda w: w.distance(), reference.distance),
    "top": (lambda w: w.top(3).values, lambda p: p.topk(3).values),
    "many on top": (lambda w: w.top(20).values, lambda p: p.topk(20).values),
    "heatmap": (lambda w: w.heatmap(), lambda p: reference.heatmap(p, 256, "mean")),
    "max heatmap": (lambda w: w.heatmap(9, pool="max"), lambda p: reference.heatmap(p, 9, "max")),
    "empty_rows": (lambda w: w.empty_rows(), lambda p: p.sum(-1) == 0),
}


@pytest.mark.usefixtures("two_threads")
@every("question", list(WORKED))
@every("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_workers_agree_with_one(question: str, mode: Any) -> None:
    n, (ask, answer) = 300, WORKED[question]
    with mode():
        q, k, v = qkv(torch.float64, n, n, lead=(2,))
        weights = rg.attend(q, k, v, mask=masks.window(30, 1), plan="tiled", budget=1 << 15).weights
        dense = reference.attend(q, k, v, visible=reference.window(n, n, 30, 1)).weights
        torch.testing.assert_close(ask(weights), answer(dense), atol=1e-9, rtol=1e-9)


@pytest.mark.usefixtures("two_threads")
def test_questions_leave_the_threads_of_torch_alone() -> None:
    def seen_by_a_new_thread() -> int:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(torch.get_num_threads).result()

    before = torch.get_num_threads(), seen_by_a_new_thread()
    q, k, _ = qkv(torch.float32, 300, 300)
    rg.Weights(q, k, plan="tiled", budget=1 << 15).entropy()
    assert (torch.get_num_threads(), seen_by_a_new_thread()) == before
