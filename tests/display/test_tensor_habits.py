"""Weights as people use tensors: sum, max, argmax, arrays, heads, and advice where there is no such method."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from strategies import NORMALISERS, Problem, problems

import regard as rg
from regard import masks, normalisers, scores
from regard.errors import AxisError, ChoiceError, PositionError, ShapeError, TooLargeError

ANY = problems(normaliser=tuple(NORMALISERS))


# Laws: what the lazy answer says is what the whole matrix says


@settings(max_examples=30)
@given(ANY)
def test_sum_max_and_argmax_are_those_of_the_matrix(problem: Problem):
    weights = problem.weights()
    dense = weights.dense()
    torch.testing.assert_close(weights.sum(-1), dense.sum(-1))
    torch.testing.assert_close(weights.sum(-2, keepdim=True), dense.sum(-2, keepdim=True))
    torch.testing.assert_close(weights.sum(), dense.sum())
    largest = weights.max(-1, keepdim=True)
    torch.testing.assert_close(largest.values, dense.amax(-1, keepdim=True))
    torch.testing.assert_close(weights.max(), dense.max())
    # Of two weights that differ by a rounding error, either may be the largest.
    torch.testing.assert_close(dense.gather(-1, largest.indices), largest.values)
    assert torch.equal(weights.argmax(-1), largest.indices.squeeze(-1))
    assert (weights.argmax(-1)[weights.empty_rows()] == 0).all()
    torch.testing.assert_close(dense.flatten()[weights.argmax()], dense.max())


@settings(max_examples=30)
@given(ANY)
def test_a_head_and_a_sequence_are_those_of_the_matrix(problem: Problem):
    weights = problem.weights()
    dense = weights.dense()
    for number in range(-1, weights.shape[-3] if weights.ndim > 2 else -1):
        part, wanted = weights.head(number), dense.select(-3, number)
        torch.testing.assert_close(part.dense(), wanted)
        torch.testing.assert_close(part.received(), wanted.sum(-2))
    for number in range(weights.shape[0] if weights.ndim > 3 else 0):
        part = weights.select(batch=number)
        torch.testing.assert_close(part.dense(), dense[number])
        torch.testing.assert_close(part.max(-1).values, dense[number].amax(-1))
        torch.testing.assert_close(weights.select(batch=number, head=1).dense(), dense[number, 1])
        torch.testing.assert_close(part.head(1).dense(), dense[number, 1])


def many_terms() -> dict[str, dict[str, Any]]:
    """Terms that have a number, a row or a table for each head or each sequence of weights (2, 6, 5, 7)."""
    generator = torch.Generator().manual_seed(3)
    normal = lambda *shape: torch.randn(shape, generator=generator)  # noqa: E731
    lengths = lambda *shape: torch.randint(0, 8, shape, generator=generator)  # noqa: E731
    return {
        "alibi": {"score": scores.scaled_dot() + scores.alibi(torch.rand(6, generator=generator))},
        "relative": {"score": scores.scaled_dot() + scores.relative(normal(6, 21), -10)},
        "softcap": {"score": scores.softcap(scores.scaled_dot() + scores.bias(normal(6, 5, 7)), 2.0)},
        "bias by batch": {"score": scores.scaled_dot() + scores.bias(normal(2, 1, 5, 7))},
        "bias by both": {"score": scores.dot() + scores.bias(normal(2, 6, 1, 7))},
        "padding": {"mask": masks.padding(lengths(2))},
        "padding by head": {"mask": masks.padding(lengths(2, 6)) | ~masks.window(1, 1, "top-left")},
        "padding of all": {"mask": masks.padding(lengths(1, 6))},
        "ranges": {"mask": masks.ranges(lengths(2, 5), lengths(2, 6, 5))},
        "segments": {"mask": masks.segments(lengths(2, 5) % 3, lengths(2, 7) % 3)},
        "table": {"mask": masks.allow(normal(6, 5, 7) > 0)},
        "table by batch": {"mask": masks.hide(normal(2, 1, 1, 7) > 0), "normaliser": normalisers.sigmoid(0.3)},
        "drawn": {"normaliser": normalisers.hard(sample=True, generator=generator)},
        "chosen": {"mask": masks.padding(lengths(2, 6)), "normaliser": normalisers.hard()},
    }


@pytest.mark.parametrize("key_heads", [6, 3, 1])
@pytest.mark.parametrize("name", many_terms())
def test_terms_are_cut_to_a_head_and_a_sequence(name, key_heads):
    terms = many_terms()[name]
    weights = rg.Weights(torch.randn(2, 6, 5, 8), torch.randn(2, key_heads, 7, 8), **terms)
    dense = weights.dense()
    for head in range(6):
        torch.testing.assert_close(weights.head(head).dense(), dense[:, head])
        torch.testing.assert_close(weights.select(batch=1, head=head).dense(), dense[1, head])
    for batch in range(2):
        torch.testing.assert_close(weights.select(batch=batch).dense(), dense[batch])


def test_what_broadcasts_is_cut_as_it_broadcasts():
    weights = rg.Weights(torch.randn(3, 1, 5, 8), torch.randn(4, 7, 8), mask=masks.padding(torch.tensor([2, 0, 7])))
    dense = weights.dense()
    torch.testing.assert_close(weights.head(2).dense(), dense[:, 2])
    torch.testing.assert_close(weights.select(batch=2, head=3).dense(), dense[2, 3])


def test_a_part_is_lazy_and_knows_what_was_answered():
    query = torch.randn(2, 4, 5, 8)
    weights = rg.Weights(query, torch.randn(2, 2, 7, 8))
    assert weights.head(3).query.data_ptr() == query[:, 3].data_ptr(), "a view, not a copy"
    entropy = weights.entropy()
    part = weights.select(batch=1, head=2)
    assert torch.equal(part.entropy(), entropy[1, 2])
    torch.testing.assert_close(part.top(3).values, weights.dense()[1, 2].topk(3).values)
    query.zero_()
    with pytest.raises(rg.errors.StaleWeightsError, match="query"):
        part.entropy()


def test_gradients_flow_through_a_part_and_not_through_what_is_detached():
    query = torch.randn(2, 4, 5, 8, requires_grad=True)
    weights = rg.Weights(query, torch.randn(2, 4, 7, 8))
    weights.head(1).entropy().sum().backward()
    assert query.grad is not None
    assert query.grad[:, 1].abs().sum() > 0
    assert query.grad[:, 0].abs().sum() == 0
    assert not (weights.detach() @ torch.randn(7, 3)).requires_grad


# Ties, empty rows, NaN


def test_among_equals_the_first_key_is_the_largest():
    weights = rg.Weights(torch.zeros(3, 8), torch.randn(200, 8), mask=masks.prefix(150))
    assert weights.argmax(-1).tolist() == [0, 0, 0]
    saturated = rg.Weights(
        torch.ones(1, 1), torch.linspace(50, 90, 300)[:, None], normaliser=normalisers.sigmoid()
    )  # all 1.0
    assert saturated.argmax(-1).tolist() == saturated.dense().argmax(-1).tolist() == [0]


def test_a_query_that_sees_nothing_has_sum_0_and_largest_key_0():
    weights = rg.Weights(torch.randn(2, 8), torch.randn(5, 8), mask=masks.padding(torch.tensor(0)))
    assert weights.sum(-1).tolist() == [0, 0]
    assert weights.max(-1).values.tolist() == [0, 0]
    assert weights.argmax(-1).tolist() == [0, 0]


def test_nan_that_is_attended_shows():
    query = torch.randn(3, 8)
    query[1] = torch.nan
    weights = rg.Weights(query, torch.randn(20, 8))
    assert weights.sum(-1).isnan().tolist() == weights.max(-1).values.isnan().tolist() == [False, True, False]


def test_without_keys_there_is_no_largest():
    weights = rg.Weights(torch.randn(3, 8), torch.randn(0, 8))
    assert weights.sum(-1).tolist() == [0, 0, 0]
    with pytest.raises(ShapeError, match="max needs keys"):
        weights.max(-1)


# Arrays


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_small_weights_become_arrays_and_tensors(dtype):
    weights = rg.Weights(torch.randn(2, 5, 8, dtype=dtype), torch.randn(2, 7, 8, dtype=dtype))
    dense = weights.dense()
    assert torch.equal(torch.as_tensor(weights), dense)
    assert torch.equal(torch.from_dlpack(weights), dense)
    assert np.array_equal(np.asarray(weights), dense.float().numpy() if dtype == torch.bfloat16 else dense.numpy())
    assert np.asarray(weights, dtype=np.float64).dtype == np.float64
    assert weights.detach().cpu().numpy().shape == (2, 5, 7)
    torch.testing.assert_close(weights.head(0).T.dense(), dense[0].T)


def test_an_array_is_always_a_copy():
    with pytest.raises(ValueError, match="leave out copy=False"):
        np.array(rg.Weights(torch.eye(3), torch.eye(3)), copy=False)


# What is typed, and what is shown


def long_weights() -> rg.Weights:
    return rg.Weights(torch.zeros(2, 12, 50_000, 1), torch.zeros(2, 12, 50_000, 1))


@pytest.mark.parametrize(
    ("typed", "error", "shown"),
    [
        ("weights.T", AttributeError, "weights.mT"),
        ("weights.numpy()", TooLargeError, r"240,000,000,000 bytes.*heatmap\(\).*top\(k\).*received\(\)"),
        ("np.asarray(weights)", TooLargeError, r"np.asarray\(weights\) would build.*heatmap"),
        ("torch.as_tensor(weights)", TooLargeError, r"torch.as_tensor\(weights\) would build.*heatmap"),
        ("weights.mean(1)", AttributeError, r"weights.heatmap\(\).mean"),
        ("weights.topk(5)", AttributeError, r"weights.top\(k\)"),
        ("weights.size()", AttributeError, "weights.shape"),
        ("weights.transpose(1, 2)", AttributeError, "weights.mT"),
        ("weights.tolist()", AttributeError, r"weights\[..., :10, :10\]"),
        ("weights.cuda()", AttributeError, r"query.to\(...\)"),
        ("weights.tanh()", AttributeError, r"weights.dense\(\)"),
        ("weights.entropi", AttributeError, "did you mean 'entropy'"),
        ("weights.anything", AttributeError, r"help\(weights\)"),
        ("weights.sum(1)", ChoiceError, r"50000 x 50000 numbers.*weights.head\(0\).sum\(-1\).*heatmap\(\).sum\(1\)"),
        ("weights.max(-2)", ChoiceError, "pool='max'"),
        ("weights.argmax(2)", ChoiceError, "pool='max'"),
        ("weights.sum(4)", AxisError, "dim is 4"),
        ("weights.sum('keys')", ChoiceError, "whole number"),
        ("weights.head(12)", PositionError, "head 12 is not there.* have 12"),
        ("weights.head(1.5)", ChoiceError, "whole number"),
        ("weights.select(batch=-3)", PositionError, "batch -3 is not there"),
        ("weights.head(0).select(batch=0).head(0)", ShapeError, "one matrix"),
        ("weights.head(0).select(batch=0, head=0)", ShapeError, "two axes"),
    ],
)
def test_what_is_refused_says_what_to_ask(typed, error, shown):
    weights = long_weights()
    with pytest.raises(error, match=shown):
        eval(typed, {"weights": weights, "np": np, "torch": torch})  # noqa: S307  our own text


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("weights.head(5).shape", "torch.Size([2, 50000, 50000])"),
        ("weights.select(batch=0, head=-1).shape", "torch.Size([50000, 50000])"),
        ("weights.select(batch=1).T", None),
        ("weights.select(batch=1, head=3).T.shape", "torch.Size([50000, 50000])"),
        ("weights.cpu() is weights", "True"),
        ("weights.detach().shape", "torch.Size([2, 12, 50000, 50000])"),
        ("hasattr(weights, 'T'), hasattr(weights, 'mean'), hasattr(weights, 'mT')", "(False, False, True)"),
        ("len(repr(weights)) < 120", "True"),
    ],
)
def test_what_is_lazy_costs_nothing_at_any_length(typed, shown):
    weights = long_weights()
    if shown is None:
        with pytest.raises(AttributeError, match="mT"):
            eval(typed, {"weights": weights})  # noqa: S307
        return
    assert repr(eval(typed, {"weights": weights})) == shown  # noqa: S307


def test_every_advice_names_what_weights_have():
    """A method of weights that is renamed must be renamed in the advice."""
    import re

    from regard.display import tensor_habits

    for names, advice in tensor_habits.ADVICE.items():
        assert not [name for name in names.split() if name in dir(rg.Weights) and name != "T"]
        for word in re.findall(r"weights\.(\w+)", advice):
            assert hasattr(rg.Weights, word), advice
