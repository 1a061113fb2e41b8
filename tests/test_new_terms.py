"""A score, a mask, a normaliser and a kernel from outside the package serve wherever those of the package do."""

import copy
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import regard as rg
from regard import kernels
from regard.errors import ChoiceError, PlanError
from regard.regression.kernel_sums import engine
from regard.scores import Score

BATCH, HEADS, N, M, D, V = 2, 3, 13, 17, 5, 7
EXECUTORS = ["dense", "tiled"]


@pytest.fixture(scope="module")
def new():
    import new_terms

    return new_terms


def inputs(dtype=torch.float64, grad=False):
    generator = torch.Generator().manual_seed(5)
    shapes = (BATCH, HEADS, N, D), (BATCH, HEADS, M, D), (BATCH, HEADS, M, V)
    return [torch.randn(s, generator=generator, dtype=dtype, requires_grad=grad) for s in shapes]


def slopes(**options):
    return torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, **options)


STRIDES = torch.tensor([1, 2, 3])


def formula(q, k, slopes):
    """The weights of Manhattan, Dilated and Cauchy(2), written out."""
    score = -slopes[:, None, None] * (q[..., :, None, :] - k[..., None, :, :]).abs().sum(-1)
    visible = (torch.arange(k.shape[-2]) - torch.arange(q.shape[-2])[:, None]) % STRIDES[:, None, None] == 0
    score = score.masked_fill(~visible, -torch.inf)
    heavy = (1 + (score.amax(-1, keepdim=True) - score) / 2).reciprocal().square()
    return heavy / heavy.sum(-1, keepdim=True)


def terms(new, at):
    return {"score": new.Manhattan(at), "mask": new.Dilated(STRIDES), "normaliser": new.Cauchy(2.0)}


@pytest.mark.parametrize("plan", EXECUTORS)
def test_output_and_gradients_on_every_plan(new, plan):
    q, k, v = inputs(grad=True)
    at = slopes(requires_grad=True)
    output, weights = rg.attend(q, k, v, **terms(new, at), plan=plan, budget=1 << 12)
    assert weights.plan.executor == plan
    expected = formula(q, k, at) @ v
    torch.testing.assert_close(output, expected)
    toward = torch.randn_like(output)
    torch.testing.assert_close(
        torch.autograd.grad(output, (q, k, v, at), toward), torch.autograd.grad(expected, (q, k, v, at), toward)
    )


def test_a_score_without_features_is_refused_by_the_fused_plan_in_words(new):
    q, k, v = inputs()
    with pytest.raises(PlanError, match=r"q - k.* is not an inner product of features"):
        rg.attend(q, k, v, score=new.Manhattan(slopes()), plan="fused")


@pytest.mark.parametrize("plan", [*EXECUTORS, "fused"])
def test_a_score_with_features_runs_on_the_fused_plan_too(new, plan):
    q, k, v = inputs(torch.float32)
    output, weights = rg.attend(q, k, v, score=new.Nearest(0.5), mask=rg.masks.causal("top-left"), plan=plan)
    assert weights.plan.executor == plan
    hidden = ~torch.ones(N, M, dtype=torch.bool).tril()
    dense = torch.softmax((torch.cdist(q, k).square() / -4).masked_fill(hidden, -torch.inf), -1)
    torch.testing.assert_close(output, dense @ v)
    torch.testing.assert_close(weights.dense(), dense)


def test_new_terms_join_those_of_the_package(new):
    q, k, _ = inputs()
    score = rg.scores.softcap(new.Manhattan(slopes()) + rg.scores.alibi(slopes()), 3.0)
    weights = rg.Weights(q, k, score=score, mask=new.Dilated(STRIDES) | ~rg.masks.prefix(4))
    torch.testing.assert_close(weights.dense().sum(-1), torch.ones(BATCH, HEADS, N, dtype=torch.float64))
    assert (
        repr(weights.spec)
        == "softmax(3 tanh((-slope |q - k|₁ - slope |i - j|) / 3) where dilated(strides) | ~prefix(4))"
    )


