"""The training loss and dropout against torch's own."""

import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from regard.seq2seq import dropout, loss


def inputs(tokens, dtype=torch.float64):
    made = [torch.randn(*shape, dtype=dtype) for shape in ((tokens, 5), (11, 5), (11,))]
    return [t.requires_grad_() for t in made], torch.randint(11, (tokens,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 1000])
def test_loss_and_gradients_equal_cross_entropy(monkeypatch, rows, smoothing):
    monkeypatch.setattr(loss, "ROWS", rows)
    (x, w, b), y = inputs(7)
    found = loss.output_loss(x, w, b, y, smoothing)
    grads = torch.autograd.grad(3 * found, (x, w, b))
    expected = cross_entropy(linear(x, w, b), y, label_smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    for grad, wanted in zip(grads, torch.autograd.grad(3 * expected, (x, w, b)), strict=True):
        torch.testing.assert_close(grad, wanted)


def test_loss_of_large_scores_is_finite():
    (x, w, b), y = inputs(4, torch.float32)
    found = loss.output_loss(1e4 * x, w, b, y, 0.1)
    torch.testing.assert_close(found, cross_entropy(linear(1e4 * x, w, b), y, label_smoothing=0.1), rtol=1e-4, atol=0)


def test_bfloat16_gradients_are_right_to_a_percent():
    x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((300, 64), (500, 64), (500,)))
    y = torch.randint(500, (300,))
    low, high = (torch.autograd.grad(loss.output_loss(x, w / 8, b, y, 0.1, t), (x, w, b)) for t in loss_dtypes())
    for one, other in zip(low, high, strict=True):
        assert (one - other).norm() < 0.01 * other.norm()


def loss_dtypes():
    return torch.bfloat16, torch.float32


def test_dropout_keeps_the_mean_and_drops_its_share():
    layer = dropout.Dropout(0.25)
    x = torch.ones(1000, 1003)
    dropped = layer(x)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=2e-3)
    assert dropped.mean() == pytest.approx(1, abs=3e-3)
    torch.manual_seed(1)
    first = layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first)
    assert layer.eval()(x) is x
