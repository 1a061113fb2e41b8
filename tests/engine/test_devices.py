"""Data on another device: everything is computed on that device, or refused with a message."""

import numpy as np
import pytest
import torch
from fake_device import DEVICE, DeviceTensor, fake_device

import regard as rg
from regard import masks, normalisers, scores
from regard.regression.kernel_sums import engine

LEAD, N, M, DIM = (2, 3), 37, 53, 8


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def device():
    with fake_device() as name:
        yield name


class TestFakeDevice:
    """It must refuse what a graphics card refuses, or nothing below would be a test."""

    def test_the_fake_device_computes(self, device):
        x = draw(5, 7)
        on_device = x.to(device)
        assert on_device.device.type == DEVICE
        assert isinstance(on_device.mT @ on_device + torch.ones(7, device=device), DeviceTensor)
        torch.testing.assert_close((on_device @ on_device.mT).cpu(), x @ x.mT)

    def test_the_fake_device_refuses_tensors_of_the_cpu(self, device):
        with pytest.raises(RuntimeError, match="same device"):
            draw(5).to(device) + draw(5)

    def test_numpy_cannot_read_the_fake_device(self, device):
        with pytest.raises(TypeError, match="numpy"):
            draw(5).to(device).numpy()


SCORES = {
    "scaled_dot": lambda d: scores.scaled_dot(),
    "cosine": lambda d: scores.cosine(),
    "general": lambda d: scores.general(draw(DIM, DIM).to(d)),
    "additive": lambda d: scores.additive(draw(5, DIM).to(d), draw(5, DIM, seed=1).to(d), draw(5).to(d)),
    "location": lambda d: scores.location(draw(M, DIM).to(d)),
    "gaussian": lambda d: scores.gaussian(0.7),
    "kernel": lambda d: scores.kernel("biweight", 2.0),
    "alibi": lambda d: scores.scaled_dot() + scores.alibi(draw(3).abs().to(d)),
    "bias": lambda d: scores.dot() + scores.bias(draw(N, M).to(d)),
    "softcap": lambda d: scores.softcap(scores.dot(), 2.0),
}
MASKS = {
    "none": lambda d: None,
    "causal": lambda d: masks.causal(align="bottom-right"),
    "window": lambda d: masks.window(5, 3, align="top-left"),
    "padding": lambda d: masks.padding(torch.tensor([11, 53]).to(d)),
}
QUESTIONS = {
    "entropy": lambda w: w.entropy(),
    "received": lambda w: w.received(),
    "saturation": lambda w: w.saturation(),
    "top": lambda w: w.top(3).values,
    "heatmap": lambda w: w.heatmap(8),
    "empty_rows": lambda w: w.empty_rows().float(),
    "block": lambda w: w[0, 1, 3:9, 2:7],
    "mT": lambda w: w.mT @ torch.ones(N, 1).to(w.query.device),
}


def attention(device, score, mask, plan="auto", normaliser=None):
    query, key, value = (draw(*LEAD, n, DIM, seed=i).to(device) for i, n in enumerate((N, M, M)))
    return rg.attend(query, key, value, SCORES[score](device), MASKS[mask](device), normaliser, plan=plan)


