"""Laws: what must hold for every attention, tried on random terms, shapes and plans."""

from collections.abc import Callable
from typing import Any

import entmax
import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    MASKS,
    NORMALISERS,
    PLANS,
    SCORES,
    Problem,
    Sizes,
    normal,
    problem,
    problems,
    seeded,
    served,
    shapes,
)
from torch import Tensor

import regard as rg
from regard import masks, normalisers, scores

DISTRIBUTIONS = tuple(name for name, case in NORMALISERS.items() if case.distribution)
budgets = st.sampled_from([1, 50, 200, 1 << 10, 3000, 1 << 12, 1 << 14, 1 << 20])  # in bytes: down to one score a tile
plans = st.sampled_from(["auto", *PLANS])
smooth_scores = [name for name in SCORES if not name.startswith("kernel")]


def close(actual: Tensor, expected: Tensor, atol: float = 1e-9) -> None:
    assert actual.shape == expected.shape
    torch.testing.assert_close(actual.double(), expected.double(), atol=atol, rtol=1e-9)


def weights_by(p: Problem, plan: str, **more: Any) -> Any:
    """The weights of a problem by a plan; by "auto" where the fused kernel need not serve it and refuses."""
    weights = served(p.fused or plan != "fused", lambda: p.weights(plan=plan, **more))
    return p.weights(**more) if weights is None else weights


def attend_by(p: Problem, plan: str) -> Any:
    """Output and weights of a problem by a plan; by "auto" where the fused kernel need not serve it and refuses."""
    answer = served(p.fused or plan != "fused", lambda: p.attend(plan=plan))
    return p.attend() if answer is None else answer


# --- distributions


@given(problems(normaliser=DISTRIBUTIONS), plans)
def test_rows_sum_to_one_or_zero(p: Problem, plan: str) -> None:
    weights = weights_by(p, plan)
    dense = weights.dense()
    assert (dense >= 0).all()
    close(dense.sum(-1), (~weights.empty_rows()).double())


@given(problems(normaliser=tuple(NORMALISERS)), plans)
def test_weights_are_the_formula(p: Problem, plan: str) -> None:
    weights = weights_by(p, plan)
    close(weights.dense(), p.answer().weights, atol=1e-8)


@given(problems(normaliser=tuple(NORMALISERS)), plans)
def test_output_is_the_formula(p: Problem, plan: str) -> None:
    answer = attend_by(p, plan)
    close(answer.output, p.answer().output, atol=1e-8)


@given(problems(normaliser=tuple(NORMALISERS)), plans)
def test_weights_times_values_is_the_output(p: Problem, plan: str) -> None:
    answer = attend_by(p, plan)
    close(answer.weights @ p.v, answer.output)
    close(weights_by(p, plan) @ p.v, answer.output)


@given(problems(score=smooth_scores, normaliser=DISTRIBUTIONS), st.floats(-50, 50))
def test_a_constant_added_to_a_row_changes_nothing(p: Problem, shift: float) -> None:
    terms = p.terms()
    row = scores.bias(shift + normal(seeded(1), p.sizes.n, 1))
    moved = rg.attend(p.q, p.k, p.v, **terms | {"score": terms["score"] + row})
    close(moved.output, p.attend().output, atol=1e-7)


BIASES = {
    "cells and rows": [(17, 19), (17, 1)],
    "keys and cells": [(1, 19), (17, 19)],
    "keys twice": [(1, 19), (1, 19)],
    "one for all and heads": [(1, 1), (3, 1, 1), (2, 1, 1, 19)],
}


@pytest.mark.parametrize("modifier", ["nothing", "alibi"])
@pytest.mark.parametrize("shape", list(BIASES))
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_biases_add_up(modifier: str, shape: str, learned: bool, plan: str) -> None:
    q, k, v = (normal(seeded(i), 2, 3, length, 5) for i, length in enumerate((17, 19, 19)))
    parts = [normal(seeded(7 + i), *size).requires_grad_(learned) for i, size in enumerate(BIASES[shape])]
    score, total = scores.scaled_dot(), reference.scaled_dot(q, k)
    if modifier == "alibi":
        slopes = torch.tensor([0.1, 0.5, 2.0], dtype=torch.float64)
        score, total = score + scores.alibi(slopes), total + reference.alibi(17, 19, slopes)
    for part in parts:
        score, total = score + scores.bias(part), total + part
    answer = served(plan != "fused", lambda: rg.attend(q, k, v, score=score, plan=plan)) or rg.attend(q, k, v, score)
    close(answer.output, torch.softmax(total, -1) @ v)
    close(answer.weights.dense(), torch.softmax(total, -1))


