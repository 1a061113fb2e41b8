"""Query heads that share keys, and half precision: the same answers as with a copy of the keys for each head."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import regard as rg
from regard import masks, scores
from regard.engine import decode, inputs

MASKS = {
    "none": None,
    "padding": masks.padding(torch.tensor([40, 17])),
    "padding of heads": masks.padding(torch.tensor([[40, 17, 2, 3, 5, 9], [1, 20, 39, 4, 4, 30]])),
    "allow": masks.allow(torch.arange(40) % 3 > 0),
    "causal": masks.causal("bottom-right"),
    "segments": masks.segments(torch.arange(3), torch.arange(40) // 9),
}


def grouped(n: int, heads: int, key_heads: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n + heads)
    sizes = ((heads, n), (key_heads, 40), (key_heads, 40))
    return [torch.randn(2, h, rows, 16, generator=generator, dtype=torch.float64).to(dtype) for h, rows in sizes]


@pytest.mark.parametrize("key_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("name", MASKS)
def test_grouped_heads_are_heads_with_a_copy_of_their_keys(name: str, key_heads: int) -> None:
    x = [t.requires_grad_() for t in grouped(3, 6, key_heads, torch.float64)]
    answers: list[list[Tensor]] = []
    for k, v in ((x[1], x[2]), tuple(inputs.repeat_key_heads(t, 6 // key_heads) for t in x[1:])):
        output, weights = rg.attend(x[0], k, v, mask=MASKS[name])
        answers.append([output, weights.logsumexp(), weights.entropy(), *torch.autograd.grad(output.pow(2).sum(), x)])
    for ours, copied in zip(*answers, strict=True):
        torch.testing.assert_close(ours, copied, atol=1e-10, rtol=1e-8)


@given(
    n=st.integers(1, 4), key_heads=st.sampled_from([1, 2, 6]), dtype=st.sampled_from([torch.bfloat16, torch.float16])
)
def test_half_precision_is_computed_in_float32(n: int, key_heads: int, dtype: torch.dtype) -> None:
    x = grouped(n, 6, key_heads, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "CHUNK_NUMBERS", 16 * 6 * 7)  # several chunks
        output, weights = rg.attend(*x)
    wide, wide_weights = rg.attend(*(t.double() for t in x))
    assert output.dtype == dtype
    torch.testing.assert_close(output.double(), wide, atol=0, rtol=2 * torch.finfo(dtype).eps)
    torch.testing.assert_close(weights.logsumexp().double(), wide_weights.logsumexp(), atol=1e-5, rtol=1e-5)


def test_half_precision_has_gradients() -> None:
    x = [t.requires_grad_() for t in grouped(1, 6, 2, torch.bfloat16)]
    wide = [t.detach().double().requires_grad_() for t in x]
    ours, exact = (torch.autograd.grad(rg.attend(*y).output.sum(), y) for y in (x, wide))
    for a, e in zip(ours, exact, strict=True):
        torch.testing.assert_close(a.double(), e, atol=2e-2, rtol=2e-2)


def test_nan_in_a_key_reaches_every_query_that_sees_it() -> None:
    q, k, v = grouped(1, 6, 2, torch.bfloat16)
    k[0, 0, 5] = torch.nan
    output = rg.attend(q, k, v).output
    assert bool(output[0, :3].isnan().all())
    assert bool(output[0, 3:].isfinite().all())
    assert bool(output[1].isfinite().all())


def test_a_score_with_parameters_of_its_own_keeps_its_heads() -> None:
    q, k, v = grouped(3, 6, 2, torch.float64)
    score = scores.scaled_dot() + scores.alibi(torch.linspace(0.1, 0.6, 6, dtype=torch.float64))
    ours = rg.attend(q, k, v, score=score).output
    copied = rg.attend(q, *(inputs.repeat_key_heads(t, 3) for t in (k, v)), score=score).output
    torch.testing.assert_close(ours, copied)


ONE_ROW = {
    "window": masks.window(20, 0, "bottom-right"),
    "narrow window": masks.window(3, 0, "bottom-right"),
    "no key": masks.window(0, 0, "bottom-right") & masks.prefix(5),
    "causal, padding": masks.causal("bottom-right") & masks.padding(torch.tensor([40, 17])),
    "segments": masks.segments(torch.tensor([1]), torch.arange(40) // 19),
    "an id that returns": masks.segments(torch.tensor([1]), torch.arange(40) // 7 % 2),
    "an id of no key": masks.segments(torch.tensor([9]), torch.arange(40) // 19),
    "segments for each sequence": masks.segments(torch.tensor([[0], [1]]), torch.arange(40) // 19),
    "sinks and a window": masks.prefix(2) | masks.window(5, 0, "bottom-right"),
    "allow": masks.allow(torch.arange(40) % 3 > 0) & masks.causal("bottom-right"),
    "padding of heads": masks.padding(torch.tensor([[40, 17, 2, 3, 5, 9], [1, 20, 39, 4, 4, 30]])),
}


@pytest.mark.parametrize("key_heads", [1, 2, 6])
@pytest.mark.parametrize("name", ONE_ROW)
def test_one_query_sees_its_keys_and_no_others(name: str, key_heads: int) -> None:
    x = [t.requires_grad_() for t in grouped(1, 6, key_heads, torch.float64)]
    answers: list[list[Tensor]] = []
    for plan in ("fused", "dense"):
        output, weights = rg.attend(*x, mask=ONE_ROW[name], plan=plan)
        answers.append([output, weights.logsumexp(), *torch.autograd.grad(output.pow(2).sum(), x)])
    for ours, dense in zip(*answers, strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("name", ["window", "causal, padding", "segments"])
def test_one_query_is_not_harmed_by_hidden_nan(name: str) -> None:
    q, k, v = grouped(1, 6, 2, torch.float32)
    output, weights = rg.attend(q, k, v, mask=ONE_ROW[name])
    hidden = (weights.dense()[:, ::3, 0] == 0).unsqueeze(-1)  # one of each group
    spoilt = [t.masked_fill(hidden, torch.nan) for t in (k, v)]
    torch.testing.assert_close(rg.attend(q, *spoilt, mask=ONE_ROW[name]).output, output)


def test_a_new_token_sees_all_keys_under_the_causal_mask() -> None:
    q, k, v = grouped(1, 6, 6, torch.float32)
    causal = rg.attend(q, k, v, mask=masks.causal("bottom-right"))
    assert torch.equal(causal.output, rg.attend(q, k, v).output)
    assert "in one call" in str(causal.weights.plan)
