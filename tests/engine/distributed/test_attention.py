"""Attention on shards equals attention on one process: outputs and all gradients, in float64 to 1e-12."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ranks import Ranks
from sharded_cases import NORMALISERS, TOLERANCE, attend_error, make_masks, make_scores, second_derivative

LAYOUTS = ("contiguous", "zigzag", "balanced")
MASKS, SCORES = list(make_masks(8, 8)), list(make_scores(8, 8))


@pytest.fixture(scope="module")
def pair():
    with Ranks(2) as ranks:
        yield ranks


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def group(request):
    with Ranks(request.param) as ranks:
        yield ranks


def assert_close(ranks, *args, tolerance=TOLERANCE, **options):
    names = ("n", "m", "mask", "score", "normaliser", "layout", "plan", "shared", "dtype", "dropout", "poison")
    defaults = {"mask": "none", "layout": "contiguous", "plan": "auto", "shared": "", "dtype": "float64"}
    given = {
        **defaults,
        "score": None,
        "normaliser": None,
        "dropout": 0.0,
        "poison": False,
        **dict(zip(names, args, strict=False)),
    }
    for errors in ranks.run(attend_error, *({**given, **options}[name] for name in names)):
        assert max(errors.values()) < 20 * tolerance, errors


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", ["causal", "documents", "sinks"])
def test_two_ranks_equal_one_process(pair, mask, layout):
    assert_close(pair, 37, 37, mask, layout=layout)


@pytest.mark.parametrize("score", ["general", "learned bias", "alibi", "kernel"])
def test_scores_go_by_position_and_learn_on_two_ranks(pair, score):
    assert_close(pair, 19, 19, "causal", score, layout="zigzag")


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_normalisers_on_two_ranks(pair, normaliser):
    assert_close(pair, 19, 19, "documents", None, normaliser, "zigzag", "ring")


@pytest.mark.parametrize("shared", ["query", "keys"])
def test_one_side_is_whole_on_every_rank(pair, shared):
    assert_close(pair, 13, 29, "causal", shared=shared)


def test_shards_may_be_empty(pair):
    assert_close(pair, 1, 1, "none")


def test_dropout_does_not_depend_on_the_number_of_ranks(pair):
    assert_close(pair, 19, 19, "causal", layout="zigzag", dropout=0.3)


def test_hidden_nan_and_inf_reach_neither_output_nor_gradients(pair):
    assert_close(pair, 37, 37, "empty rows", layout="zigzag", poison=True)
    assert_close(pair, 37, 37, "empty rows", None, "sparsemax", poison=True)


def test_second_derivative_is_refused_in_words(pair):
    for message in pair.run(second_derivative):
        assert "once, not twice" in message


def test_half_precision(pair):
    assert_close(pair, 19, 19, "causal", dtype="bfloat16", tolerance=2e-3)


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("n", "m"), [(37, 37), (23, 41)])
def test_every_mask(group, mask, layout, n, m):
    if layout == "balanced" and (n != m or mask == "none"):
        pytest.skip("a balanced layout is that of a mask of self-attention")
    assert_close(group, n, m, mask, layout=layout)


@pytest.mark.long
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("n", "m"), [(37, 37), (23, 41)])
def test_every_score(group, score, n, m):
    for mask in ("none", "causal", "documents"):
        assert_close(group, n, m, mask, score, layout="zigzag")


@pytest.mark.long
@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("mask", ["none", "causal", "documents", "empty rows", "sparse"])
def test_every_normaliser(group, normaliser, mask):
    for plan in ("ring", "heads") if len(group.pipes) in (1, 3) else ("ring",):
        assert_close(group, 37, 37, mask, None, normaliser, "zigzag", plan)


@pytest.mark.long
@pytest.mark.parametrize("shared", ["query", "keys"])
@pytest.mark.parametrize("normaliser", [None, *NORMALISERS])
def test_whole_sides(group, shared, normaliser):
    if (shared, normaliser) == ("query", "drawn") and len(group.pipes) > 1:
        with pytest.raises(RuntimeError, match="shard the queries too"):
            assert_close(group, 13, 29, "none", None, normaliser, "zigzag", shared=shared)
        return
    for mask in ("none", "causal", "documents"):
        assert_close(group, 13, 29, mask, None, normaliser, "zigzag", shared=shared)


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(n=st.integers(1, 70), mask=st.sampled_from(MASKS), layout=st.sampled_from(LAYOUTS[:2]))
def test_random_lengths(group, n, mask, layout):
    assert_close(group, n, n, mask, layout=layout)


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (3, 3), (5, 5), (5, 2), (64, 64), (129, 129)])
def test_uneven_and_empty_shards(group, n, m):
    for layout in ("contiguous", "zigzag"):
        for mask in ("none", "causal"):
            assert_close(group, n, m, mask, layout=layout)
