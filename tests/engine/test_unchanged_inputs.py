"""Inputs keep their numbers, the output keeps their dtype, and questions change neither."""

import torch
from every_plan import ask_everything, attend, close, dtypes, learn, plans, qkv

from regard import masks


@plans
@dtypes
def test_inputs_are_never_modified(plan: str, dtype: torch.dtype) -> None:
    cells = torch.rand(24, 24) < 0.5
    x = [*learn(*qkv(dtype)), cells]
    before = [(t.detach().clone(), t._version) for t in x]
    output, weights = attend(plan, *x[:3], mask=masks.allow(cells))
    ask_everything(weights)
    output.sum().backward()
    assert all(torch.equal(t, old) and t._version == version for t, (old, version) in zip(x, before, strict=True))


@plans
@dtypes
def test_asking_for_weights_never_changes_the_output(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    alone = attend(plan, q, k, v, mask=masks.causal()).output
    output, weights = attend(plan, q, k, v, mask=masks.causal())
    kept = output.clone()
    ask_everything(weights)
    assert torch.equal(output, kept) and torch.equal(alone, kept)
    close(weights @ v, output, dtype)


@plans
@dtypes
def test_the_output_keeps_the_type_of_the_input(plan: str, dtype: torch.dtype) -> None:
    output, weights = attend(plan, *qkv(dtype))
    assert output.dtype == weights.dense().dtype == weights[..., 0, :].dtype == (weights @ qkv(dtype)[2]).dtype == dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert {weights.entropy().dtype, weights.received().dtype, weights.logsumexp().dtype, weights.distance().dtype} == {
        wide
    }
