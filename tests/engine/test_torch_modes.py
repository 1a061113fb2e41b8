"""Modes of torch around a call: autocast and torch.compile."""

import pytest
import torch
from random_qkv import qkv

import regard as rg
from regard import masks, scores


def test_autocast_changes_no_dtype_and_no_number():
    q, k, v = (t.requires_grad_() for t in qkv())
    weights = rg.Weights(q, k, mask=masks.window(3, 3))
    expected = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = rg.Weights(q, k, mask=masks.window(3, 3))
        found = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.plain
@pytest.mark.parametrize(
    "score", [scores.gaussian(1.0), scores.cosine(), scores.scaled_dot() + scores.bias(torch.ones(20))]
)
def test_compiled_attention_without_a_mask(score):
    q, k, v = qkv()
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda q, k, v: rg.attend(q, k, v, score=score).output, fullgraph=True, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(q, k, v), rg.attend(q, k, v, score=score).output, atol=1e-5, rtol=1e-5)