@pytest.mark.parametrize("plan", EXECUTORS)
def test_new_terms_answer_every_question(new, plan):
    q, k, _ = inputs()
    weights = rg.Weights(q, k, **terms(new, slopes()), plan=plan, budget=1 << 12)
    dense = formula(q, k, slopes())
    torch.testing.assert_close(weights.dense(), dense)
    torch.testing.assert_close(weights[0, 1, 2:5], dense[0, 1, 2:5])
    torch.testing.assert_close(weights.received(), dense.sum(-2))
    torch.testing.assert_close(weights.entropy(), torch.special.entr(dense).sum(-1))
    torch.testing.assert_close(weights.saturation(), dense.square().sum(-1))
    away = (torch.arange(N, dtype=torch.float64)[:, None] - torch.arange(M)).abs()
    torch.testing.assert_close(weights.distance(torch.arange(N)), (dense * away).sum(-1))
    groups = torch.arange(M) % 4
    expected = torch.stack([dense[..., groups == group].sum(-1) for group in range(4)], -1)
    torch.testing.assert_close(weights.mass(groups), expected)
    torch.testing.assert_close(weights.top(3).values, dense.topk(3).values)
    assert weights.heatmap(bins=4).shape[-2:] == (4, 4)
    assert not weights.empty_rows().any()
    x = torch.randn(BATCH, HEADS, M, 2, dtype=torch.float64)
    torch.testing.assert_close(weights @ x, dense @ x)
    torch.testing.assert_close(weights.snapshot().dense(), dense)


def test_new_terms_can_be_drawn(new):
    import matplotlib as mpl

    mpl.use("agg")
    q, k, _ = inputs()
    axes = rg.plot.heatmap(rg.Weights(q, k, **terms(new, slopes()))[0, 1])
    assert axes is not None


class Layer(torch.nn.Module):
    """A layer that returns its weights beside its output."""

    def __init__(self, terms):
        super().__init__()
        self.terms = terms

    def forward(self, q, k, v):
        return rg.attend(q, k, v, **self.terms)


@pytest.fixture
def recorded(new, tmp_path):
    path = tmp_path / "run.regard"
    model = torch.nn.ModuleDict({"layer": Layer(terms(new, slopes()))})
    with torch.no_grad(), rg.record(model) as recording:
        model["layer"](*inputs())
    recording.save(path)
    return path


def test_a_recording_keeps_them_and_cuts_one_head(new, recorded):
    stored = rg.open(recorded)
    q, k, _ = inputs()
    dense = formula(q, k, slopes())
    torch.testing.assert_close(stored["layer"].dense(), dense)
    assert isinstance(stored["layer"].spec.score, new.Manhattan)
    for head in range(HEADS):
        one = stored["layer", 0, head]
        torch.testing.assert_close(one.dense(), dense[:, head : head + 1])
        assert one.spec.score.slopes.shape == one.spec.mask.strides.shape == (1,)


def in_a_fresh_process(code):
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return run.stdout + run.stderr


def test_a_recording_is_refused_by_name_where_its_term_is_not_defined(recorded):
    opens = f"import regard as rg\nrecording = rg.open({str(recorded)!r})\nprint(recording.layers[0].shape)"
    reads = f"{opens}\nprint(recording['layer'].dense().sum())"
    answer = in_a_fresh_process(reads)
    assert "RecordingFileError: score is the word 'Manhattan', which this regard does not know" in answer
    assert str((BATCH, HEADS, N, M)) in answer  # what else the file says is there
    assert f"tensor({BATCH * HEADS * N}." in in_a_fresh_process("import new_terms\n" + reads)