# --- order


@given(shapes(), st.sampled_from(["dot", "cosine", "gaussian", "additive", "uniform"]), st.sampled_from(DISTRIBUTIONS))
def test_shuffled_keys_shuffle_the_weights(sizes: Any, score: str, normaliser: str) -> None:
    p = problem(score, "nothing", normaliser, sizes)
    order = torch.randperm(p.sizes.m, generator=seeded(2))
    terms = p.terms()
    output, weights = rg.attend(p.q, p.k[..., order, :], p.v[..., order, :], **terms)
    if (score, normaliser) != ("uniform", "hard"):  # hard picks the first of equals
        close(output, p.attend().output)
        close(weights.dense(), p.weights().dense()[..., order])


@given(
    shapes(), st.sampled_from(["dot", "cosine", "gaussian", "additive", "location"]), st.sampled_from(list(NORMALISERS))
)
def test_shuffled_queries_shuffle_the_rows(sizes: Any, score: str, normaliser: str) -> None:
    p = problem(score, "prefix", normaliser, sizes)
    order = torch.randperm(p.sizes.n, generator=seeded(2))
    output, weights = rg.attend(p.q[..., order, :], p.k, p.v, **p.terms())
    close(output, p.attend().output[..., order, :])
    close(weights.entropy() if p.normaliser.distribution else weights.dense().sum(-1), row_total(p)[..., order])


def row_total(p: Problem) -> Tensor:
    return p.weights().entropy() if p.normaliser.distribution else p.weights().dense().sum(-1)


# --- plans


@given(problems(normaliser=tuple(NORMALISERS)), budgets)
def test_any_tile_is_one_tile(p: Problem, budget: int) -> None:
    output, weights = p.attend(plan="tiled", budget=budget)
    one = p.attend(plan="dense")
    close(output, one.output)
    close(weights.received(), one.weights.dense().sum(-2))
    close(weights @ p.v, one.output)


QUESTIONS: dict[str, Callable[[Any, Problem], Tensor]] = {
    "entropy": lambda w, p: w.entropy(),
    "saturation": lambda w, p: w.saturation(),
    "received": lambda w, p: w.received(),
    "distance": lambda w, p: w.distance(positions(p)),
    "mass": lambda w, p: w.mass(groups(p)),
    "top": lambda w, p: w.top(3).values,
    "heatmap": lambda w, p: w.heatmap(4),
    "max heatmap": lambda w, p: w.heatmap(5, pool="max"),
    "sum heatmap": lambda w, p: w.heatmap(3, pool="sum"),
    "empty_rows": lambda w, p: w.empty_rows(),
}


def positions(p: Problem) -> Tensor:
    return torch.arange(p.sizes.n) * 2 - 3


def groups(p: Problem) -> Tensor:
    return torch.arange(p.sizes.m) % 3 - 1


@given(
    problems(normaliser=DISTRIBUTIONS),
    st.sampled_from(list(QUESTIONS)),
    st.sampled_from(["tiled", "fused", "auto"]),
    budgets,
)
def test_questions_agree_across_plans(p: Problem, question: str, plan: str, budget: int) -> None:
    weights = weights_by(p, plan, budget=budget)
    close(QUESTIONS[question](weights, p), QUESTIONS[question](weights_by(p, "dense"), p), atol=1e-8)


# --- questions against the whole matrix


@given(problems(normaliser=DISTRIBUTIONS), plans)
def test_entropy_and_saturation_equal_the_reference(p: Problem, plan: str) -> None:
    weights = weights_by(p, plan)
    dense = p.answer().weights
    close(weights.entropy(), reference.entropy(dense), atol=1e-8)
    close(weights.saturation(), reference.saturation(dense), atol=1e-8)
    assert (weights.entropy() >= 0).all()


@given(problems(normaliser=tuple(NORMALISERS)), plans)
def test_received_and_empty_rows_equal_the_reference(p: Problem, plan: str) -> None:
    weights = weights_by(p, plan)
    answer = p.answer()
    close(weights.received(), reference.received(answer.weights), atol=1e-8)
    assert torch.equal(weights.empty_rows(), ~(answer.visible & (answer.scores > -torch.inf)).any(-1))


