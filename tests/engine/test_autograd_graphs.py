"""Graphs that autograd keeps: second derivatives, learned biases at any scale, and memory that is freed."""

import math

import pytest
import reference
import torch
from random_qkv import qkv

import regard as rg
from regard import masks, scores


def test_second_derivatives_of_an_additive_score_of_which_only_queries_learn():
    q, k, v = (t.double() for t in qkv(n=3, m=5, d=4, lead=()))
    q.requires_grad_()
    w_q, w_k, w = (torch.randn(*shape, dtype=torch.float64) for shape in ((7, 4), (7, 4), (7,)))

    def output(q):
        return rg.attend(q, k, v, score=scores.additive(w_q, w_k, w), plan="dense").output

    assert torch.autograd.gradgradcheck(output, (q,))


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("scale", [0.0, 1e-42, -0.5])
@pytest.mark.parametrize("mask", [None, masks.window(4, 4)])
def test_a_learned_bias_has_the_right_gradient_at_any_scale(plan, scale, mask):
    q, k, v = qkv()
    t = torch.randn(20, requires_grad=True)
    output = rg.attend(q, k, v, scores.scaled_dot(scale) + scores.bias(t), mask, plan=plan).output
    visible = torch.ones(20, 20, dtype=torch.bool) if mask is None else reference.window(20, 20, 4, 4, None)
    raw = (q.double() @ k.double().mT * scale + t.double()).masked_fill(~visible, -math.inf)
    exact = torch.softmax(raw, -1) @ v.double()
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)
    grads = [torch.autograd.grad(out.square().sum(), t)[0] for out in (output, exact)]
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("question", ["entropy", "logsumexp"])
def test_a_question_frees_its_graph_after_the_backward_pass(question):
    q, k, _ = qkv(lead=(2, 3))
    answer = getattr(rg.Weights(q.requires_grad_(), k), question)()
    answer.sum().backward(retain_graph=True)
    answer.sum().backward()
    assert answer.grad_fn.answer is None
    with pytest.raises(RuntimeError, match="second time"):
        answer.sum().backward()
