"""Results that were computed from a mask are used again only for the same numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from random_qkv import qkv
from torch import Tensor
from torch._subclasses import FakeTensorMode

import regard as rg
from regard import masks
from regard.engine import mask_cache
from regard.masks import Mask

N = 40


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[object, object]:
    """An empty cache, which the test may look into."""
    values: dict[object, object] = {}
    monkeypatch.setattr(mask_cache, "_values", values)
    return values


def assert_read_anew(n: int, mask: Mask, change: object, m: int = N) -> None:
    """Attend, change the mask's tensors behind its back, and attend again: the second answer is of the new numbers."""
    x = qkv(n, m, d=16, lead=(2, 3))
    first = rg.attend(*x, mask=mask).output
    change()  # pyright: ignore[reportCallIssue]
    second = rg.attend(*x, mask=mask).output
    torch.testing.assert_close(second, rg.attend(*x, mask=copy.deepcopy(mask), plan="dense").output)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("n", [1, 24])
def test_changes_through_numpy_are_noticed(n: int) -> None:
    lengths = np.array([30, 17])
    assert_read_anew(n, masks.padding(torch.from_numpy(lengths)), lambda: lengths.fill(19))


@pytest.mark.parametrize("n", [1, 24])
def test_changes_in_inference_mode_are_noticed(n: int) -> None:
    with torch.inference_mode():
        start = torch.zeros(n, dtype=torch.long)
        assert_read_anew(n, masks.ranges(start, start + 30), lambda: start.fill_(7))


def test_boundaries_of_documents_follow_a_change_through_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("row_runs.TILE_OVERHEAD", "row_runs.MIN_RUN_ROWS", "forms.TILE_OVERHEAD"):
        monkeypatch.setattr(f"regard.engine.fused.{name}", 1)
    monkeypatch.setattr("regard.engine.fused.forms.SMALL_SCORES", 0)
    ids = np.arange(N) // 10
    mask = masks.segments(torch.from_numpy(ids)) & masks.causal()
    assert_read_anew(N, mask, lambda: np.copyto(ids, np.arange(N) // 8))


def test_a_new_mask_over_the_same_numbers_is_not_computed_again(calls: dict[object, object]) -> None:
    x, made = qkv(24, N, d=16, lead=(2, 3)), list[Tensor]()
    for _ in range(3):
        rg.attend(*x, mask=masks.padding(torch.tensor([30, 17])))
        made += [bias for _, (_, bias, _) in calls.values()]  # pyright: ignore[reportGeneralTypeIssues]
    assert len(calls) == 1
    assert made[0] is made[1] is made[2]


def test_masks_of_one_shape_do_not_answer_for_each_other() -> None:
    x, lengths = qkv(24, N, d=16, lead=(2, 3)), torch.tensor([30, 17])
    for mask in (masks.padding(lengths), ~masks.padding(lengths), masks.padding(lengths) | masks.prefix(20)):
        for mine in (mask, mask):
            torch.testing.assert_close(
                rg.attend(*x, mask=mine).output, rg.attend(*x, mask=mask, plan="dense").output, atol=1e-5, rtol=1e-5
            )


def test_large_tensors_and_other_modes_are_left_alone(
    calls: dict[object, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeTensorMode():
        assert mask_cache.remembered("a kind", masks.prefix(3), lambda: 1) == 1
    monkeypatch.setattr(mask_cache, "MAX_NUMBERS", 1)
    rg.attend(*qkv(24, N, d=16, lead=(2, 3)), mask=masks.padding(torch.tensor([30, 17])))
    assert not calls


def test_a_kind_without_a_hash_is_computed_each_time() -> None:
    answers = iter((1, 2))
    assert [mask_cache.remembered([], masks.prefix(3), lambda: next(answers)) for _ in range(2)] == [1, 2]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("key_heads", [1, 4])
@pytest.mark.parametrize("gradients", [False, True])
def test_one_query_on_sinks_and_a_window_reads_their_keys_alone(gradients: bool, key_heads: int) -> None:
    q = torch.randn(2, 4, 1, 16, dtype=torch.float64)
    k, v = torch.randn(2, 2, key_heads, 400, 16, dtype=torch.float64)
    x = [t.requires_grad_(gradients) for t in (q, k, v)]
    mask = (masks.prefix(4) & masks.causal("bottom-right")) | masks.window(30, 0, "bottom-right")
    ours, dense = (rg.attend(*x, mask=mask, plan=plan) for plan in ("auto", "dense"))
    torch.testing.assert_close(ours.output, dense.output)
    torch.testing.assert_close(ours.weights.logsumexp(), dense.weights.logsumexp())
    if gradients:
        grads = [torch.autograd.grad(one.output.pow(2).sum(), x) for one in (ours, dense)]
        for mine, exact in zip(*grads, strict=True):
            torch.testing.assert_close(mine, exact)
    spoilt = [t.detach().clone() for t in (k, v)]
    for t in spoilt:
        t[..., 4:360, :] = torch.nan
    torch.testing.assert_close(rg.attend(q.detach(), *spoilt, mask=mask).output, dense.output.detach())
