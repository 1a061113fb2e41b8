"""Small masked calls on the fast path: the answers of one dense tile, and nothing remembered that may change."""

import math

import pytest
import torch
from random_qkv import qkv
from torch import Tensor

import regard as rg
from regard import masks
from regard.engine import fast_path, mask_cache
from regard.errors import StaleWeightsError
from regard.masks import Mask

N, M = 20, 24
SEEN = torch.rand(N, M, generator=torch.Generator().manual_seed(1)) < 0.4
SEEN[3] = False
REMEMBERED = {
    "window": masks.window(3, 1, "top-left"),
    "causal, the last keys": masks.causal("bottom-right"),
    "sinks and a window": masks.prefix(2) | masks.window(3, 0, "top-left"),
    "few keys": masks.prefix(5),
    "no key": masks.prefix(0),
    "rows without a key": masks.window(2, 0, "bottom-right") & masks.prefix(9),
}
CUT = {"prefix": masks.prefix(18), "prefix of a prefix": masks.prefix(18) & masks.prefix(17)}
WITH_TENSORS = {
    "padding": masks.padding(torch.tensor([M, 5])),
    "padding of everything": masks.padding(torch.tensor([M, 0])),
    "segments": masks.segments(torch.arange(N) // 6, torch.arange(M) // 5),
    "ids for each sequence": masks.segments(torch.arange(2 * N).view(2, N) % 5, torch.arange(M) % 4),
    "ranges": masks.ranges(torch.arange(N) // 2, torch.arange(N) + 3),
    "allow": masks.allow(SEEN),
    "allow for each head": masks.allow(torch.stack([SEEN, ~SEEN, SEEN])),
    "hide and causal": masks.hide(SEEN) & masks.causal("top-left"),
}
MASKS = REMEMBERED | CUT | WITH_TENSORS


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_path, "_kernel_calls", {})
    monkeypatch.setattr(mask_cache, "_values", {})


def of_heads(lead: tuple[int, ...], name: str) -> Mask:
    """The mask of a name; without a batch, those with a number for each sequence have it for each head."""
    return MASKS[name] if len(lead) == 2 else {"padding": masks.padding(torch.tensor([M, 5, 9]))}.get(name, MASKS[name])


def answers(x: list[Tensor], mask: Mask, plan: str) -> list[Tensor]:
    output, weights = rg.attend(*x, mask=mask, plan=plan)
    found = [output, weights.logsumexp(), weights.entropy()]
    return [*found, *torch.autograd.grad(output.pow(2).sum(), x)] if x[0].requires_grad else found


@pytest.mark.parametrize("lead", [(2, 3), (3,)])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_answers_and_gradients_are_those_of_one_tile(name: str, gradients: bool, lead: tuple[int, ...]) -> None:
    if len(lead) == 1 and name in ("padding of everything", "ids for each sequence"):
        lead = (2,)
    x = [t.requires_grad_(gradients) for t in qkv(N, M, d=16, lead=lead, dtype=torch.float64)]
    mask = of_heads(lead, name)
    dense = answers(x, mask, "dense")
    for _ in range(2):  # the second time from what is remembered
        assert fast_path.attend(*x, mask) is not None
        for ours, exact in zip(answers(x, mask, "auto"), dense, strict=True):
            torch.testing.assert_close(ours, exact, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", ["window", "prefix", "padding", "segments", "sinks and a window"])
def test_hidden_nan_harms_neither_output_nor_gradient(name: str, gradients: bool) -> None:
    x = qkv(N, M, d=16, lead=(2, 3), dtype=torch.float64)
    hidden = rg.Weights(x[0], x[1], mask=MASKS[name]).received() == 0
    spoilt = [x[0], *(t.masked_fill(hidden[..., None], math.nan) for t in x[1:])]
    assert bool(hidden.any())
    a, b = (answers([t.clone().requires_grad_(gradients) for t in one], MASKS[name], "auto") for one in (x, spoilt))
    for ours, exact in zip(b[:4], a[:4], strict=True):
        torch.testing.assert_close(ours, exact)
    assert all(bool((gradient[hidden] == 0).all()) for gradient in b[4:])


@pytest.mark.parametrize("name", ["window", "prefix", "padding", "allow"])
def test_a_seen_nan_shows(name: str) -> None:
    q, k, v = qkv(N, M, d=16, lead=(2, 3))
    v[1, 2, 1] = math.nan
    sees = rg.Weights(q, k, mask=MASKS[name])[..., 1] > 0
    output = rg.attend(q, k, v, mask=MASKS[name]).output
    assert torch.equal(output.isnan().any(-1)[1, 2], sees[1, 2])
    assert not bool(output[0].isnan().any())


def test_a_mask_whose_tensor_changes_is_read_anew() -> None:
    x = qkv(N, N, d=16, lead=(2, 3))
    lengths = torch.tensor([N, 7])
    before = rg.attend(*x, mask=masks.padding(lengths))
    lengths[0] = 9
    after = rg.attend(*x, mask=masks.padding(lengths))
    dense = rg.attend(*x, mask=masks.padding(torch.tensor([9, 7])), plan="dense").output
    torch.testing.assert_close(after.output, dense, atol=1e-5, rtol=1e-5)
    with pytest.raises(StaleWeightsError, match="lengths of padding"):
        before.weights.entropy()


def test_nothing_of_the_callers_is_remembered() -> None:
    x = qkv(N, M, d=16, lead=(2, 3))
    for mask in MASKS.values():
        rg.attend(*x, mask=mask)
    assert fast_path._kernel_calls
    assert all(not call.call.spec.tensors() for call in fast_path._kernel_calls.values() if call)
    mine = {id(t) for mask in MASKS.values() for t in mask.all_tensors()}
    copies = [t for tensors, made in mask_cache._values.values() for t in (*tensors, *made) if t is not None]
    assert copies
    assert not mine & {id(t) for t in copies}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_cache, "MAX_VALUES", 3)
    monkeypatch.setattr(fast_path, "MAX_REMEMBERED_BIAS", 30 * 30)
    for n in range(20, 40):
        rg.attend(*qkv(n, n, d=16), mask=masks.window(3, 0))
        assert len(mask_cache._values) <= 3
    assert all(bias.numel() <= 30 * 30 for _, (bias, _) in mask_cache._values.values())


def test_a_bias_made_in_inference_mode_serves_gradients() -> None:
    with torch.inference_mode():
        rg.attend(*qkv(N, N, d=16), mask=masks.window(3, 0))
    assert len(mask_cache._values) == 1
    x = [t.requires_grad_() for t in qkv(N, N, d=16)]
    rg.attend(*x, mask=masks.window(3, 0)).output.sum().backward()
    assert all(t.grad is not None for t in x)


def test_masks_of_inference_mode_are_copied() -> None:
    x = qkv(N, N, d=16, lead=(2, 3))
    with torch.inference_mode():
        lengths = torch.tensor([N, 7])
        weights = rg.attend(*x, mask=masks.padding(lengths)).weights
        before = rg.Weights(x[0], x[1], mask=masks.padding(torch.tensor([N, 7]))).entropy()
        lengths.fill_(1)
        torch.testing.assert_close(weights.entropy(), before)