@given(problems(score=smooth_scores), plans)
def test_logsumexp_equals_the_reference(p: Problem, plan: str) -> None:
    weights = weights_by(p, plan)
    answer = p.answer()
    close(weights.logsumexp(), reference.logsumexp(answer.scores, answer.visible))


@given(problems(normaliser=DISTRIBUTIONS), plans, st.booleans())
def test_distance_equals_the_reference(p: Problem, plan: str, own: bool) -> None:
    weights = weights_by(p, plan)
    where = positions(p) if own or p.sizes.n != p.sizes.m else None
    close(weights.distance(where), reference.distance(p.answer().weights, where), atol=1e-7)


@given(problems(normaliser=tuple(NORMALISERS)), plans, st.integers(0, 1), st.integers(0, 2**31))
def test_mass_of_groups_equals_the_reference(p: Problem, plan: str, lead: int, seed: int) -> None:
    weights = weights_by(p, plan)
    ids = torch.randint(-1, 4, (*p.sizes.lead[:lead], p.sizes.m), generator=seeded(seed))
    ids[..., 0] = 3
    close(weights.mass(ids), reference.mass(p.answer().weights, ids), atol=1e-8)


@given(problems(normaliser=DISTRIBUTIONS), plans, st.integers(1, 25))
def test_top_holds_the_largest_weights(p: Problem, plan: str, k: int) -> None:
    weights = weights_by(p, plan)
    answer, top = p.answer(), weights.top(k)
    seen = (answer.visible & (answer.scores > -torch.inf)).sum(-1, keepdim=True)
    assert torch.equal(top.indices >= 0, (torch.arange(k) < seen).expand(top.indices.shape))
    best = torch.nn.functional.pad(answer.weights, (0, k)).sort(-1, descending=True).values[..., :k]
    close(top.values, best, atol=1e-8)
    picked = answer.weights.gather(-1, top.indices.clamp(min=0))
    close(torch.where(top.indices >= 0, picked, 0), best, atol=1e-8)


@given(problems(), st.integers(2, 25))
def test_top_names_each_key_once(p: Problem, k: int) -> None:
    indices = p.weights().top(k).indices
    ordered = indices.sort(-1).values
    assert ((ordered[..., 1:] != ordered[..., :-1]) | (ordered[..., 1:] == -1)).all()
    visible = p.visible.expand(*p.sizes.lead, p.sizes.n, p.sizes.m)
    assert (visible.gather(-1, indices.clamp(min=0)) | (indices == -1)).all()


@given(st.integers(1, 300), st.integers(1, 9), st.sampled_from(["auto", "dense", "tiled"]))
def test_the_key_that_hard_attention_picks_is_on_top_of_its_equals(m: int, k: int, plan: str) -> None:
    top = rg.Weights(torch.zeros(3, 2), torch.zeros(m, 2), normaliser=normalisers.hard(), plan=plan).top(k)
    assert top.indices[:, 0].tolist() == [0, 0, 0]
    assert top.values.sum(-1).tolist() == [1, 1, 1]


@given(problems(normaliser=tuple(NORMALISERS)), plans, st.integers(1, 30), st.sampled_from(["mean", "max", "sum"]))
def test_heatmap_equals_the_reference(p: Problem, plan: str, bins: int, pool: str) -> None:
    weights = weights_by(p, plan)
    close(weights.heatmap(bins, pool=pool), reference.heatmap(p.answer().weights, bins, pool), atol=1e-8)


@given(problems(score=["dot", "gaussian"]))
def test_heatmap_has_256_mean_bins_by_default(p: Problem) -> None:
    close(p.weights().heatmap(), reference.heatmap(p.answer().weights, 256, "mean"), atol=1e-8)


# --- the lazy matrix as a matrix


@given(problems(normaliser=tuple(NORMALISERS)), plans, st.integers(1, 5))
def test_transposed_product_equals_the_dense_one(p: Problem, plan: str, columns: int) -> None:
    weights = weights_by(p, plan)
    x = normal(seeded(4), *p.sizes.lead, p.sizes.n, columns)
    assert weights.mT.shape == (*p.sizes.lead, p.sizes.m, p.sizes.n)
    close(weights.mT @ x, p.answer().weights.mT @ x, atol=1e-8)


