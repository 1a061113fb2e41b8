"""Layouts hold every position once, in shards of torch's sizes, and balance what a mask shows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import masks
from regard.engine.distributed.layout import make_layout, shard_sizes, visible_pairs
from regard.errors import ChoiceError, MaskError

LAYOUTS = ("contiguous", "zigzag", "balanced")
DOCUMENTS = torch.tensor([3000, 1800, 1200, 800, 600, 400, 200, 128, 64])


@given(length=st.integers(0, 300), world=st.integers(1, 7), name=st.sampled_from(LAYOUTS))
def test_every_position_is_on_one_rank_and_join_undoes_take(length, world, name):
    layout = make_layout(name, length, world, masks.causal())
    x = torch.arange(length).unsqueeze(-1)
    shards = [layout.take(x, 0, rank) for rank in range(world)]
    assert [len(shard) for shard in shards] == shard_sizes(length, world)
    assert all(torch.equal(shard[:, 0], layout.positions(rank)) for rank, shard in enumerate(shards))
    assert torch.equal(layout.join(shards, 0), x)


@given(length=st.integers(1, 300), world=st.integers(1, 7))
def test_shards_have_the_sizes_of_torch_chunk(length, world):
    chunks = [len(chunk) for chunk in torch.arange(length).chunk(world)]
    assert [size for size in shard_sizes(length, world) if size] == chunks


def load(layout, pairs):
    return [sum(pairs[a:b].sum().item() for a, b in runs) for runs in layout.runs]


@pytest.mark.parametrize("world", [2, 4, 8])
def test_zigzag_balances_a_causal_mask_and_contiguous_does_not(world):
    pairs = visible_pairs(masks.causal(), 4096)
    even = load(make_layout("zigzag", 4096, world), pairs)
    assert max(even) < 1.001 * sum(even) / world
    assert max(load(make_layout("contiguous", 4096, world), pairs)) > 1.4 * sum(even) / world


@pytest.mark.parametrize("world", [2, 4])
def test_balanced_divides_documents_evenly(world):
    ids = torch.repeat_interleave(torch.arange(len(DOCUMENTS)), DOCUMENTS)
    mask = masks.causal() & masks.segments(ids, ids)
    loads = load(make_layout("balanced", len(ids), world, mask), visible_pairs(mask, len(ids)))
    assert max(loads) < 1.03 * sum(loads) / world


def test_visible_pairs_are_those_of_the_mask():
    ids = torch.tensor([0, 0, 1, 1, 1, 2])
    assert visible_pairs(masks.causal() & masks.segments(ids, ids), 6).tolist() == [1, 2, 1, 2, 3, 1]


def test_wrong_layouts_are_refused_in_words():
    with pytest.raises(ChoiceError, match="'contiguous', 'zigzag' or 'balanced'"):
        make_layout("striped", 8, 2)
    with pytest.raises(MaskError, match="needs mask="):
        make_layout("balanced", 8, 2)
