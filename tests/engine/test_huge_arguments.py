"""Numbers that are too large, or none at all, as arguments: answered, or refused by us before anything is allocated."""

import pytest
import torch

import regard as rg
from regard import masks, normalisers, scores
from regard.errors import ChoiceError, MaskError, TooLargeError

HUGE = (10**12, 2**63, 10**30, 10**400)


def weights(**options):
    x = torch.randn(2, 20, 8, generator=torch.Generator().manual_seed(0))
    return rg.Weights(x, x, **options)


@pytest.mark.plain
@pytest.mark.parametrize("huge", HUGE, ids=["10**12", "2**63", "10**30", "10**400"])
def test_more_top_keys_than_memory_are_refused(huge):
    with pytest.raises(TooLargeError, match=r"of 20 keys would take .* bytes, above the limit of 268,435,456"):
        weights().top(huge)


def test_more_top_keys_than_keys_are_filled_up():
    values, indices = weights().top(29)
    assert (values[..., 20:] == 0).all() and (indices[..., 20:] == -1).all()


@pytest.mark.parametrize("huge", [10**8, 10**12, 2**62])
def test_ids_that_would_need_more_groups_than_memory_are_refused(huge):
    with pytest.raises(TooLargeError, match="number the groups that occur"):
        weights().mass(torch.full((20,), huge))
    renumbered = torch.unique(torch.full((20,), huge), return_inverse=True)[1]
    torch.testing.assert_close(weights().mass(renumbered), torch.ones(2, 20, 1))


def test_ids_beyond_the_number_of_keys_are_groups_like_others():
    mass = weights().mass(torch.full((20,), 50))
    assert mass.shape == (2, 20, 51)
    torch.testing.assert_close(mass[..., 50], torch.ones(2, 20))


@pytest.mark.parametrize(
    "ask",
    [lambda w: w.top(100_000), lambda w: w.mass(torch.arange(100_000)), lambda w: w.heatmap(100_000)],
    ids=["top", "mass", "heatmap"],
)
def test_no_answer_is_the_whole_matrix_by_another_name(ask):
    long = rg.Weights(*torch.zeros(2, 100_000, 2))
    with pytest.raises(TooLargeError, match=r"would take .* bytes, above the limit of 268,435,456: "):
        ask(long)


@pytest.mark.parametrize("huge", HUGE, ids=["10**12", "2**63", "10**30", "10**400"])
def test_slices_bins_and_limits_of_any_size_are_what_python_says(huge):
    whole = weights().dense(limit=huge)
    torch.testing.assert_close(weights()[:, ::huge], whole[:, :1])
    torch.testing.assert_close(weights()[:, huge:], whole[:, 20:])
    torch.testing.assert_close(weights()[:, -huge:huge], whole)
    assert weights().heatmap(huge).shape == (2, 20, 20)


@pytest.mark.plain
@pytest.mark.parametrize(
    "ask",
    [
        lambda: weights()[:, ::0],
        lambda: weights().dense("all"),
        lambda: rg.attend(*[torch.randn(20, 8)] * 3, budget=float("inf")),
        lambda: masks.prefix(2.5),
        lambda: masks.prefix(10**30),
        lambda: masks.window(10**30, 0),
        lambda: masks.window(0, -(10**30)),
        lambda: scores.scaled_dot(10**400),
        lambda: scores.scaled_dot("1"),
        lambda: scores.cosine(10**400),
        lambda: scores.softcap(scores.dot(), 10**400),
        lambda: scores.softcap(scores.dot(), float("inf")),
        lambda: scores.gaussian(10**400),
        lambda: scores.gaussian(float("nan")),
        lambda: scores.kernel("epanechnikov", 10**400),
        lambda: normalisers.sigmoid(10**400),
    ],
)
def test_numbers_that_make_no_sense_are_refused_in_words(ask):
    with pytest.raises(ChoiceError) as refused:
        ask()
    assert len(str(refused.value)) < 200


def test_windows_and_prefixes_larger_than_the_matrix_show_all_of_it():
    x = torch.randn(2, 20, 8)
    expected = rg.attend(x, x, x).output
    for mask in (masks.window(2**62, 2**62), masks.prefix(2**62), masks.padding(torch.full((2,), 2**63 - 1))):
        for plan in ("auto", "tiled", "fused"):
            torch.testing.assert_close(rg.attend(x, x, x, mask=mask, plan=plan).output, expected)


@pytest.mark.plain
def test_integers_that_torch_cannot_compare_are_refused_in_words():
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        with pytest.raises(MaskError, match=r"must be a tensor of integers .*but it is a tensor of torch.uint"):
            masks.padding(torch.ones(2, dtype=dtype))
        with pytest.raises(MaskError, match="segments"):
            masks.segments(torch.ones(20, dtype=dtype))
