import pytest
import torch

import regard as rg
from regard import datasets, scores
from regard.errors import ChoiceError


def test_sine_is_the_curve_plus_noise():
    data = datasets.sine(n=20_000)
    noise = data.y_train - (2 * torch.sin(data.x_train) + data.x_train**0.8)
    assert noise.mean().abs() < 0.02
    assert abs(noise.std() - 0.5) < 0.02
    assert torch.equal(data.x_train, data.x_train.sort().values)
    assert data.x_train.min() >= 0
    assert data.x_train.max() <= 5
    assert abs(data.x_train.mean() - 2.5) < 0.05


def test_sine_is_tested_on_a_grid_without_noise():
    data = datasets.sine()
    torch.testing.assert_close(data.x_test, torch.arange(50) / 10)
    torch.testing.assert_close(data.y_truth, 2 * torch.sin(data.x_test) + data.x_test**0.8)
    assert data.y_truth[0] == 0


def test_sine_sizes_and_dtype():
    data = datasets.sine(n=7)
    assert [tuple(part.shape) for part in data] == [(7,), (7,), (50,), (50,)]
    assert {part.dtype for part in data} == {torch.float32}


def test_sine_depends_on_its_seed_alone():
    before = torch.get_rng_state()
    first = datasets.sine(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert torch.equal(datasets.sine(seed=3).y_train, first.y_train)
    assert not torch.equal(datasets.sine(seed=4).y_train, first.y_train)


def test_sine_refuses_no_points():
    with pytest.raises(ChoiceError, match="n must be at least 1: the number of training points came as 0"):
        datasets.sine(n=0)


def test_desk_has_texts_in_two_languages():
    desk = datasets.desk()
    assert len(desk.names) == len(desk.names_zh) == len(desk.keys) == len(desk.values) == 5
    assert len(desk.features) == len(desk.features_zh) == desk.keys.shape[1] == desk.query.shape[1]


def test_same_desk_two_answers():
    desk = datasets.desk()
    by_saliency = scores.uniform() + scores.bias(desk.keys @ desk.saliency)
    seen, glance = rg.attend(desk.query, desk.keys, desk.values, score=by_saliency)
    read, search = rg.attend(desk.query, desk.keys, desk.values, score=scores.dot())
    assert desk.names[glance.top(1).indices[0, 0]] == "red coffee cup"
    assert desk.names[search.top(1).indices[0, 0]] == "book"
    torch.testing.assert_close(glance.dense().sum(-1), torch.ones(1))
    torch.testing.assert_close(search.dense().sum(-1), torch.ones(1))
    assert seen[0].argmax() == 0  # what is seen is red
    assert (read - desk.values[4]).norm() < (read - desk.values[2]).norm()


def test_a_glance_does_not_depend_on_what_is_wanted():
    desk = datasets.desk()
    by_saliency = scores.uniform() + scores.bias(desk.keys @ desk.saliency)
    wants = torch.randn(3, 4)
    rows = rg.Weights(wants, desk.keys, score=by_saliency).dense()
    torch.testing.assert_close(rows, rows[:1].expand(3, 5))


def test_worked_example_to_four_decimals():
    example = datasets.worked_example()
    output, weights = rg.attend(example.tokens, example.tokens, example.tokens)
    torch.testing.assert_close(example.tokens @ example.tokens.mT / 2, example.scores)
    torch.testing.assert_close(weights.dense(), example.weights, atol=5e-5, rtol=0)
    torch.testing.assert_close(output, example.weights @ example.tokens, atol=5e-4, rtol=0)


def test_sine_without_noise_is_the_curve():
    data = datasets.sine(n=11, noise=0.0)
    torch.testing.assert_close(data.y_train, 2 * torch.sin(data.x_train) + data.x_train**0.8)
    loud, still = datasets.sine(n=11, noise=1.0), datasets.sine(n=11)
    torch.testing.assert_close(loud.y_train - data.y_train, 2 * (still.y_train - data.y_train))
    with pytest.raises(ChoiceError, match="noise is a standard deviation, 0 or more, and came as -1"):
        datasets.sine(noise=-1.0)


def test_scenes_are_offered_by_name():
    assert torch.equal(datasets.scene("desk").keys, datasets.desk().keys)
    with pytest.raises(ChoiceError, match="the scenes are desk, room, cats, library, photo, not 'sea'"):
        datasets.scene("sea")