def test_a_kernel_in_a_recording_is_refused_by_name_where_it_is_not_defined(new, tmp_path):
    q, k, v = inputs()
    model = Layer({"score": rg.scores.kernel(new.QUARTIC, 2.0)})
    model = torch.nn.ModuleDict({"layer": model})
    with torch.no_grad(), rg.record(model) as recording:
        model["layer"](q, k, v)
    recording.save(tmp_path / "run.regard")
    found = rg.open(tmp_path / "run.regard")["layer"]
    torch.testing.assert_close(found.dense(), rg.Weights(q, k, score=rg.scores.kernel("quartic-tail", 2.0)).dense())
    answer = in_a_fresh_process(f"import regard as rg\nrg.open({str(tmp_path / 'run.regard')!r})['layer']")
    assert "RecordingFileError: score cannot be read: there is no kernel 'quartic-tail'" in answer


def test_a_second_term_of_one_name_is_refused(new):
    with pytest.raises(ChoiceError, match=r"there is a term 'Manhattan' already, new_terms\.Manhattan"):

        class Manhattan(Score):
            pass

    with pytest.raises(ChoiceError, match="there is a term 'Dot' already"):
        type("Mine", (Score,), {}, term_name="Dot")


def test_an_abstract_base_takes_no_name(new):
    class Base(Score, abstract=True):
        pass

    @dataclass(frozen=True, eq=False)
    class OfTheSameName(Base, term_name="A score of a name of its own"):
        pass

    assert (Base.term_name, OfTheSameName.term_name) == ("", "A score of a name of its own")


# Kernels


def test_a_kernel_serves_as_a_score_by_record_and_by_name(new):
    q, k, v = inputs()
    distance = torch.cdist(q, k) / 2.0
    expected = torch.nn.functional.normalize((1 + distance**4).reciprocal(), 1, -1)
    for kernel in (new.QUARTIC, "quartic-tail"):
        torch.testing.assert_close(rg.attend(q, k, v, score=rg.scores.kernel(kernel, 2.0)).output, expected @ v)


def data(n=300):
    generator = np.random.default_rng(7)
    x = generator.uniform(0, 6, (n, 2))
    return x, np.sin(x[:, 0]) + 0.3 * x[:, 1] + generator.normal(0, 0.1, n)


def of_name(new, name):
    return {"quartic-tail": new.QUARTIC, "parabola": new.PARABOLA}[name]


def value(name, u):
    return 1 / (1 + u**4) if name == "quartic-tail" else np.maximum(1 - u**2, 0)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("name", ["quartic-tail", "parabola"])
def test_regression_with_a_kernel(new, name, degree, tmp_path):
    x, y = data()
    query = x[:40] + 0.01
    model = rg.NadarayaWatson(of_name(new, name), degree=degree).fit(x, y)
    assert np.isfinite(model.bandwidth_[0]) and model.loo_score_ > 0.9
    model = rg.NadarayaWatson(of_name(new, name), bandwidth=(1.5, 2.5), degree=degree).fit(x, y)
    weight = value(name, np.linalg.norm((query[:, None] - x) / (1.5, 2.5), axis=-1))
    expected = []
    for row, w in zip(query, weight, strict=True):
        columns = np.column_stack([np.ones(len(x)), x - row]) if degree else np.ones((len(x), 1))
        expected.append(np.linalg.solve((columns * w[:, None]).T @ columns, (columns * w[:, None]).T @ y)[0])
    np.testing.assert_allclose(model.predict(query), expected, rtol=1e-9)
    model.save(tmp_path / "model")
    again = rg.NadarayaWatson.load(tmp_path / "model")
    assert again.kernel == name
    np.testing.assert_array_equal(again.predict(query), model.predict(query))
    np.testing.assert_allclose(model.weights(query) @ torch.from_numpy(y), expected, rtol=1e-9)
    step = np.array([1e-5, 0])
    change = (model.predict(query + step) - model.predict(query - step)) / 2e-5
    np.testing.assert_allclose(model.derivative(query)[:, 0], change, rtol=1e-5, atol=1e-6)
    low, high = model.confidence_band(query)
    assert (low < model.predict(query)).all() and (high > model.predict(query)).all()


