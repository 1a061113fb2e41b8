"""Mergeable states: `merge` is associative, `empty` its identity, and however the matrix is cut the answer is one."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import normal, seeded
from torch import Tensor

from regard import normalisers
from regard.analysis import _reducers
from regard.engine import reducers
from regard.engine.reducers import Block, Reducer
from regard.operands import Size, Span
from regard.web.maps import pooling

LEAD, WIDTH = (2,), 3


class Matrix(NamedTuple):
    """Scores with hidden cells at -inf, their weights, and values to pool."""

    scores: Tensor
    weights: Tensor
    values: Tensor

    def __repr__(self) -> str:
        return f"Matrix(scores={self.scores})"

    @property
    def size(self) -> Size:
        return Size(*self.scores.shape[-2:], torch.device("cpu"))

    def block(self, rows: tuple[int, int], cols: tuple[int, int]) -> Block:
        part = [x[..., rows[0] : rows[1], cols[0] : cols[1]] for x in (self.scores, self.weights)]
        return Block(*part, Span(*rows), Span(*cols), self.size, ((0, cols[1] - cols[0]),), cols != (0, self.size.m))


class Law(NamedTuple):
    make: Callable[[Matrix], Reducer[Any]]
    answer: Callable[[Matrix], Tensor]


def chosen(x: Matrix) -> Tensor:
    """Two keys of every query, of which some are none."""
    n, m = x.size.n, x.size.m
    return (torch.arange(2 * n).reshape(n, 2) * 5 % (m + 1)) - 1


def at_chosen(x: Matrix) -> Tensor:
    place = chosen(x).expand(*x.weights.shape[:-1], 2)
    return x.weights.gather(-1, place.clamp_min(0)) * (place >= 0)


def marked(x: Matrix) -> Tensor:
    return torch.arange(x.size.m) % 3 == 1


LAWS = {
    "squared weight": Law(lambda x: reducers.SquaredWeight(), lambda x: reference.saturation(x.weights)),
    "surprise": Law(lambda x: reducers.Entropy(), lambda x: reference.entropy(x.weights)),
    "visible keys": Law(lambda x: reducers.VisibleKeys(), lambda x: (x.scores > -torch.inf).sum(-1)),
    "mean score": Law(
        lambda x: reducers.MeanScore(), lambda x: (x.weights * x.scores.where(x.scores > -torch.inf, 0)).sum(-1)
    ),
    "mean distance": Law(
        lambda x: reducers.MeanDistance(torch.arange(x.size.n).double()), lambda x: reference.distance(x.weights)
    ),
    "peak": Law(lambda x: reducers.PeakScore(), lambda x: x.scores.amax(-1)),
    "log-sum-exp": Law(lambda x: reducers.LogSumExp(), lambda x: torch.logsumexp(x.scores, -1)),
    "row statistic": Law(
        lambda x: pooling.RowStatistic(normalisers.softmax()), lambda x: torch.logsumexp(x.scores, -1)
    ),
    "sum and max pooling": Law(lambda x: pooling.SumMaxPooling(3), lambda x: in_squares(x.weights, 3)),
    "at chosen keys": Law(lambda x: _reducers.WeightAt(chosen(x)), at_chosen),
    "among marked keys": Law(
        lambda x: _reducers.WeightAmong(marked(x)[:, None]), lambda x: x.weights @ marked(x).double()
    ),
    "pool": Law(lambda x: reducers.Pool(x.values), lambda x: x.weights @ x.values),
    "top": Law(lambda x: reducers.Top(2), lambda x: best_two(x.weights)),
    "largest weight": Law(lambda x: reducers.LargestWeight(), lambda x: x.weights.amax(-1)),
    "received": Law(lambda x: reducers.Received(), lambda x: reference.received(x.weights)),
    **{
        f"{pool} heatmap": Law(
            lambda x, pool=pool: reducers.Heatmap(3, pool, x.size),
            lambda x, pool=pool: reference.heatmap(x.weights, 3, pool),
        )
        for pool in ("mean", "max", "sum")
    },
}


def in_squares(weights: Tensor, side: int) -> Tensor:
    rows = [strip.split(side, -1) for strip in weights.split(side, -2)]
    sums, peaks = (
        torch.stack([torch.stack([pool(cell) for cell in row], -1) for row in rows], -2)
        for pool in (lambda cell: cell.sum((-1, -2)), lambda cell: cell.amax((-1, -2)))
    )
    return torch.stack([sums, peaks], -3)


def best_two(weights: Tensor) -> Tensor:
    return torch.nn.functional.pad(weights, (0, 2)).sort(-1, descending=True).values[..., :2]


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    n, m = draw(st.sampled_from([(5, 7), (7, 5), (1, 11), (11, 3)]))
    g = seeded(draw(st.integers(0, 2**31)))
    scale = draw(st.sampled_from([1.0, 30.0]))
    hidden = torch.rand(*LEAD, n, m, generator=g) < draw(st.sampled_from([0.0, 0.4, 0.9]))
    scores = (scale * normal(g, *LEAD, n, m)).masked_fill(hidden, -torch.inf)
    return Matrix(scores, reference.softmax(scores, ~hidden), normal(g, *LEAD, m, WIDTH))


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Ranges that cover 0 .. size."""
    inner = draw(st.lists(st.integers(1, size - 1), max_size=3, unique=True)) if size > 1 else []
    places = [0, *sorted(inner), size]
    return list(itertools.pairwise(places))


