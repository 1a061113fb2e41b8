"""The cost model counts what masks show, and follows from sizes and rates as it says."""

import pytest
import torch

from regard import masks
from regard.distributed import DEVICES, LINKS, Link, estimate
from regard.errors import ChoiceError

N = 1200
IDS = torch.arange(N) // 400
COUNTS = {
    "full": (None, N * N),
    "causal": (masks.causal(), N * (N + 1) // 2),
    "window": (masks.window(99, 0), 100 * N - 99 * 100 // 2),
    "documents": (masks.causal() & masks.segments(IDS, IDS), 3 * 400 * 401 // 2),
    "padding": (masks.padding(torch.tensor([900, 300])), 600 * N),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_sample_of_rows_counts_visible_pairs(name):
    mask, pairs = COUNTS[name]
    assert estimate(N, 2, 8, mask, 2, 1e9, 1e9).pairs == pytest.approx(pairs, rel=0.01)


def test_one_device_takes_the_operations_of_its_pairs():
    alone = estimate(N, heads=4, dim=8, world=1, link=1e9, flops=1e9)
    assert alone.seconds == alone.alone == pytest.approx(4 * 8 * 4 * N * N / 1e9)
    assert (alone.hops, alone.bytes_per_hop, alone.efficiency) == (0, 0, 1.0)
    training = estimate(N, heads=4, dim=8, world=1, link=1e9, flops=1e9, backward=True)
    assert training.seconds == pytest.approx(3.5 * alone.seconds)


def test_keys_go_to_all_ranks_without_a_mask_and_to_neighbours_under_a_window():
    full = estimate(N, heads=4, dim=8, world=6, link=1e9, flops=1e9, itemsize=2, key_heads=2)
    assert (full.hops, full.bytes_per_hop) == (5, 2 * 2 * 8 * 2 * N / 6)
    window = estimate(N, 4, 8, masks.window(99, 0), 6, 1e9, 1e9, layout="contiguous")
    assert window.hops == 1
    assert window.bytes_per_hop == 4 * 2 * 8 * 2 * 99
    documents = estimate(N, 4, 8, COUNTS["documents"][0], 3, 1e9, 1e9, layout="contiguous")
    assert documents.hops == documents.sending == 0


def test_contiguous_shards_of_a_causal_matrix_wait_for_the_last_rank():
    contiguous = estimate(N, 4, 8, masks.causal(), 4, 1e15, 1e9, layout="contiguous")
    balanced = estimate(N, 4, 8, masks.causal(), 4, 1e15, 1e9)
    assert contiguous.computing / balanced.computing == pytest.approx(7 / 4, rel=0.01)  # (2P - 1) / P
    assert balanced.efficiency == pytest.approx(1.0, rel=0.01)


def test_a_slow_link_bounds_the_time():
    slow = estimate(N, 4, 8, None, 4, Link(1e3, latency=0.0), 1e12)
    assert slow.bound == "sending"
    assert slow.seconds == pytest.approx(slow.sending, rel=1e-3)
    late = estimate(N, 4, 8, None, 4, Link(1e15, latency=2.0), 1e12)
    assert late.seconds == pytest.approx(6.0, rel=1e-3)


def test_rates_of_vendors_are_marked_as_predictions():
    assert "predicted from vendor figures, not measured" in str(estimate(10**6, 32, 128, None, 8, "nvlink4", "h100"))
    assert "predicted" not in str(estimate(10**6, 32, 128, None, 8, 4e11, 5e14))
    assert all(link.bandwidth > 1e9 for link in LINKS.values()) and min(DEVICES.values()) > 1e14


@pytest.mark.parametrize("options", [{"link": "pigeon"}, {"flops": "abacus"}, {"layout": "diagonal"}])
def test_unknown_names_are_refused_with_what_is_known(options):
    with pytest.raises(ChoiceError, match=r"one of|balanced"):
        estimate(100, 1, 8, None, 2, **options)
