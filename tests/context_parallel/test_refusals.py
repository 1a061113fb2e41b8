"""Models and calls that would be wrong on a part of the sequence are refused in words."""

import context_parallel_models as models
import pytest

MODELS = {
    "T5": "T5ForConditionalGeneration cannot run on a part of its sequence: an encoder-decoder",
    "BART": "BartForConditionalGeneration cannot run on a part of its sequence: an encoder-decoder",
    "Whisper": "WhisperForConditionalGeneration cannot run on a part of its sequence: model.encoder.conv1",
    "BLOOM": "it takes no position_ids",
    "MPT": "it takes no position_ids",
    "DeBERTa": "DebertaV2ForMaskedLM cannot run",
    "Mamba": "MambaForCausalLM cannot run",
    "BERT with a pooler": "add_pooling_layer=False",
    "BERT of sentences": "its output is not one for each token",
}
CALLS = {
    "positions of arange": "Net derives positions from the length of its input, ",
    "positions of a slice": "Net derives positions from the length of its input, ",
    "backward after the block": "call it inside the block",
    "autograd.grad": "call backward(), which sums",
    "tensors that are not sharded": "call model(**rd.shard_batch(inputs)), or model(rd.shard(x, dim))",
    "other parameters on a rank": "has other parameters on rank 1 than on rank 0",
    "a filled cache": "was called with past_key_values of ",
    "a part of the model": "was called by itself",
    "positions after the padding token": "its output differs by ",
    "positions that RoBERTa makes": "RobertaForMaskedLM derives positions from the tokens that are no padding",
    "a recurrent layer": "1 (GRU) is recurrent",
    "a convolution": "0 (Conv1d) is a convolution",
    "nn.MultiheadAttention": "self_attn (MultiheadAttention)",
    "no attention": "Linear ran without a call of attention",
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_mix_tokens_in_other_ways_are_refused_by_name(two_ranks, name):
    assert all(MODELS[name] in str(message) for message in two_ranks.run(models.refusal, name))


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_would_be_silently_wrong_are_refused(two_ranks, case):
    assert all(CALLS[case] in str(message) for message in two_ranks.run(models.message, case))