def test_a_kernel_that_matches_one_of_the_package_chooses_the_same_bandwidth(new):
    x, y = data(150)
    ours, theirs = (rg.NadarayaWatson(kernel).fit(x, y) for kernel in ("epanechnikov", new.PARABOLA))
    np.testing.assert_allclose(ours.bandwidth_, theirs.bandwidth_, rtol=1e-2)
    np.testing.assert_allclose(ours.cv_, theirs.cv_, rtol=1e-3)


def test_far_queries_and_pruned_sums_serve_a_kernel(new):
    x, y = (torch.from_numpy(part) for part in data(3000))
    from regard.regression.kernel_sums.sample import Sample

    for kernel in ("quartic-tail", "parabola"):
        sample = Sample(x, y[:, None], torch.tensor([0.2, 0.2], dtype=torch.float64), kernel)
        query = torch.cat((x[:50], x[:3] + 1e4)) if kernel == "quartic-tail" else x[:50]
        by_plan = [engine.pool(sample, query, tol=1e-8, plan=plan).mean for plan in ("pairs", "cells")]
        torch.testing.assert_close(*by_plan, rtol=0, atol=1e-7)


def test_the_fast_plan_refuses_a_kernel_by_name(new):
    with pytest.raises(PlanError, match="the kernel is parabola"):
        rg.NadarayaWatson(new.PARABOLA, bandwidth=0.5, plan="fast").fit(*data())


def test_parameters_stay_as_they_were_given(new):
    from sklearn.base import clone

    model = rg.NadarayaWatson(kernel=new.PARABOLA)
    assert model.get_params()["kernel"] is new.PARABOLA
    assert clone(model).kernel is new.PARABOLA
    assert pickle.loads(pickle.dumps(new.PARABOLA)) is copy.deepcopy(new.PARABOLA) is new.PARABOLA  # noqa: S301  our own


def test_a_model_file_is_refused_by_name_where_its_kernel_is_not_defined(new, tmp_path):
    path = tmp_path / "model"
    rg.NadarayaWatson(new.PARABOLA, bandwidth=2.0).fit(*data(50)).save(path)
    answer = in_a_fresh_process(f"import regard as rg\nrg.NadarayaWatson.load({str(path)!r})")
    assert "FormatError" in answer and "there is no kernel 'parabola'" in answer


def test_constants_that_are_left_out_are_found(new):
    assert new.PARABOLA.canonical_bandwidth == pytest.approx(kernels.epanechnikov.canonical_bandwidth, abs=1e-4)
    square = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)[None]
    ones = torch.ones_like(square)
    lse = torch.zeros(1, dtype=torch.float64)
    ours, theirs = (k.weight_derivative(square, ones, lse, None) for k in (kernels.epanechnikov, new.PARABOLA))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        ({"name": "gaussian", "log_kernel": lambda s: -s, "compact": False}, "there is a kernel 'gaussian' already"),
        ({"name": "grows", "log_kernel": lambda s: s, "compact": False}, "must not grow"),
        ({"name": "ends", "log_kernel": lambda s: -s, "compact": True}, "finite from u = 0 to 1 and -inf beyond"),
        ({"name": "heavy", "log_kernel": lambda s: -torch.log1p(s), "compact": False}, "no finite variance"),
    ],
)
def test_a_kernel_that_cannot_be_is_refused(definition, complaint):
    with pytest.raises(ChoiceError, match=complaint):
        kernels.Kernel(**definition)
    assert definition["name"] == "gaussian" or definition["name"] not in kernels.names()


def test_an_unknown_kernel_is_refused_by_name():
    with pytest.raises(ChoiceError, match="there is no kernel 'gausian'; there are: gaussian, biweight"):
        rg.scores.kernel("gausian")
