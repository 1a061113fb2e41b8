"""Tensors that change in place: between weights and questions, and between forward and backward."""

import pytest
import torch
from random_qkv import qkv

import regard as rg
from regard import errors, masks, scores

HELD = {
    "allow": (torch.bool, (20, 20), lambda t: {"mask": masks.allow(t)}),
    "hide": (torch.bool, (20, 20), lambda t: {"mask": masks.window(4, 4) & masks.hide(t)}),
    "q_ids": (torch.int64, (20,), lambda t: {"mask": masks.segments(t, torch.arange(20) % 3)}),
    "bias": (torch.float32, (20, 20), lambda t: {"score": scores.scaled_dot() + scores.bias(t)}),
    "hidden": (torch.bool, (20, 20), lambda t: {"mask": masks.hide(t)}),
    "t of bias": (
        torch.float32,
        (20,),
        lambda t: {"score": scores.scaled_dot() + scores.bias(t), "mask": masks.window(4, 4)},
    ),
}


def test_two_biases_of_one_name_are_told_apart():
    q, k, v = qkv()
    first, second = torch.randn(20, 20, requires_grad=True), torch.randn(20, 20)
    output, weights = rg.attend(q, k, v, score=scores.scaled_dot() + scores.bias(first) + scores.bias(second))
    assert torch.autograd.grad(output.sum(), first)[0].abs().sum() > 0
    second.zero_()
    with pytest.raises(errors.StaleWeightsError, match="another t of bias"):
        weights.entropy()


def test_a_gaussian_kernel_follows_a_bandwidth_changed_in_place():
    q, k, v = qkv()
    width = torch.tensor(2.0, requires_grad=True)
    score = scores.kernel("gaussian", width)
    for _ in range(2):
        rg.attend(q, k, v, score=score).output.square().sum().backward()
    with torch.no_grad():
        width.fill_(0.5)
    torch.testing.assert_close(
        rg.attend(q, k, v, score=score).output, rg.attend(q, k, v, score=scores.gaussian(2.0)).output
    )


@pytest.mark.parametrize("what", [what for what in HELD if what != "hidden"])
def test_a_term_changed_before_the_backward_pass_is_noticed(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    tensor = torch.randint(2, shape).to(dtype)
    output = rg.attend(q, k, v, plan="fused", budget=1 << 10, **words(tensor)).output  # no room for a copy of it
    output.sum().backward(retain_graph=True)
    tensor.copy_(tensor.roll(1))
    with pytest.raises(errors.StaleWeightsError, match=rf"(?s){what}.*changed in place.*backward"):
        output.sum().backward()


def test_a_bias_that_was_copied_may_change_before_the_backward_pass():
    q, k, v = (t.requires_grad_() for t in qkv())
    t = torch.randn(20, dtype=torch.float64)
    score = scores.scaled_dot() + scores.bias(t)
    output = rg.attend(q, k, v, score, masks.window(4, 4), plan="fused").output
    expected = torch.autograd.grad(output.square().sum(), q, retain_graph=True)
    t.zero_()
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), q), expected)


@pytest.mark.parametrize("what", ["allow", "hidden", "bias"])
def test_a_term_that_fits_into_one_kernel_call_is_copied_and_may_change(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    tensor = torch.randint(2, shape).to(dtype)
    output = rg.attend(q, k, v, plan="fused", **words(tensor)).output
    expected = torch.autograd.grad(output.square().sum(), (q, k, v), retain_graph=True)
    tensor.copy_(tensor.roll(1))
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), (q, k, v)), expected)


@pytest.mark.parametrize("what", list(HELD))
def test_a_term_made_in_inference_mode_serves_training(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    with torch.inference_mode():
        tensor = torch.randint(2, shape).to(dtype)
    rg.attend(q, k, v, plan="fused", **words(tensor)).output.sum().backward()
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize("attended", [True, False])
def test_one_tensor_of_inference_mode_does_not_excuse_changes_of_others(attended):
    q, _, v = qkv()
    with torch.inference_mode():
        k = torch.randn(3, 20, 8)
    weights = rg.attend(q, k, v).weights if attended else rg.Weights(q, k, mask=masks.window(3, 3))
    assert weights.entropy().isfinite().all()
    q.zero_()
    with pytest.raises(errors.StaleWeightsError, match="query"):
        weights.entropy()


QUESTIONS = {
    "entropy": lambda weights: weights.entropy(),
    "block": lambda weights: weights.dense(),
    "product": lambda weights: weights @ torch.ones(20, 3),
    "logsumexp": lambda weights: weights.logsumexp(),
    "query": lambda weights: weights.query,
    "snapshot": lambda weights: weights.snapshot().dense(),
}


@pytest.mark.parametrize("question", list(QUESTIONS))
@pytest.mark.parametrize("way", ["attend", "attend in tiles", "Weights", "float16"])
def test_weights_of_inference_mode_answer_about_the_tensors_as_they_were(way, question):
    ask = QUESTIONS[question]
    with torch.inference_mode():
        q, k, v = (t.clone() for t in qkv())
        if way == "float16":
            q, k, v = q.half(), k.half(), v.half()
        if way == "Weights":
            weights = rg.Weights(q, k)
        else:
            weights = rg.attend(q, k, v, plan="tiled" if "tiles" in way else "auto").weights
        expected = rg.Weights(q.clone(), k.clone())
        if way == "float16" and question == "product":
            ask = lambda weights: weights @ torch.ones(20, 3, dtype=torch.float16)  # noqa: E731
        expected = ask(expected)
        q.zero_()
        k.add_(1)
        torch.testing.assert_close(ask(weights), expected)
    torch.testing.assert_close(ask(weights), expected, check_dtype=False)


@pytest.mark.parametrize("what", list(HELD))
def test_weights_of_inference_mode_answer_about_the_terms_as_they_were(what):
    dtype, shape, words = HELD[what]
    with torch.inference_mode():
        q, k, v = (t.clone() for t in qkv())
        tensor = torch.randint(2, shape).to(dtype)
        expected = rg.attend(q, k, v, **words(tensor.clone())).weights.dense()
        weights = rg.attend(q, k, v, **words(tensor)).weights
        tensor.copy_(tensor.roll(1))
        assert torch.equal(weights.dense(), expected)


def test_a_change_of_the_tensors_that_weights_hand_out_is_noticed_in_inference_mode():
    with torch.inference_mode():
        q, k, v = (t.clone() for t in qkv())
        for weights in (rg.attend(q, k, v).weights, rg.Weights(q, k), rg.Weights(q, k).snapshot()):
            weights.query.zero_()
            with pytest.raises(errors.StaleWeightsError, match="query"):
                weights.entropy()


def test_a_change_of_a_normal_tensor_inside_inference_mode_is_noticed():
    q, k, v = qkv()
    with torch.inference_mode():
        weights = rg.attend(q, k, v).weights
        q.zero_()
        with pytest.raises(errors.StaleWeightsError, match="query"):
            weights.entropy()


@pytest.mark.parametrize("what", list(HELD))
def test_a_term_of_inference_mode_that_changes_before_the_backward_pass_does_no_harm(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    with torch.inference_mode():
        tensor = torch.randint(2, shape).to(dtype)
    output = rg.attend(q, k, v, plan="fused", budget=1 << 10, **words(tensor)).output
    expected = torch.autograd.grad(output.square().sum(), (q, k, v), retain_graph=True)
    with torch.inference_mode():
        tensor.copy_(tensor.roll(1))
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), (q, k, v)), expected)
