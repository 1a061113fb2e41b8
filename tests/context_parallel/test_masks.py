"""Masks that transformers composes of functions, as masks of regard: both show the same pairs."""

import pytest
import torch
from transformers import masking_utils as hf

from regard import Weights
from regard.context_parallel._masks import global_mask
from regard.errors import ContextParallelError

N = 13
PADDING = torch.ones(2, N, dtype=torch.bool)
PADDING[0, -3:] = False
PACKED = torch.tensor([[0] * 5 + [1] * 8, [0] * 2 + [1] * 4 + [2] * 7])
FUNCTIONS = {
    "causal": hf.causal_mask_function,
    "bidirectional": hf.bidirectional_mask_function,
    "sliding": hf.sliding_window_causal_mask_function(4),
    "a window of one": hf.sliding_window_causal_mask_function(1),
    "sliding on both sides": hf.sliding_window_bidirectional_mask_function(3),
    "chunks": hf.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.long)),
    "chunks after padding": hf.chunked_causal_mask_function(4, torch.tensor([3, 0])),
    "packed": hf.and_masks(hf.causal_mask_function, hf.packed_sequence_mask_function(PACKED)),
    "packed and sliding": hf.and_masks(
        hf.sliding_window_causal_mask_function(4), hf.packed_sequence_mask_function(PACKED)
    ),
    "one or the other": hf.or_masks(
        hf.sliding_window_causal_mask_function(2), hf.packed_sequence_mask_function(PACKED)
    ),
    "padding as a function": hf.and_masks(hf.causal_mask_function, hf.padding_mask_function(PADDING)),
}


@pytest.mark.parametrize("padding", [None, PADDING, PADDING.flip(1), torch.ones_like(PADDING)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mask_shows_the_pairs_that_the_function_shows(name, padding):
    expected = hf.sdpa_mask(2, N, N, mask_function=FUNCTIONS[name], attention_mask=padding, allow_is_causal_skip=False)
    ones = torch.ones(2, 1, N, 1)
    visible = Weights(ones, ones, mask=global_mask(FUNCTIONS[name], padding, N)).dense() > 0
    assert torch.equal(visible, expected.expand(2, 1, N, N))


def test_a_function_of_unknown_meaning_is_refused_by_name():
    def looks_at_images(batch, head, query, key):
        return key >= query

    with pytest.raises(ContextParallelError, match="looks_at_images"):
        global_mask(hf.and_masks(hf.causal_mask_function, looks_at_images), None, N)


def test_packed_ids_of_another_length_are_refused():
    with pytest.raises(
        ContextParallelError, match=r"numbers the packed sequences of 13 tokens, and the whole .* has 26"
    ):
        global_mask(hf.packed_sequence_mask_function(PACKED), None, 26)
