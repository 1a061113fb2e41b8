"""torch models that call scaled_dot_product_attention have the outputs, losses and gradients of one process."""

from functools import partial

import context_parallel_models as models
import pytest


def check(ranks, **options):
    for differences in ranks.run(partial(models.compare_net, **options)):
        assert max(differences) < 1e-12


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
def test_accumulated_gradients_of_a_model_with_tied_weights(two_ranks, causal, layout):
    check(two_ranks, causal=causal, layout=layout)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_blocks_are_recomputed_over_all_ranks(two_ranks, reentrant):
    check(two_ranks, reentrant=reentrant)


@pytest.mark.long
def test_any_number_of_ranks(more_ranks):
    check(more_ranks, layout="zigzag")


@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
@pytest.mark.parametrize("kind", ["whole", "keys"])
def test_boolean_masks_are_those_of_the_whole_sequence(two_ranks, kind, layout):
    assert max(two_ranks.run(models.compare_masked, kind, layout)) < 1e-6


def test_a_mask_of_a_part_is_refused(two_ranks):
    assert all("does not say what it means" in message for message in two_ranks.run(models.mask_of_a_part))