def one_axis(size: int) -> st.SearchStrategy[Any]:
    whole = st.integers(-size, size - 1)
    ends = st.none() | st.integers(-size - 2, size + 2)
    slices = st.builds(slice, ends, ends, st.none() | st.integers(1, 4))
    tensors = st.lists(whole, min_size=1, max_size=5).map(torch.tensor)
    return whole | slices | tensors | tensors.map(lambda t: t[:, None])


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Problem, tuple[Any, ...]]:
    p = draw(problems(normaliser=DISTRIBUTIONS))
    row, column = draw(one_axis(p.sizes.n)), draw(one_axis(p.sizes.m))
    if isinstance(row, Tensor) and isinstance(column, Tensor):
        column = column.flatten()[:1] if draw(st.booleans()) else column.flatten()[:1].expand(row.shape)
    return p, (..., row, column)


@given(blocks(), plans)
def test_a_block_is_a_block_of_the_dense_matrix(case: tuple[Problem, tuple[Any, ...]], plan: str) -> None:
    p, index = case
    weights = weights_by(p, plan)
    close(weights[index], p.answer().weights[index], atol=1e-8)


@given(blocks())
def test_a_block_of_the_transposed(case: tuple[Problem, tuple[Any, ...]]) -> None:
    p, (dots, row, column) = case
    close(p.weights().mT[dots, column, row], p.answer().weights.mT[dots, column, row], atol=1e-8)


@given(problems(mask=["nothing", "padding", "segments", "allow"]), st.data())
def test_leading_axes_are_indexed_too(p: Problem, data: st.DataObject) -> None:
    axes = (*p.sizes.lead, p.sizes.n, p.sizes.m)
    plain = [st.integers(-size, size - 1) | st.just(slice(None)) | st.just(slice(1, None, 2)) for size in axes]
    index = tuple(data.draw(axis) for axis in plain[: data.draw(st.integers(1, len(axes)))])
    close(p.weights()[index], p.answer().weights[index], atol=1e-8)


# --- masks


@st.composite
def two_masks(draw: st.DrawFn) -> tuple[Problem, Any, Tensor, Any, Tensor]:
    kinds = [name for name, case in MASKS.items() if name != "nothing" and not case.square]
    sizes, seed = draw(shapes()), draw(st.integers(0, 2**31))
    p = problem("scaled_dot", "nothing", "softmax", sizes, seed)
    (a, seen_a), (b, seen_b) = (MASKS[draw(st.sampled_from(kinds))].build(p.sizes, seeded(seed + i)) for i in (1, 2))
    return p, a, seen_a, b, seen_b


def seen(p: Problem, mask: Any, plan: str = "auto") -> Tensor:
    return rg.Weights(p.q, p.k, score=scores.uniform(), mask=mask, plan=plan).dense() > 0


@given(two_masks(), st.sampled_from(["auto", "dense", "tiled"]))
def test_mask_algebra_is_boolean_algebra(case: tuple[Problem, Any, Tensor, Any, Tensor], plan: str) -> None:
    p, a, seen_a, b, seen_b = case
    shape = (*p.sizes.lead, p.sizes.n, p.sizes.m)
    assert torch.equal(seen(p, a & b, plan), (seen_a & seen_b).expand(shape))
    assert torch.equal(seen(p, a | b, plan), (seen_a | seen_b).expand(shape))
    assert torch.equal(seen(p, ~a, plan), (~seen_a).expand(shape))


@given(two_masks())
def test_de_morgan(case: tuple[Problem, Any, Tensor, Any, Tensor]) -> None:
    p, a, _, b, _ = case
    assert torch.equal(seen(p, ~(a & b)), seen(p, ~a | ~b))
    assert torch.equal(seen(p, ~(a | b)), seen(p, ~a & ~b))
    assert torch.equal(seen(p, ~~a), seen(p, a))


@given(
    problems(
        mask=["nothing"],
        score=["dot", "cosine", "gaussian", "additive", "kernel biweight"],
        normaliser=tuple(NORMALISERS),
    ),
    plans,
)
def test_a_hidden_key_is_an_absent_key(p: Problem, plan: str) -> None:
    keep = torch.rand(p.sizes.m, generator=seeded(5)) < 0.6
    hidden = p._replace(mask=masks.hide(~keep[None, :]), fused=False)
    absent = p._replace(k=p.k[..., keep, :], v=p.v[..., keep, :])
    answer = attend_by(hidden, plan)
    close(answer.output, absent.attend().output)
    close(answer.weights[..., :, keep.nonzero().flatten()], absent.weights().dense())


