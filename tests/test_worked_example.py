"""What a reader can check by hand: the five tokens, the shapes, the recipe that is upside down."""

import pytest
import torch

import regard as rg
from regard import errors, masks, scores

PLANS = ["auto", "dense", "tiled"]
TOKENS = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]]
SCORES = [
    [1, 0, 0.5, 0.5, 0.75],
    [0, 1, 0.5, 0.5, 0.25],
    [0.5, 0.5, 1, 0, 0.75],
    [0.5, 0.5, 0, 1, 0.25],
    [0.75, 0.25, 0.75, 0.25, 0.75],
]
WEIGHTS = [
    [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
    [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
    [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
    [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
    [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
]


def four_decimals(x: torch.Tensor) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in x.tolist()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("plan", PLANS)
def test_five_tokens_to_four_decimals(plan: str, dtype: torch.dtype) -> None:
    tokens = torch.tensor(TOKENS, dtype=dtype)
    output, weights = rg.attend(tokens, tokens, tokens, plan=plan)
    assert four_decimals(weights.dense()) == WEIGHTS
    torch.testing.assert_close(output, torch.tensor(WEIGHTS, dtype=dtype) @ tokens, atol=2e-4, rtol=0)


def test_five_tokens_scores_are_those_of_the_page() -> None:
    tokens = torch.tensor(TOKENS, dtype=torch.float64)
    weights = rg.Weights(tokens, tokens, score=scores.scaled_dot())
    recovered = weights.dense().log() + weights.logsumexp()[:, None]
    torch.testing.assert_close(recovered, torch.tensor(SCORES, dtype=torch.float64))


def test_row_one_is_darkest_on_itself_and_row_five_on_one_three_five() -> None:
    tokens = torch.tensor(TOKENS)
    weights = rg.attend(tokens, tokens, tokens).weights
    assert weights.top(1).indices[0].tolist() == [0]
    assert sorted(weights.top(3).indices[4].tolist()) == [0, 2, 4]
    assert weights[4, 0] == weights[4, 2] == weights[4, 4]


@pytest.mark.parametrize("plan", PLANS)
def test_two_batches_of_eight_heads(plan: str) -> None:
    q, k, v = torch.randn(2, 8, 10, 64), torch.randn(2, 8, 12, 64), torch.randn(2, 8, 12, 64)
    output, weights = rg.attend(q, k, v, plan=plan)
    assert output.shape == (2, 8, 10, 64)
    assert weights.shape == weights.dense().shape == (2, 8, 10, 12)
    torch.testing.assert_close(output, torch.softmax(q @ k.mT / 8, -1) @ v, atol=1e-5, rtol=0)


def test_the_result_of_attend_has_named_fields() -> None:
    x = torch.randn(5, 3)
    answer = rg.attend(x, x, x)
    assert answer._fields == ("output", "weights")
    assert answer.output is answer[0]
    assert answer.weights is answer[1]


def upside_down(n: int, m: int) -> torch.Tensor:
    """The widely copied recipe: 1 above the diagonal, read as "0 is hidden": every query sees only the future."""
    return torch.triu(torch.ones(n, m), 1) != 0


@pytest.mark.plain
@pytest.mark.parametrize("n", [10, 12])
def test_the_upside_down_recipe_is_refused(n: int) -> None:
    q, k, v = torch.randn(2, 8, n, 64), torch.randn(2, 8, 12, 64), torch.randn(2, 8, 12, 64)
    with pytest.raises(errors.MaskError, match=r"(?s)allow.*hide"):
        rg.attend(q, k, v, mask=upside_down(n, 12))


@pytest.mark.plain
def test_the_upside_down_recipe_with_its_own_numbers_is_refused() -> None:
    x = torch.randn(12, 4)
    with pytest.raises(errors.MaskError, match=r"(?s)allow.*hide"):
        rg.attend(x, x, x, mask=torch.triu(torch.ones(12, 12), 1))


@pytest.mark.parametrize("plan", PLANS)
def test_the_recipe_spelled_out_sees_only_the_future_and_its_last_row_is_zero(plan: str) -> None:
    x = torch.randn(12, 4)
    output, weights = rg.attend(x, x, x, mask=masks.allow(upside_down(12, 12)), plan=plan)
    assert weights.empty_rows().tolist() == [False] * 11 + [True]
    assert not output[-1].any()
    assert not weights.dense().tril().any()


@pytest.mark.parametrize("mask", [masks.causal(), masks.hide(upside_down(12, 12)), ~masks.allow(upside_down(12, 12))])
@pytest.mark.parametrize("plan", PLANS)
def test_causal_sees_itself_and_the_past(mask: object, plan: str) -> None:
    x = torch.randn(12, 4)
    seen = rg.attend(x, x, x, mask=mask, plan=plan).weights.dense() > 0
    assert torch.equal(seen, torch.ones(12, 12, dtype=torch.bool).tril())


def test_the_recipe_demo_runs() -> None:
    """Ten queries, twelve keys: causal must be told which corner it starts from."""
    q, k, v = torch.randn(2, 8, 10, 64), torch.randn(2, 8, 12, 64), torch.randn(2, 8, 12, 64)
    with pytest.raises(errors.RegardError, match=r"(?s)top-left.*bottom-right"):
        rg.attend(q, k, v, mask=masks.causal())
    last = rg.attend(q, k, v, mask=masks.causal(align="bottom-right")).weights[..., -1, :]
    assert (last > 0).all()
