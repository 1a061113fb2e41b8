"""Leading dimensions: values with their own, one key head for all query heads, rows with gaps in memory."""

import pytest
import torch
from random_qkv import qkv

import regard as rg
from regard import masks

PLANS = ("auto", "dense", "tiled")


@pytest.mark.parametrize("plan", PLANS)
def test_values_may_have_leading_dimensions_of_their_own(plan):
    q, k, _ = qkv(lead=())
    v = torch.randn(5, 20, 8)
    expected = torch.stack([rg.attend(q, k, part, plan=plan).output for part in v])
    output, weights = rg.attend(q, k, v, plan=plan)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights @ v, expected)


def test_one_key_head_serves_all_query_heads():
    q, k, v = qkv(lead=(2, 3))
    output, weights = rg.attend(q, k[:, :1], v[:, :1])
    expected = rg.attend(q, k[:, :1].expand(2, 3, 20, 8), v[:, :1].expand(2, 3, 20, 8))
    torch.testing.assert_close(output, expected.output)
    torch.testing.assert_close(weights.dense(), expected.weights.dense())


@pytest.mark.parametrize("lead", [(1,), ()])
def test_below_four_dimensions_one_query_head_broadcasts(lead):
    _, k, v = qkv()
    q = torch.randn(*lead, 20, 8)
    torch.testing.assert_close(rg.attend(q, k, v).output, rg.attend(q.expand(3, 20, 8), k, v).output)


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(3, 0), masks.prefix(13)], ids=str)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("d", [8, 16])
def test_the_numbers_of_a_row_may_have_gaps_in_memory(d, lead, mask):
    plain = [t.requires_grad_() for t in qkv(d=d, lead=lead, dtype=torch.float64)]
    turned = [t.detach().mT.contiguous().mT.requires_grad_() for t in plain]
    outputs = [rg.attend(*tensors, mask=mask, plan="fused").output for tensors in (plain, turned)]
    torch.testing.assert_close(*outputs)
    towards = torch.randn_like(outputs[0]).mT.contiguous().mT
    gradients = [
        torch.autograd.grad(output, tensors, towards) for output, tensors in zip(outputs, (plain, turned), strict=True)
    ]
    torch.testing.assert_close(*gradients)
