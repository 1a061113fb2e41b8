"""shard_batch gives each rank its tokens, their positions, the labels of the tokens after them, and one count."""

import context_parallel_models as models
import pytest
import torch

from regard.errors import ContextParallelError, DistributedError


@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "balanced"])
def test_parts_are_the_rows_of_the_whole_batch(two_ranks, layout):
    inputs = models.batch_of_tokens("right")
    whole = inputs | {
        "position_ids": torch.arange(23).expand(2, 23),
        "shift_labels": torch.cat([inputs["labels"][:, 1:], torch.full((2, 1), -100)], 1),
    }
    answers = two_ranks.run(models.parts_of_a_batch, inputs, layout)
    assert sorted(torch.cat([positions for _, positions in answers]).tolist()) == list(range(23))
    for part, positions in answers:
        assert part.keys() == {*whole, "num_items_in_batch"}
        assert part["num_items_in_batch"] == (whole["shift_labels"] != -100).sum()
        assert all(torch.equal(part[name], tensor[:, positions]) for name, tensor in whole.items())


def test_positions_that_are_given_are_kept(two_ranks):
    inputs = models.batch_of_tokens(packed=True)
    parts = [part["position_ids"] for part, _ in two_ranks.run(models.parts_of_a_batch, inputs, "contiguous")]
    assert torch.equal(torch.cat(parts, 1), inputs["position_ids"])


@pytest.mark.plain
def test_batches_that_cannot_be_cut_are_refused():
    from regard.distributed import shard_batch

    with pytest.raises(ContextParallelError, match=r"needs input_ids or inputs_embeds.*labels \(2, 3\)"):
        shard_batch({"labels": torch.ones(2, 3)})
    with pytest.raises(ContextParallelError, match=r"here \(2, 7\), but attention_mask is \(2, 1, 7, 7\)"):
        shard_batch({"input_ids": torch.ones(2, 7), "attention_mask": torch.ones(2, 1, 7, 7)})


@pytest.mark.plain
def test_without_a_process_group_the_error_says_how_to_start_one():
    from regard.distributed import context_parallel, shard_batch

    with pytest.raises(DistributedError, match="torchrun"):
        shard_batch({"input_ids": torch.ones(2, 7)})
    with pytest.raises(DistributedError, match="torchrun"), context_parallel(models.Net()):
        pass
