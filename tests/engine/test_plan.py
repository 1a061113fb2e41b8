"""The plan: a pure function that says the truth about what runs, and tiles that keep to it."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

import regard as rg
from regard import masks, normalisers, scores
from regard.engine import inputs, pooling
from regard.engine.costs import duration, estimate
from regard.engine.plan import BUFFERS, BUFFERS_WITH_GRADIENT, DENSE_SCORES, Request, plan
from regard.engine.tiles import Problem
from regard.errors import PlanError
from regard.masks import Mask
from regard.scores import Score
from regard.spec import Spec

REQUEST = Request(
    forced="auto",
    formula="softmax(q·k)",
    obstacle=None,
    form="whole",
    softmax=True,
    lead=(2,),
    n=17,
    m=19,
    itemsize=4,
    budget=1 << 20,
    grad=False,
    dropout=False,
    device="cpu",
)


@pytest.mark.parametrize("forced", ["auto", "dense", "tiled", "fused"])
def test_a_plan_remembers_what_was_asked_for(forced: str) -> None:
    found = plan(replace(REQUEST, forced=forced))
    assert found.forced == forced
    assert found.executor == ("fused" if forced == "auto" else forced)


@pytest.mark.parametrize(("itemsize", "grad"), [*product([4, 8], [False, True])])
def test_a_tile_keeps_to_the_budget(itemsize: int, grad: bool) -> None:
    found = plan(replace(REQUEST, itemsize=itemsize, grad=grad))
    assert found.tile_scores * itemsize * (BUFFERS_WITH_GRADIENT if grad else BUFFERS) <= REQUEST.budget


@pytest.mark.parametrize("itemsize", [4, 8])
def test_within_the_usual_budget_a_plan_is_the_same_with_gradients(itemsize: int) -> None:
    """So the short way need not ask for them."""
    usual = replace(REQUEST, itemsize=itemsize, budget=inputs.BUDGET)
    assert plan(replace(usual, grad=True)) == plan(usual)


def test_a_forced_plan_is_still_forced_when_the_weights_are_used() -> None:
    q, k, t = torch.randn(17, 3), torch.randn(19, 3), torch.randn(17, 19, requires_grad=True)
    with torch.no_grad():
        found = rg.Weights(q, k, scores.dot() + scores.bias(t), plan="fused")
        found @ k
    with pytest.raises(PlanError, match="no gradient for a bias"):
        found @ k


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (scores.dot(), "in one call"),
        (scores.dot() + scores.bias(torch.zeros(19)), "in one call"),
        (scores.dot() + scores.bias(torch.zeros(17, 19)), "in one call with a bias on the pairs"),
        (scores.dot() + scores.alibi(torch.ones(2)), "one number for each j - i"),
        (scores.dot() + (scores.bias(torch.zeros(19)) + scores.bias(torch.zeros(17, 19))), "bias on the pairs"),
        (scores.dot() + scores.cosine(), "a sum of two inner products"),
        (scores.dot() + (scores.bias(torch.zeros(19)) + scores.cosine()), "a sum of two inner products"),
    ],
)
def test_the_reason_of_a_plan_is_true(score: Score, words: str) -> None:
    assert words in str(rg.Weights(torch.randn(2, 17, 3), torch.randn(2, 19, 3), score).plan)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (masks.window(9, 0), "block by block"),
        (masks.padding(torch.tensor([5, 600])), "block by block"),
        (masks.causal("bottom-right"), "in one call, causal"),
        (masks.window(600, 600), "in one call"),
        (masks.allow(torch.ones(600, dtype=torch.bool)), "a bias on the keys"),
    ],
    ids=str,
)
def test_a_larger_matrix_is_cut_where_the_mask_hides(mask: Mask, words: str) -> None:
    x = torch.randn(2, 600, 3)
    assert words in str(rg.attend(x, x, x, mask=mask).weights.plan)


@pytest.mark.parametrize(("scores_", "rows", "features"), [*product([1, 10**4, 10**9], [0, 1, 999], [1, 64, 4096])])
def test_the_order_of_executors_is_that_of_the_cost_model(scores_: int, rows: int, features: int) -> None:
    seconds = [estimate(executor, scores_, rows, features) for executor in ("fused", "dense", "tiled")]
    assert seconds[0] == min(seconds)
    assert seconds[1] < seconds[2] or scores_ > DENSE_SCORES


def test_the_estimate_grows_with_what_is_visible() -> None:
    x = torch.randn(1024, 8)
    seen = [masks.window(9, 0), masks.causal(), None]
    seconds = [rg.attend(x, x, x, mask=mask).weights.plan.seconds for mask in seen]
    assert seconds == sorted(seconds)
    assert str(rg.Weights(x, x).plan).endswith(f"; about {duration(seconds[-1])}")


def test_the_estimate_of_one_query_counts_the_keys_that_are_read() -> None:
    one, many = (estimate("fused", 10**6, rows, 64) for rows in (1, 1000))
    assert one > 5 * many
    key = torch.randn(4096, 16)
    few, all_ = (rg.Weights(key[:1], key[:m]).plan.seconds for m in (64, 4096))
    assert few < all_


def test_the_estimate_follows_from_sizes_alone() -> None:
    lengths = torch.tensor([5, 64])
    plans = [
        rg.Weights(x, x, mask=masks.padding(lengths)).plan for x in (torch.zeros(2, 64, 16), torch.ones(2, 64, 16))
    ]
    lengths.fill_(1)
    assert plans == [rg.Weights(x, x, mask=masks.padding(lengths)).plan for x in torch.randn(2, 2, 64, 16)]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(4.3e-5, "43 µs"), (1.23e-3, "1.2 ms"), (0.5, "500 ms"), (3.52, "3.5 s"), (1234.5, "1,234 s")],
)
def test_a_duration_has_two_digits(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_sum_of_biases_runs_fused_and_is_the_same() -> None:
    q, k, one, two = torch.randn(17, 3), torch.randn(19, 3), torch.randn(19), torch.randn(17, 19)
    nested, whole = scores.dot() + (scores.bias(one) + scores.bias(two)), scores.dot() + scores.bias(one + two)
    assert rg.Weights(q, k, nested).plan.executor == "fused"
    torch.testing.assert_close(rg.attend(q, k, k, nested).output, rg.attend(q, k, k, whole, plan="dense").output)


HIDDEN = torch.rand(2, 3, 17, 19, generator=torch.Generator().manual_seed(1)) < 0.4
HIDDEN[..., 5, :] = True  # a query that sees nothing
ADDED = torch.randn(2, 3, 17, 19, generator=torch.Generator().manual_seed(2)).double()
WRITTEN_OUT = {
    "a mask": (None, masks.hide(HIDDEN[0, 0])),
    "a mask for each head": (None, masks.allow(~HIDDEN[0])),
    "a mask for each batch": (None, masks.allow(~HIDDEN[:, :1])),
    "a mask of queries": (None, masks.hide(HIDDEN[0, 0].all(-1, keepdim=True))),
    "masks of pairs and of keys": (None, masks.hide(HIDDEN[0, 0]) & masks.allow(torch.arange(19) < 11)),
    "either of two masks": (None, ~masks.hide(HIDDEN[1]) | masks.allow(~HIDDEN[:, :1])),
    "numbers": (ADDED[0, 0], None),
    "numbers for each query": (ADDED[..., :1], None),
    "numbers that hide": (ADDED[0].masked_fill(HIDDEN[0], -math.inf), None),
    "numbers and a mask": (ADDED[:, :1], masks.hide(HIDDEN[0, 1])),
    "numbers and a mask of keys": (ADDED[1, 1], masks.hide(HIDDEN[:, :1, :1])),
}


@pytest.mark.parametrize("budget", [None, 1 << 10])
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_the_caller_has_written_out_is_one_call_if_there_is_room(name: str, budget: int | None) -> None:
    added, mask = WRITTEN_OUT[name]
    score = scores.scaled_dot() if added is None else scores.scaled_dot() + scores.bias(added)
    tensors = [torch.randn(2, 3, rows, 5, dtype=torch.float64, requires_grad=True) for rows in (17, 19, 19)]
    found = rg.attend(*tensors, score, mask, plan="fused", budget=budget)
    assert ("bias on the pairs" in str(found.weights.plan)) == (budget is None)
    expected = rg.attend(*tensors, score, mask, plan="dense")
    torch.testing.assert_close(found.output, expected.output)
    torch.testing.assert_close(found.weights.logsumexp(), expected.weights.logsumexp())
    pull = torch.randn_like(found.output)
    torch.testing.assert_close(*(torch.autograd.grad((x.output * pull).sum(), tensors) for x in (found, expected)))


def test_what_is_large_or_has_more_leading_dimensions_goes_block_by_block() -> None:
    x = torch.zeros(1, 1).expand(2100, 4)
    large = rg.Weights(x, x, mask=masks.hide(torch.zeros(1, 1, dtype=torch.bool).expand(2100, 2100)))
    assert "block by block" in str(large.plan)
    x = torch.zeros(2, 3, 5, 17, 4)
    assert "block by block" in str(rg.Weights(x, x, mask=masks.hide(HIDDEN[0, 0, :, :17])).plan)


MASKS = [
    None,
    masks.causal("top-left"),
    masks.window(2, 3, "bottom-right"),
    masks.window(11, 0, "top-left") & masks.prefix(17),  # the ends see little, the rows between much
    masks.causal("top-left") | masks.prefix(5),
]


@pytest.mark.parametrize(("mask", "cap"), [*product(MASKS, [1, 7, 50, 1000])])
def test_tiles_hold_at_most_the_cap_and_every_row_once(mask: Mask | None, cap: int) -> None:
    lead, n, m = (3, 5), 211, 31
    problem = Problem.build(Spec(scores.dot(), mask, normalisers.softmax()), torch.randn(n, 2), torch.randn(m, 2), lead)
    seen = torch.zeros(*lead, n, dtype=torch.int64)
    for tile in problem.tiles(cap):
        rows = math.prod([cut.stop - cut.start for cut in tile.lead]) * len(tile.rows)
        assert rows == 1 or rows * len(tile.cols) <= cap
        seen[(*tile.lead, slice(tile.rows.start, tile.rows.stop))] += 1
    visible = (
        torch.ones(n, dtype=torch.bool)
        if mask is None
        else ~rg.Weights(torch.randn(n, 2), torch.randn(m, 2), mask=mask).empty_rows()
    )
    assert seen.max() == 1
    assert bool((seen == 1)[..., visible].all())


def test_float64_gets_the_whole_budget_in_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    caps: list[int] = []
    original = pooling.fold
    monkeypatch.setattr(pooling, "fold", lambda p, r, cap: (caps.append(cap), original(p, r, cap))[1])
    q, k = torch.randn(2, 3, dtype=torch.float64), torch.randn(100, 3, dtype=torch.float64)
    budget = 20 * BUFFERS * 8  # twenty scores of eight bytes: a row has a hundred
    rg.attend(q, k, k, plan="tiled", budget=budget)
    assert [cap * 8 * BUFFERS for cap in caps] == [budget]


def test_mass_counts_the_bytes_it_computes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles: list[int] = []
    original = pooling.pool
    monkeypatch.setattr(pooling, "pool", lambda *a, **o: (tiles.append(a[5].tile_scores), original(*a, **o))[1])
    q = 100 * torch.randn(9, 3)  # scores so large that float64 is needed
    rg.Weights(q, q, plan="tiled", budget=BUFFERS * 8 * 20).mass(torch.zeros(9, dtype=torch.int64))
    assert tiles == [20]


@pytest.mark.parametrize("ask", [lambda w: w.heatmap(3, "max"), lambda w: w.top(9), lambda w: w.heatmap()])
def test_a_question_prepares_its_operands_once(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Problem] = []
    original = Problem.build
    monkeypatch.setattr(Problem, "build", lambda *a, **o: (built.append(original(*a, **o)), built[-1])[1])
    ask(rg.Weights(torch.randn(11, 3), torch.randn(13, 3)))
    assert len(built) == 1
