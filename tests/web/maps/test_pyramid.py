"""Attention maps: every tile of every level is the pooled matrix, though the matrix is never built."""

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from largest_allocation import LargestAllocation
from torch import Tensor

import regard as rg
from regard import masks, normalisers, scores
from regard.errors import ChoiceError, StaleWeightsError
from regard.recording import Call
from regard.web.maps import head as head_module
from regard.web.maps import pyramid, refine
from regard.web.maps import thumbnails as thumbnails_module
from regard.web.maps.arrays import ArrayCache
from regard.web.maps.pyramid import AttentionMap
from regard.web.maps.thumbnails import thumbnails

POOLS = ("mean", "max")
SIZES = [(1, 1), (1, 37), (37, 1), (53, 71), (71, 53), (97, 97), (64, 128), (131, 29)]
MASKS: dict[str, Callable[[int, int], Any]] = {
    "none": lambda n, m: None,
    "causal": lambda n, m: masks.causal(align="bottom-right"),
    "window": lambda n, m: masks.window(5, 2, align="top-left"),
    "padding": lambda n, m: masks.padding(torch.tensor([m // 2, m])),
    "padding and causal": lambda n, m: masks.padding(torch.tensor([m // 3, 0])) & masks.causal(align="top-left"),
    "two islands": lambda n, m: masks.prefix(2) | masks.window(1, 1, align="top-left"),
    "hidden": lambda n, m: masks.hide(torch.rand(n, m, generator=torch.Generator().manual_seed(n)) < 0.7),
}
NORMALISERS = {
    "softmax": normalisers.softmax,
    "sparsemax": normalisers.sparsemax,
    "entmax15": normalisers.entmax15,
    "sigmoid": normalisers.sigmoid,
    "hard": normalisers.hard,
}


@contextmanager
def small_pieces() -> Iterator[None]:
    """Tiles, bands, boxes and levels so small that a small matrix has many of each."""
    with (
        patch.multiple(pyramid, TILE=8, FIRST_COARSE_LEVEL=2, BAND=8, SAMPLED_CELLS=512),
        patch.multiple(head_module, BAND=8, BOX_CELLS=256, MAX_ROW_CELLS=1024, MIN_ROWS=8, BOX_COLUMNS=24),
        patch.multiple(refine, BAND=8, MAX_ROW_CELLS=1024),
    ):
        yield


def refined(one: AttentionMap, **options: Any) -> AttentionMap:
    assert list(one.refine(**options))[-1] == 1.0
    return one


def level(one: AttentionMap, pool: str, number: int) -> np.ndarray:
    """All tiles of a level side by side."""
    side = pyramid.TILE << number
    rows, cols = (range(-(-length // side)) for length in (one.n, one.m))
    return np.block([[one.tile(pool, number, row, col).values for col in cols] for row in rows])


def pooled_into_squares(dense: Tensor, side: int, pool: str) -> Tensor:
    """The textbook: each square of the whole matrix, in float64."""
    n, m = dense.shape
    rows, cols = -(-n // side), -(-m // side)
    padded = torch.nn.functional.pad(dense.double(), (0, cols * side - m, 0, rows * side - n))
    squares = padded.reshape(rows, side, cols, side)
    return squares.amax((1, 3)) if pool == "max" else squares.sum((1, 3)) / counts(n, m, side)


def close(found: Any, wanted: Any) -> None:
    """Within 1e-5 of the largest."""
    wanted = np.asarray(wanted, dtype=np.float64)
    assert found.shape == wanted.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5 * max(np.abs(wanted).max(initial=0), 1e-30), rtol=0)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[rg.Weights, Tensor, int, int]:
    """Weights, one of their heads in full, and which it is; keys may be shared between heads."""
    n, m = draw(st.sampled_from(SIZES))
    g = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    spread = draw(st.sampled_from([1.0, 3.0]))
    query = torch.randn(2, 6, n, 5, generator=g) * spread
    key = torch.randn(2, draw(st.sampled_from([3, 6])), m, 5, generator=g)
    mask = MASKS[draw(st.sampled_from(list(MASKS)))](n, m)
    score = draw(st.sampled_from([None, scores.scaled_dot() + scores.bias(torch.randn(n, m, generator=g))]))
    normaliser = NORMALISERS[draw(st.sampled_from(["softmax", *NORMALISERS]))]()
    weights = rg.Weights(query, key, score, mask, normaliser)
    batch, head = draw(st.integers(0, 1)), draw(st.integers(0, 5))
    return weights, weights.dense()[batch, head], batch, head


@settings(max_examples=40)
@given(matrices(), st.booleans())
def test_every_level_is_the_pooled_matrix(matrix: Any, given_lse: bool) -> None:
    weights, dense, batch, head = matrix
    softmax = isinstance(weights.spec.normaliser, type(normalisers.softmax()))
    lse = weights.logsumexp()[batch, head] if given_lse and softmax else None
    with small_pieces():
        one = refined(AttentionMap(weights, batch, head, lse))
        for number, pool in product(range(one.levels), POOLS):
            close(level(one, pool, number), pooled_into_squares(dense, 1 << number, pool))


@settings(max_examples=30)
@given(matrices(), st.data())
def test_rows_columns_and_top_keys_are_those_of_the_weights(matrix: Any, data: st.DataObject) -> None:
    weights, dense, batch, head = matrix
    n, m = dense.shape
    i, j, k = (data.draw(st.integers(0, top)) for top in (n - 1, m - 1, m - 1))
    with small_pieces():
        one = AttentionMap(weights, batch, head)
        close(one.row(i), dense[i])
        close(one.column(j), dense[:, j])
        keys, values = one.top(i, k + 1)
    best = weights.top(k + 1)
    seen = best.indices[batch, head, i] >= 0
    assert len(set(keys)) == len(keys) == int(seen.sum())
    np.testing.assert_allclose(values, best.values[batch, head, i][seen], atol=1e-6)
    np.testing.assert_allclose(values, dense[i, keys], atol=1e-6)


@settings(max_examples=30)
@given(matrices())
def test_empty_rows_are_reported_in_runs(matrix: Any) -> None:
    weights, dense, batch, head = matrix
    with small_pieces():
        one = refined(AttentionMap(weights, batch, head))
        one.column(0)  # scores that may be -inf tell of a row only when it has been looked at
        runs = one.info()["empty"]
    marked = torch.zeros(len(dense), dtype=torch.bool)
    for start, stop in runs:
        assert start < stop
        assert not marked[max(start - 1, 0) : stop].any()  # apart, and in order
        marked[start:stop] = True
    if weights.spec.normaliser.pointwise or not weights.spec.score.hides_keys:
        assert torch.equal(marked, weights.empty_rows()[batch, head])


def test_a_level_is_the_pooled_level_below() -> None:
    q, k = torch.randn(1, 1, 8209, 16), torch.randn(1, 1, 331, 16)
    one = refined(AttentionMap(rg.Weights(q, k, mask=masks.causal(align="top-left"))))
    assert one.levels == 7  # the last with one tile; two of them from the pass
    for pool in POOLS:
        pictures = [torch.from_numpy(level(one, pool, number)) for number in range(one.levels)]
        for number in range(2, one.levels):
            below, side = pictures[number - 1], 1 << (number - 1)
            shares = counts(8209, 331, side) if pool == "mean" else torch.ones_like(below)
            above = pooled_into_squares(below * shares, 2, pool)
            if pool == "mean":  # at the edges a pixel stands for fewer cells
                above = above * counts(*below.shape, 2) / counts(8209, 331, 2 * side)
            close(pictures[number].numpy(), above)


def counts(n: int, m: int, side: int) -> Tensor:
    rows, cols = (torch.arange(-(-length // side) + 1).mul(side).clamp_max(length).diff() for length in (n, m))
    return (rows[:, None] * cols).float()


# Coarse levels


def long_map(mask: Any = None, lse: bool = False) -> AttentionMap:
    g = torch.Generator().manual_seed(7)
    q, k = (torch.randn(1, 2, 8317, 8, generator=g) for _ in range(2))
    weights = rg.Weights(q, k, mask=mask)
    return AttentionMap(weights, 0, 1, weights.logsumexp()[0, 1] if lse else None)


def test_coarse_tiles_are_marked_as_estimates_before_the_pass() -> None:
    one = long_map(masks.causal())
    guess = one.tile("mean", 5, 0, 0)
    assert not guess.exact and not one.info()["exact"] and one.info()["progress"] == 0
    assert one.tile("mean", 4, 0, 0).exact
    exact = refined(one).tile("mean", 5, 0, 0)
    assert exact.exact and one.info()["exact"] and one.info()["progress"] == 1
    np.testing.assert_allclose(guess.values.sum(1).mean(), exact.values.sum(1).mean(), rtol=0.05)  # rows sum to one
    assert np.corrcoef(guess.values.ravel(), exact.values.ravel())[0, 1] > 0.5


def test_the_estimate_is_exact_when_all_rows_are_equal() -> None:
    q, k = torch.randn(1, 8).expand(9001, 8), torch.randn(311, 8)
    one = AttentionMap(rg.Weights(q, k))
    for pool, number in product(POOLS, range(5, one.levels)):
        guess = level(one, pool, number)
        assert not one.tile(pool, number, 0, 0).exact
        close(guess, pooled_into_squares(one_row(one).expand(9001, 311), 1 << number, pool))


def one_row(one: AttentionMap) -> Tensor:
    return torch.from_numpy(one.row(0))


def test_a_cancelled_pass_continues_to_the_same_bits() -> None:
    whole, often = refined(long_map()), long_map()
    shares = [0.0]
    while not often.exact:
        asked = iter([False] * 60 + [True] * 10**6)
        shares.append(list(often.refine(lambda asked=asked: next(asked), workers=1))[-1])
        assert shares[-1] >= shares[-2]
    assert len(shares) > 3
    for pool in POOLS:
        assert np.array_equal(level(whole, pool, 5), level(often, pool, 5))


def test_tiles_become_exact_strip_by_strip() -> None:
    one = long_map()
    for share in one.refine(workers=1):
        if share > 0:
            break
    done = list(one._pass.done)  # type: ignore[union-attr]
    assert any(done) and not all(done)
    guess = one.tile("max", 5, 0, 0)
    exact = refined(one).tile("max", 5, 0, 0)
    assert not guess.exact and exact.exact
    rows = [i for i in range(8) if done[i]]
    assert rows
    for strip in rows:  # what the pass had done by then was in the picture
        assert np.array_equal(guess.values[8 * strip : 8 * strip + 8], exact.values[8 * strip : 8 * strip + 8])


def test_concurrent_queries_and_passes_agree_with_one_thread() -> None:
    one, alone = long_map(masks.causal()), refined(long_map(masks.causal()))
    wanted = [(pool, z, r, c) for pool in POOLS for z, r, c in [(0, 3, 2), (2, 5, 1), (4, 1, 0), (4, 2, 2)]]
    found: dict[Any, np.ndarray] = {}

    def look(what: Any) -> None:
        found[what] = one.tile(*what).values

    threads = [threading.Thread(target=look, args=(what,)) for what in wanted]
    threads += [threading.Thread(target=refined, args=(one,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.exact
    for what in wanted:
        close(found[what], alone.tile(*what).values)
    assert np.array_equal(level(one, "mean", 5), level(alone, "mean", 5))


def test_a_worker_error_reaches_the_caller_and_the_pass_can_resume() -> None:
    one = long_map()
    with patch.object(head_module.HeadWeights, "box", side_effect=MemoryError), pytest.raises(MemoryError):
        list(one.refine())
    refined(one)


def test_a_pass_restores_the_thread_count_of_torch() -> None:
    before = torch.get_num_threads()
    refined(long_map(masks.window(9, 0)))
    assert torch.get_num_threads() == before


# What may be in the numbers


@pytest.mark.parametrize("given_lse", [False, True])
def test_nan_shows_at_visible_keys_only(given_lse: bool) -> None:
    q, k = torch.randn(1, 1, 40, 8), torch.randn(1, 1, 40, 8)
    k[..., 20, 3] = math.nan
    weights = rg.Weights(q, k, mask=masks.causal())
    lse = torch.logsumexp(weights.query @ weights.key.mT / 8**0.5, -1)[0, 0] if given_lse else None
    with small_pieces():
        one = refined(AttentionMap(weights, lse=lse))
        cells = level(one, "mean", 0)
        assert np.isnan(cells[20:][:, :21][np.tril(np.ones((20, 21), bool))]).all()
        assert not np.isnan(cells[:20]).any()
        assert not np.isnan(np.triu(cells, 1)).any()
        for number, pool in product(range(one.levels), POOLS):
            wanted = pooled_into_squares(torch.from_numpy(cells), 1 << number, pool)
            np.testing.assert_array_equal(np.isnan(level(one, pool, number)), wanted.isnan())
        assert json.loads(json.dumps(one.info(), allow_nan=False))["max"] == pytest.approx(np.nanmax(cells))


def test_large_scores_are_accurate_beyond_float32_log_sums() -> None:
    q, k = 40 * torch.randn(67, 16), torch.randn(59, 16)
    weights = rg.Weights(q, k)
    with small_pieces():
        one = refined(AttentionMap(weights, lse=torch.logsumexp(q @ k.mT / 4, -1)))
        exact = torch.softmax(q.double() @ k.double().mT / 4, -1)
        for number, pool in product(range(one.levels), POOLS):
            close(level(one, pool, number), pooled_into_squares(exact, 1 << number, pool))


def test_a_given_log_sum_exp_of_other_scores_is_ignored() -> None:
    q, k = torch.randn(61, 8), torch.randn(61, 8)
    weights = rg.Weights(q, k)
    close(AttentionMap(weights, lse=weights.logsumexp() + 1).column(3), weights[:, 3])
    with pytest.raises(ChoiceError, match="61 queries, but it has 60"):
        AttentionMap(weights, lse=torch.zeros(60))


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0)])
def test_a_map_without_queries_or_keys_has_no_tiles(n: int, m: int) -> None:
    one = refined(AttentionMap(rg.Weights(torch.randn(n, 3), torch.randn(m, 3))))
    info = json.loads(json.dumps(one.info(), allow_nan=False))
    assert (info["n"], info["m"], info["exact"], info["empty"]) == (n, m, True, [[0, n]] if n else [])
    with pytest.raises(ChoiceError):
        one.tile("mean", 0, 0, 0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.tile("sum", 0, 0, 0),
        lambda one: one.tile("mean", -1, 0, 0),
        lambda one: one.tile("mean", one.levels, 0, 0),
        lambda one: one.tile("mean", 0, 3, 0),
        lambda one: one.tile("mean", 0, 0, -1),
        lambda one: one.row(601),
        lambda one: one.column(-1),
        lambda one: one.top(0, 0),
        lambda one: one.top(0, 602),
    ],
)
def test_tiles_rows_and_columns_out_of_range_are_refused(ask: Callable[[AttentionMap], object]) -> None:
    with pytest.raises(ChoiceError):
        ask(AttentionMap(rg.Weights(torch.randn(601, 3), torch.randn(601, 3))))


@pytest.mark.parametrize(("batch", "head"), [(2, 0), (0, 3), (-1, 0), (0, -1)])
def test_a_batch_or_head_out_of_range_is_refused(batch: int, head: int) -> None:
    with pytest.raises(ChoiceError, match="is not among the"):
        AttentionMap(rg.Weights(torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7)), batch, head)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (5, 2, 3)])
def test_leading_dimensions_are_batch_and_heads(lead: tuple[int, ...]) -> None:
    q, k = torch.randn(*lead, 13, 7), torch.randn(*lead, 11, 7)
    weights = rg.Weights(q, k)
    heads = lead[-1] if len(lead) > 1 else 1
    flat = weights.dense().reshape(-1, heads, 13, 11)
    for batch, head in product(range(len(flat)), range(heads)):
        close(AttentionMap(weights, batch, head).tile("mean", 0, 0, 0).values, flat[batch, head])


def test_tensors_changed_in_place_are_refused() -> None:
    q = torch.randn(40, 4)
    one = AttentionMap(rg.Weights(q, torch.randn(40, 4)))
    q.mul_(2)
    with pytest.raises(StaleWeightsError):
        one.tile("mean", 0, 0, 0)


def test_half_precision_is_computed_in_single() -> None:
    q, k = torch.randn(67, 8).bfloat16(), torch.randn(59, 8).bfloat16()
    exact = torch.softmax(q.double() @ k.double().mT / 8**0.5, -1)
    close(AttentionMap(rg.Weights(q, k)).tile("mean", 0, 0, 0).values, exact)


# Memory


@pytest.mark.parametrize("mask", [None, masks.causal()])
def test_memory_does_not_grow_with_the_matrix(mask: Any) -> None:
    n = 1 << 15
    q, k = torch.randn(1, 1, n, 4), torch.randn(1, 1, n, 4)
    with LargestAllocation() as largest:
        one = AttentionMap(rg.Weights(q, k, mask=mask), lse=torch.zeros(n))
        for number, pool in product((0, 2, 4, 5, 7), POOLS):
            one.tile(pool, number, 0, 0)
        one.row(5), one.top(5)
    assert largest.bytes <= 1 << 24  # the matrix is 4 GiB
    assert one.bytes <= 1 << 25


# Recordings


@pytest.fixture(scope="module")
def recording() -> rg.Recording:
    torch.manual_seed(5)
    layer = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    x = torch.randn(2, 37, 12)
    with torch.no_grad(), rg.record(layer) as recording:
        layer(x, x, x, key_padding_mask=torch.arange(37) >= torch.tensor([[29], [37]]), need_weights=False)
    return recording


def test_a_head_of_a_recording_in_memory_and_in_a_file(recording: rg.Recording, tmp_path: Any) -> None:
    recording.save(tmp_path / "run.regard")
    dense = recording.entries[0].load().weights().dense()
    for kept in (recording, rg.open(tmp_path / "run.regard")):
        for batch, head in product(range(2), range(3)):
            one = AttentionMap.of_entry(kept.entries[0], batch, head)
            close(one.tile("mean", 0, 0, 0).values, dense[batch, head])
        with pytest.raises(ChoiceError):
            AttentionMap.of_entry(kept.entries[0], 2, 0)
        with pytest.raises(ChoiceError):
            AttentionMap.of_entry(kept.entries[0], 0, 3)


@pytest.mark.parametrize(("n", "m", "side"), [(37, 53, 8), (5, 3, 8), (1, 1, 4), (64, 64, 64)])
def test_thumbnails_are_heatmaps_of_every_head(n: int, m: int, side: int) -> None:
    g = torch.Generator().manual_seed(n)
    q, k = torch.randn(2, 6, n, 5, generator=g), torch.randn(2, 3, m, 5, generator=g)
    weights = rg.Weights(q, k, mask=masks.window(20, 9, align="top-left"))
    found = thumbnails(Call.of_weights("layer", 0, weights), batch=1, side=side)
    wanted = weights.heatmap(side)[1]
    rows, cols = (torch.arange(side) * length // side for length in wanted.shape[-2:])
    assert found.exact
    close(found.values, wanted[:, rows][..., cols])


def test_thumbnails_of_long_texts_come_from_sampled_rows() -> None:
    q, k = torch.randn(1, 3, 1, 5).expand(1, 3, 311, 5), torch.randn(1, 3, 307, 5)
    weights = rg.Weights(q, k, mask=masks.prefix(211) | masks.prefix(5))
    with patch.object(thumbnails_module, "EXACT_CELLS", 1 << 14):
        found = thumbnails(Call.of_weights("layer", 0, weights), side=16)
    assert not found.exact
    close(found.values, weights.heatmap(16)[0])  # all rows are alike


def test_sampled_thumbnails_are_near_the_exact_ones() -> None:
    q, k = torch.randn(1, 2, 1024, 5), torch.randn(1, 2, 1024, 5)
    call = Call.of_weights("layer", 0, rg.Weights(q, k, mask=masks.causal() & masks.window(200, 0)))
    with patch.object(thumbnails_module, "EXACT_CELLS", 1 << 18):
        guess = thumbnails(call, side=16)
    exact = thumbnails(call, side=16)
    assert not guess.exact and exact.exact
    assert np.corrcoef(guess.values.ravel(), exact.values.ravel())[0, 1] > 0.9


# The cache


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 7)), max_size=60), st.integers(0, 80))
def test_the_cache_keeps_the_most_recently_used_within_its_budget(puts: list[tuple[int, int]], budget: int) -> None:
    cache, model = ArrayCache(budget), {}
    for key, length in puts:
        cache.put(key, np.full(length, key, "<f4"))
        model.pop(key, None)
        if 4 * length <= budget:
            model[key] = 4 * length
        while sum(model.values()) > budget:
            model.pop(next(iter(model)))
        assert cache.bytes == sum(model.values()) and len(cache) == len(model)
        for known in range(10):
            assert (cache.get(known) is not None) == (known in model)
        model = dict(sorted(model.items()))  # as they were just asked for, in this order


def test_the_cache_copies_views_so_that_bytes_are_counted() -> None:
    cache = ArrayCache(1 << 20)
    cache.put("part", np.zeros((256, 256), "<f4")[:2])
    kept = cache.get("part")
    assert kept is not None and kept.base is None and cache.bytes == kept.nbytes
    cache.clear()
    assert cache.bytes == len(cache) == 0


def test_concurrent_cache_use_keeps_the_byte_count() -> None:
    cache = ArrayCache(4000)

    def use(seed: int) -> None:
        for number in range(300):
            key = (number * seed) % 37
            cache.put(key, np.zeros(key + 1, "<f4"))
            cache.get(key // 2)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [cache.get(key) for key in range(37)]
    assert cache.bytes == sum(array.nbytes for array in kept if array is not None) <= 4000
