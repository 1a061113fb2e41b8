"""Masks and biases of models are read exactly, and kept in O(n + m) where they have a form."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.capture._mask_form import MaskForm, recognise
from regard.capture._score_bias import read_mask
from regard.engine.inputs import make_spec
from regard.recording import Call

N, M = 7, 11
I, J = torch.arange(N)[:, None], torch.arange(M)
KEYS = torch.tensor([[True] * 8 + [False] * 3, [False] * 4 + [True] * 7])[:, None, None]

FORMS = {
    "everything": (torch.ones(N, M, dtype=torch.bool), "everything"),
    "causal": (J <= I, "causal('top-left')"),
    "causal, aligned at the end": (J <= I + M - N, "causal('bottom-right')"),
    "window": ((J <= I) & (J >= I - 2), "window(2, 0, 'top-left')"),
    "window, aligned at the end": ((J <= I + M - N) & (J >= I + M - N - 3), "window(3, 0, 'bottom-right')"),
    "window ahead": ((J - I).abs() <= 2, "window(2, 2, 'top-left')"),
    "padding": (KEYS.expand(2, 1, N, M), "padding"),
    "causal and padding": ((J <= I) & KEYS, "causal('top-left') & padding"),
    "packed segments": (I // 3 == J // 4, "ranges"),
    "rows appended": ((torch.tensor([1, 2, 3, 4, 9, 10, 11])[:, None] > J), "ranges"),
    "nothing": (torch.zeros(N, M, dtype=torch.bool), "padding"),
}


def described(form):
    """The mask in the words that a recording and the viewer show."""
    call = Call("layer", 0, torch.zeros(1, 1, N, 1), torch.zeros(1, 1, M, 1), make_spec(None, form.mask(N, M), None))
    return call.mask


def four(mask):
    return mask[(None,) * (4 - mask.dim())]


@pytest.mark.parametrize(("mask", "words"), FORMS.values(), ids=FORMS.keys())
def test_a_mask_form_is_recognised_and_equals_the_mask(mask, words):
    form = recognise(four(mask))
    assert described(form) == words
    assert form.pairs is None
    assert torch.equal(form.dense(N, M, mask.device).expand_as(four(mask)), four(mask))


@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 0.9]))
def test_any_mask_is_kept_exactly(seed, density):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(2, 3, 5, 7, generator=generator) < density
    form = recognise(mask)
    assert torch.equal(form.dense(5, 7, mask.device).expand_as(mask), mask)


@pytest.mark.parametrize(("mask", "words"), FORMS.values(), ids=FORMS.keys())
def test_the_mask_for_weights_shows_the_same_pairs(mask, words):
    from regard import Weights

    form = recognise(four(mask))
    q, k = torch.randn(2, 3, N, 5), torch.randn(2, 3, M, 5)
    assert torch.equal(Weights(q, k, mask=form.mask(N, M)).dense() > 0, four(mask).expand(2, 3, N, M))


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min])
def test_a_float_mask_of_zeros_and_minus_infinity_is_no_bias(hidden):
    visible, bias = read_mask(torch.where(J <= I, 0.0, hidden), causal=False, n=N, m=M)
    assert described(visible) == "causal('top-left')"
    assert bias is None


@pytest.mark.parametrize("hidden", [False, True])
def test_a_bias_by_distance_becomes_a_table(hidden):
    table = torch.randn(3, N + M - 1)
    numbers = table[:, J - I + N - 1]
    if hidden:  # the most negative number, with a bias added to it
        numbers = torch.where(J <= I, numbers, numbers + torch.finfo(torch.float32).min)
    visible, bias = read_mask(numbers[None], causal=False, n=N, m=M)
    assert bias is not None and bias.pairs is None and bias.table is not None
    assert described(visible) == ("causal('top-left')" if hidden else "everything")
    seen = visible.dense(N, M, numbers.device)
    assert torch.equal(bias.table[..., J - I - bias.first].masked_fill(~seen, 0), numbers[None].masked_fill(~seen, 0))


def test_a_bias_without_a_form_is_kept_number_by_number():
    numbers = torch.randn(1, 3, N, M)
    _, bias = read_mask(numbers, causal=False, n=N, m=M)
    assert bias is not None and torch.equal(bias.pairs, numbers)


def test_a_causal_flag_and_a_mask_are_both_obeyed():
    mask = torch.rand(2, 1, N, M) > 0.3
    visible, _ = read_mask(mask, causal=True, n=N, m=M)
    assert torch.equal(visible.dense(N, M, mask.device), mask & (J <= I))


@pytest.mark.parametrize("form", ["band", "ranges", "keys", "both", "pairs"])
def test_queries_that_see_nothing_are_known_from_the_form(form):
    n, m = 7, 11
    start, stop = torch.tensor([0, 2, 5, 5, 0, 3, 9]).expand(2, 1, n), torch.tensor([0, 2, 6, 9, 11, 3, 11])[None, None]
    keys = torch.arange(m).expand(2, 1, m) % 3 == torch.tensor([1, 2])[:, None, None]
    seen = {
        "band": MaskForm(left=1, right=-2, offset=0),
        "ranges": MaskForm(start=start, stop=stop),
        "keys": MaskForm(right=0, keys=keys),
        "both": MaskForm(start=start, stop=stop, keys=keys),
        "pairs": MaskForm(pairs=torch.rand(2, 3, n, m) < 0.1),
    }[form]
    found = seen.empty(n, m, torch.device("cpu"))
    wanted = ~seen.dense(n, m, torch.device("cpu")).any(-1)
    assert found.any() and torch.equal(found.expand_as(wanted), wanted)