def empty(reducer: Reducer[Any], x: Matrix) -> Any:
    return reducer.empty(LEAD, x.size.n, x.size, x.scores.dtype)


def same(one: Any, two: Any) -> None:
    torch.testing.assert_close(one, two, atol=1e-12, rtol=1e-10)


def parts(x: Matrix, reducer: Reducer[Any], cols: list[tuple[int, int]]) -> list[Any]:
    """One state for each cut, each from a start of its own."""
    return [reducer.step(empty(reducer, x), x.block((0, x.size.n), cut)) for cut in cols]


@pytest.mark.parametrize("name", list(LAWS))
@given(data=st.data())
def test_merge_is_associative_and_empty_is_its_identity(name: str, data: st.DataObject) -> None:
    x = data.draw(matrices())
    reducer = LAWS[name].make(x)
    states = parts(x, reducer, data.draw(cuts(x.size.m)))
    one, two, three = (states[i % len(states)] for i in range(3))
    same(reducer.merge(reducer.merge(one, two), three), reducer.merge(one, reducer.merge(two, three)))
    same(reducer.merge(empty(reducer, x), two), two)
    same(reducer.merge(two, empty(reducer, x)), two)


@given(matrices(), st.sampled_from(list(LAWS)), st.data())
def test_parts_merged_in_any_order_are_the_answer(x: Matrix, name: str, data: st.DataObject) -> None:
    reducer = LAWS[name].make(x)
    total = empty(reducer, x)
    for state in parts(x, reducer, data.draw(st.permutations(data.draw(cuts(x.size.m))))):
        total = reducer.merge(total, state)
    check_answer(reducer, total, LAWS[name].answer(x))


@given(matrices(), st.sampled_from(list(LAWS)), st.data())
def test_steps_over_any_cut_are_the_answer(x: Matrix, name: str, data: st.DataObject) -> None:
    reducer = LAWS[name].make(x)
    rows = [(0, x.size.n)] if reducer.by_row else data.draw(cuts(x.size.n))
    total = empty(reducer, x)
    for row in rows:
        for col in data.draw(cuts(x.size.m)):
            total = reducer.step(total, x.block(row, col))
    check_answer(reducer, total, LAWS[name].answer(x))


def check_answer(reducer: Reducer[Any], state: Any, expected: Tensor) -> None:
    found = reducer.finish(state)
    values = found[0] if isinstance(found, tuple) else found
    torch.testing.assert_close(values.double(), expected.double(), atol=1e-10, rtol=1e-10)


@given(matrices(), st.data())
def test_among_equals_the_first_key_is_on_top(x: Matrix, data: st.DataObject) -> None:
    level = x._replace(scores=x.scores.round(), weights=reference.softmax(x.scores.round(), x.scores > -torch.inf))
    reducer = reducers.Top(x.size.m)
    total = empty(reducer, x)
    for state in parts(level, reducer, data.draw(st.permutations(data.draw(cuts(x.size.m))))):
        total = reducer.merge(total, state)
    order = level.scores.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(reducer.finish(total)[1].long(), order.indices.where(order.values > -torch.inf, -1))


def test_every_reducer_has_a_law() -> None:
    tested = {type(law.make(Matrix(*(torch.zeros(1, 2, 2),) * 3))) for law in LAWS.values()}
    assert concrete(Reducer) == tested


def concrete(base: type) -> set[type]:
    below = {c for child in base.__subclasses__() for c in concrete(child)}
    return below or {base}