def assert_same(on_device, on_cpu):
    assert isinstance(on_device, DeviceTensor)
    torch.testing.assert_close(on_device.cpu(), on_cpu, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("score", SCORES)
def test_attention_is_computed_on_the_device(score, mask, plan):
    on_cpu = attention("cpu", score, mask, plan).output
    with fake_device() as device:
        assert_same(attention(device, score, mask, plan).output, on_cpu)


@pytest.mark.parametrize("plan", ["auto", "tiled"])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(("score", "mask"), [("scaled_dot", "none"), ("gaussian", "causal"), ("additive", "padding")])
def test_questions_are_answered_on_the_device(score, mask, question, plan):
    ask = QUESTIONS[question]
    on_cpu = ask(attention("cpu", score, mask, plan).weights)
    with fake_device() as device:
        assert_same(ask(attention(device, score, mask, plan).weights), on_cpu)


@pytest.mark.parametrize("normaliser", [normalisers.sparsemax(), normalisers.entmax15(), normalisers.hard()])
def test_normalisers_compute_on_the_device(normaliser):
    on_cpu = attention("cpu", "scaled_dot", "causal", normaliser=normaliser).output
    with fake_device() as device:
        assert_same(attention(device, "scaled_dot", "causal", normaliser=normaliser).output, on_cpu)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
@pytest.mark.parametrize("score", ["scaled_dot", "gaussian", "kernel", "softcap"])
def test_gradients_are_computed_on_the_device(score, plan):
    def gradients(device):
        inputs = [draw(*LEAD, n, DIM, seed=i).to(device).requires_grad_() for i, n in enumerate((N, M, M))]
        output = rg.attend(*inputs, SCORES[score](device), plan=plan).output
        return torch.autograd.grad(output.square().sum(), inputs)

    on_cpu = gradients("cpu")
    with fake_device() as device:
        for on_device, gradient in zip(gradients(device), on_cpu, strict=True):
            assert_same(on_device, gradient)


def table(rows, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, 2))


def target(x):
    return np.sin(2 * x[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=len(x))


ASKED = {
    "predict": lambda m, x: m.predict(x),
    "far": lambda m, x: m.predict(x + 1e4),
    "std": lambda m, x: m.predict(x, return_std=True)[1],
    "band": lambda m, x: m.confidence_band(x)[0],
    "derivative": lambda m, x: m.derivative(x),
    "weights": lambda m, x: (m.weights(x) @ m._tensor(m.y_[:, None])).numpy(force=True),
    "leverage": lambda m, x: m.leverage(),
    "left out": lambda m, x: m.loo_residuals_,
    "cv": lambda m, x: m.cv_,
}


class TestRegression:
    @pytest.mark.parametrize("asked", ASKED)
    @pytest.mark.parametrize("degree", [0, 1])
    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
    def test_every_answer_equals_that_of_the_cpu(self, kernel, degree, asked):
        x, queries, ask = table(97), table(31, 1), ASKED[asked]

        def answer(device):
            model = rg.NadarayaWatson(bandwidth=0.4, kernel=kernel, degree=degree, device=device).fit(x, target(x))
            return ask(model, queries)

        on_cpu = answer("cpu")
        with fake_device() as device:
            np.testing.assert_allclose(answer(device), on_cpu, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("degree", [0, 1])
    @pytest.mark.parametrize("categorical", [None, [1]])
    def test_the_same_bandwidth_is_selected(self, degree, categorical):
        x = table(97)
        x[:, 1] = x[:, 1] > 0

        def answer(device):
            return rg.NadarayaWatson(degree=degree, categorical=categorical, device=device).fit(x, target(x)).bandwidth_

        on_cpu = answer("cpu")
        with fake_device() as device:
            np.testing.assert_array_equal(answer(device), on_cpu)

    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    @pytest.mark.parametrize("plan", ["auto", "pairs"])
    def test_predictions_from_many_pairs_equal_those_of_the_cpu(self, kernel, plan, monkeypatch):
        monkeypatch.setattr(engine, "EXACT_PAIRS", 0)
        x, queries = table(997), table(313, 1)

        def answer(device):
            model = rg.NadarayaWatson(bandwidth=0.4, kernel=kernel, plan=plan, device=device).fit(x, target(x))
            return model.predict(queries)

        on_cpu = answer("cpu")
        with fake_device() as device:
            np.testing.assert_allclose(answer(device), on_cpu, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("plan", ["cells", "fast"])
    def test_what_only_the_processor_can_do_is_refused(self, plan, device):
        x = table(97)
        with pytest.raises(rg.errors.PlanError, match="runs on the processor"):
            rg.NadarayaWatson(bandwidth=0.4, plan=plan, device=device).fit(x, target(x))
