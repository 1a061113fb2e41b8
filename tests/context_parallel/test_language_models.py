"""Hugging Face models whose sequence is sharded have the losses and gradients of one process."""

from functools import partial

import context_parallel_models as models
import pytest
import torch

CASES = {
    "Llama": ["Llama", {}],
    "Llama, padded at the left": ["Llama", {"padding": "left"}],
    "Llama, packed documents": ["Llama", {"packed": True}],
    "Mistral, a sliding window": ["Mistral", {}],
    "Mistral, packed documents": ["Mistral", {"packed": True}],
    "Gemma 3, windows in some layers": ["Gemma 3", {"padding": "right"}],
    "Gemma 2, bounded scores": ["Gemma 2", {}],
    "Qwen3": ["Qwen3", {"padding": "right"}],
    "GPT-2": ["GPT-2", {"padding": "left"}],
    "BERT": ["BERT", {"padding": "right"}],
    "ModernBERT, windows on both sides": ["ModernBERT", {"padding": "left"}],
    "Llama with tied embeddings": ["tied Llama", {}],
}
FLOAT32_LOSS = 1e-5  # transformers computes losses in float32, also of models in float64
QUICK = ("Llama, packed documents", "Gemma 3, windows in some layers", "BERT")


def check(ranks, name, batch, *args, **options):
    for loss, gradients in ranks.run(partial(models.compare, **options), name, models.batch_of_tokens(**batch), *args):
        assert loss < FLOAT32_LOSS
        assert gradients < 1e-6  # Gemma computes norms in float32


@pytest.mark.parametrize("case", QUICK)
def test_two_ranks_have_the_loss_and_gradients_of_one_process(two_ranks, case):
    check(two_ranks, *CASES[case], "zigzag")


@pytest.mark.long
@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "balanced"])
@pytest.mark.parametrize("case", CASES)
def test_every_layout_has_the_loss_and_gradients_of_one_process(two_ranks, case, layout):
    check(two_ranks, *CASES[case], layout)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_any_number_of_ranks_has_the_loss_and_gradients_of_one_process(more_ranks, case):
    check(more_ranks, *CASES[case])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers_are_recomputed_over_all_ranks(two_ranks, reentrant):
    check(two_ranks, "Llama", {}, checkpointing=reentrant)


def test_experts_that_one_rank_did_not_use_get_their_gradient(two_ranks):
    compare = partial(models.compare, dtype=torch.float32)
    for loss, gradients in two_ranks.run(compare, "Mixtral", models.batch_of_tokens()):
        assert loss < FLOAT32_LOSS
        assert gradients < 1e-5


@pytest.mark.parametrize(("name", "padding"), [("Llama", None), ("Gemma 3", None), ("BERT", "right")])
def test_training_has_the_same_losses(two_ranks, name, padding):
    for alone, shared in two_ranks.run(models.train, name, 20, padding):
        assert shared == pytest.approx(alone, abs=2e-5)
        assert alone[-1] != alone[0]


def test_a_model_with_the_same_config_runs_as_before(two_ranks):
    for before, during, implementation in two_ranks.run(models.models_with_one_config):
        assert during == before
        assert implementation == "sdpa"