LOWER = torch.ones(17, 17).tril(-1) > 0
TWINS = {
    "prefix": [{"mask": masks.prefix(count)} for count in (3, 9)],
    "window": [{"mask": masks.window(left, 0)} for left in (1, 4)],
    "polarity": [{"mask": masks.allow(LOWER)}, {"mask": masks.hide(LOWER)}],
    "not": [{"mask": masks.prefix(3)}, {"mask": ~masks.prefix(3)}],
    "cells": [{"mask": masks.allow(cells)} for cells in (LOWER, LOWER.mT)],
    "lengths": [{"mask": masks.padding(torch.tensor(length))} for length in (3, 9)],
    "scale": [{"score": scores.scaled_dot(scale)} for scale in (0.1, 3.0)],
    "temperature": [{"score": scores.cosine(temperature)} for temperature in (0.1, 3.0)],
    "cap": [{"score": scores.softcap(scores.dot(), cap)} for cap in (0.1, 3.0)],
    "width": [{"score": scores.gaussian(w)} for w in (0.1, 3.0)],
    "bandwidth": [{"score": scores.kernel("triangular", h)} for h in (5.0, 9.0)],
    "kernel": [{"score": scores.kernel(name, 9.0)} for name in ("biweight", "cosine")],
    "sigmoid": [{"normaliser": normalisers.sigmoid(bias)} for bias in (0.0, 2.0)],
    "normaliser": [{"normaliser": normaliser()} for normaliser in (normalisers.sparsemax, normalisers.entmax15)],
}


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
@pytest.mark.parametrize("what", list(TWINS))
def test_a_plan_remembered_from_the_last_call_does_not_remember_its_numbers(what: str, plan: str) -> None:
    q, k, v = (normal(seeded(i), 17, 5) for i in range(3))
    fresh = [rg.attend(q[None], k[None], v[None], **TWINS[what][0]).output[0]]
    fresh += [rg.attend(q[None, None], k[None, None], v[None, None], **TWINS[what][1]).output[0, 0]]
    assert (fresh[0] - fresh[1]).abs().max() > 1e-3
    for _ in range(2):
        for terms, expected in zip(TWINS[what], fresh, strict=True):
            close(rg.attend(q, k, v, plan=plan, **terms).output, expected)


# --- old friends


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.2, 5), st.integers(0, 2**31), plans)
def test_gaussian_attention_is_nadaraya_watson(n: int, m: int, w: float, seed: int, plan: str) -> None:
    x, train, y = (5 * torch.rand(size, 1, generator=seeded(seed + size), dtype=torch.float64) for size in (n, m, m))
    weighted = torch.exp(-(((x - train.T) * w) ** 2) / 2)
    score = scores.gaussian(w)
    answer = served(m >= 16 or plan != "fused", lambda: rg.attend(x, train, y, score, plan=plan))
    textbook = (weighted * y.T).sum(1) / weighted.sum(1)
    close((answer or rg.attend(x, train, y, score)).output[:, 0], textbook)


@given(shapes(), st.sampled_from(["sparsemax", "entmax15"]), st.floats(0.1, 10), st.integers(0, 2**31), budgets)
def test_sparse_normalisers_are_those_of_the_entmax_package(
    sizes: Any, name: str, sharp: float, seed: int, budget: int
) -> None:
    p = problem("scaled_dot", sizes=sizes, seed=seed)
    terms = {"score": scores.scaled_dot(sharp), "normaliser": getattr(normalisers, name)()}
    k = reference.repeat_heads(p.k, p.sizes.lead[-1] if p.sizes.lead else 1)
    expected = getattr(entmax, name)(sharp * p.q @ k.mT, dim=-1)
    close(rg.Weights(p.q, p.k, **terms, plan="tiled", budget=budget).dense(), expected, atol=1e-7)


@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from(list(SCORES)), st.sampled_from(list(MASKS)), plans)
def test_grouped_heads_are_repeated_keys(kv_heads: int, share: int, score: str, mask: str, plan: str) -> None:
    grouped = problem(score, mask, sizes=Sizes((2, kv_heads * share), 5, 17, 3, 7, 11, kv_heads))
    repeated = grouped._replace(k=grouped.k.repeat_interleave(share, 1), v=grouped.v.repeat_interleave(share, 1))
    answer = attend_by(grouped, plan)
    close(answer.output, repeated.attend().output)
    close(answer.weights.received(), repeated.weights().received())
