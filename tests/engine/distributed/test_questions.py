"""Questions to weights over several processes have the answers that one process gives."""

import pytest
from ranks import Ranks
from sharded_cases import TOLERANCE, question_errors, row_gradient_errors

CASES = [
    ("none", None, None),
    ("documents", None, None),
    ("empty rows", "alibi", None),
    ("causal", None, "sparsemax"),
    ("causal", None, "sigmoid"),
    ("causal", "general", None),
    ("none", None, "entmax15"),
    ("causal", None, "hard"),
]


@pytest.fixture(scope="module")
def pair():
    with Ranks(2) as ranks:
        yield ranks


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def group(request):
    with Ranks(request.param) as ranks:
        yield ranks


def assert_answers(ranks, *args):
    for errors in ranks.run(question_errors, *args):
        wrong = {name: error for name, error in errors.items() if not error < 20 * TOLERANCE}
        assert not wrong


def test_questions_on_two_ranks(pair):
    assert_answers(pair, 37, 37, "documents", None, None, "zigzag")


def test_gradients_of_row_questions_on_two_ranks(pair):
    for errors in pair.run(row_gradient_errors, 19, "documents", "general", None, "zigzag"):
        assert max(errors.values()) < 20 * TOLERANCE, errors


@pytest.mark.long
@pytest.mark.parametrize("normaliser", [None, "sparsemax", "entmax15"])
@pytest.mark.parametrize("score", [None, "general", "alibi", "gaussian"])
def test_gradients_of_row_questions(group, score, normaliser):
    for mask in ("none", "documents", "empty rows"):
        for errors in group.run(row_gradient_errors, 37, mask, score, normaliser, "zigzag"):
            # -log p of a weight just above the threshold has the digits of p, which is near 0 there
            limit = 20 * TOLERANCE if normaliser is None else 1e-8
            assert max(errors.values()) < limit, errors


@pytest.mark.long
@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
@pytest.mark.parametrize(("mask", "score", "normaliser"), CASES)
def test_questions(group, mask, score, normaliser, layout):
    for n, m in ((37, 37), (23, 41)):
        assert_answers(group, n, m, mask, score, normaliser, layout)


@pytest.mark.long
@pytest.mark.parametrize("shared", ["query", "keys"])
def test_questions_where_one_side_is_whole(group, shared):
    assert_answers(group, 23, 41, "causal", None, None, "contiguous", shared)
