"""Scores and masks of j - i alone, as a view of one vector: the same answers as one dense tile."""

import math
from itertools import product

import pytest
import torch
from largest_allocation import LargestAllocation
from random_qkv import qkv
from torch import Tensor

import regard as rg
from regard import masks, scores
from regard.engine.fused import relative_bias
from regard.errors import StaleWeightsError
from regard.masks import Mask
from regard.scores import Score

HEADS, N, M = 3, 40, 33
SLOPES = torch.tensor([0.5, 0.1, 0.02], dtype=torch.float64)
TABLE = torch.randn(HEADS, N + M + 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
SCORES = {
    "alibi": scores.alibi(SLOPES),
    "relative": scores.relative(TABLE, -N),
    "relative for each sequence": scores.relative(torch.stack([TABLE, -TABLE]), -N),
    "relative for all": scores.relative(TABLE[0], 1 - N),
    "both": scores.alibi(SLOPES) + scores.relative(TABLE, -N),
}
MASKS = {
    "none": None,
    "causal": masks.causal("bottom-right"),
    "causal from the top": masks.causal("top-left"),
    "window": masks.window(5, 2, "top-left"),
    "two bands": masks.window(20, 0, "top-left") & masks.causal("bottom-right"),
    "all but a band": ~masks.window(3, 3, "top-left"),
    "no key": masks.window(2, 0, "top-left") & ~masks.causal("top-left"),
}
KINDS = [*product(("scaled_dot", "cosine"), SCORES, MASKS)]


@pytest.fixture(params=[1, 7, 64])
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows of a block at least, and an overhead that asks for no more."""
    monkeypatch.setattr(relative_bias, "MIN_BLOCK_ROWS", request.param)
    monkeypatch.setattr(relative_bias, "TILE_OVERHEAD", 1)
    return request.param


def results(x: list[Tensor], score: Score, mask: Mask | None, plan: str) -> list[Tensor]:
    output, weights = rg.attend(*x, score=score, mask=mask, plan=plan)
    gradients = torch.autograd.grad(output.pow(2).sum(), x)
    return [output, weights.logsumexp(), weights.received(), *gradients]


@pytest.mark.parametrize(("inner", "score", "mask"), KINDS)
def test_answers_and_gradients_are_those_of_one_tile(inner: str, score: str, mask: str, rows: int) -> None:
    x = [t.requires_grad_() for t in qkv(N, M, lead=(2, HEADS), dtype=torch.float64)]
    whole = getattr(scores, inner)() + SCORES[score]
    for ours, dense in zip(*(results(x, whole, MASKS[mask], plan) for plan in ("fused", "dense")), strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("mask", ["causal from the top", "window", "no key"])
def test_hidden_nan_harms_neither_output_nor_gradient(mask: str, rows: int) -> None:
    x = qkv(20, M, lead=(2, HEADS), dtype=torch.float64)
    score = scores.scaled_dot() + SCORES["alibi"]
    hidden = rg.Weights(x[0], x[1], score, MASKS[mask]).received() == 0
    assert bool(hidden.any())
    spoilt = [x[0], *(t.masked_fill(hidden[..., None], math.nan) for t in x[1:])]
    clean, found = ([t.clone().requires_grad_() for t in one] for one in (x, spoilt))
    a, b = (results(one, score, MASKS[mask], "fused") for one in (clean, found))
    torch.testing.assert_close(b[0], a[0])
    torch.testing.assert_close(b[3], a[3])
    for ours, exact in zip(b[4:], a[4:], strict=True):
        torch.testing.assert_close(ours[~hidden], exact[~hidden])
        assert bool((ours[hidden] == 0).all())


def test_a_seen_nan_shows(rows: int) -> None:
    q, k, v = qkv(N, N, lead=(2, HEADS))
    v[0, 1, 20] = math.nan
    output = rg.attend(q, k, v, scores.scaled_dot() + scores.alibi(SLOPES.float()), masks.causal()).output
    assert torch.equal(output.isnan().any(-1).nonzero(), torch.tensor([[0, 1, i] for i in range(20, N)]))


def test_nan_of_a_distance_that_is_hidden_does_no_harm(rows: int) -> None:
    q, k, v = qkv(N, N, lead=(2, HEADS))
    table = torch.randn(HEADS, 2 * N - 1)
    spoilt = table.clone()
    spoilt[:, N:] = math.nan  # the keys behind a query
    outputs = [
        rg.attend(q, k, v, scores.scaled_dot() + scores.relative(t, 1 - N), masks.causal()).output
        for t in (table, spoilt)
    ]
    torch.testing.assert_close(outputs[1], outputs[0])


@pytest.mark.parametrize("mask", [None, masks.causal()])
def test_no_table_of_all_pairs_is_made(mask: Mask | None) -> None:
    q, k, v = qkv(1500, 1500, lead=(1, 2))
    score = scores.scaled_dot() + scores.alibi(torch.tensor([0.5, 0.25]))
    with LargestAllocation() as largest:
        weights = rg.attend(q, k, v, score, mask).weights
    assert largest.bytes < 1 << 20
    assert "one number for each j - i" in str(weights.plan)


def test_slopes_may_change_before_the_backward_pass() -> None:
    x = [t.requires_grad_() for t in qkv(N, N, lead=(2, HEADS), dtype=torch.float64)]
    slopes = SLOPES.clone()
    score = scores.scaled_dot() + scores.alibi(slopes)
    expected = results(x, score, masks.causal(), "fused")[3:]
    output, weights = rg.attend(*x, score=score, mask=masks.causal())
    slopes.zero_()
    for ours, before in zip(torch.autograd.grad(output.pow(2).sum(), x), expected, strict=True):
        torch.testing.assert_close(ours, before)
    with pytest.raises(StaleWeightsError, match="slopes of alibi"):
        weights.entropy()


def test_other_positions_keep_their_plan() -> None:
    x = qkv(N, N, lead=(2, HEADS))
    lead = (2, 2, HEADS)
    alibi = scores.scaled_dot() + scores.alibi(SLOPES.float())
    others = [
        rg.attend(*x, score=alibi, mask=masks.padding(torch.tensor([N, 5]))),
        rg.attend(*x, score=alibi + scores.bias(torch.randn(N))),
        rg.attend(*qkv(N, N, lead=lead), score=alibi),
    ]
    assert not any("one number for each j - i" in str(one.weights.plan) for one in others)
