"""The lesson on the bottleneck: two models that learn side by side, and the stored length table."""

import pytest
import torch

from regard import seq2seq
from regard.errors import ChoiceError
from regard.lab.pages import PAGES, _paired_training
from regard.seq2seq import length_table

PAGE = PAGES["bottleneck"]
SMALL = {"pairs": 500, "longest": 6, "hidden": 16, "steps": 3}


@pytest.fixture(autouse=True)
def one_thread():
    """As a worker of the server has it on two cores; more threads wait for each other where other tests run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def show(**state):
    return PAGE.show(PAGE.read({**SMALL, **state}))


def test_events_of_a_training_are_its_result_and_its_code_computes_the_same():
    state = PAGE.read(SMALL)
    first, *events, last = PAGE.train(state)
    assert first == {"step": 0, "seconds": 0.0} and last["done"] and last["step"] == 3
    steps = [event for event in events if "losses" in event]
    tests = [event for event in events if "length" in event]
    shown = show()
    assert [event["step"] for event in steps] == [1, 2, 3]
    assert [list(losses) for losses in zip(*(event["losses"] for event in steps), strict=True)] == shown["losses"]
    assert [event["length"] for event in tests] == shown["lengths"] == [3, 4, 5, 6, 7, 8, 9]
    assert [event["sample"] for event in tests] == shown["samples"]
    computed: dict = {}
    exec(compile(PAGE.code(state), "page", "exec"), computed)  # noqa: S102  that is what the copy button is for
    assert computed["losses"] == shown["losses"] and computed["exact_match"] == shown["exact_match"]


def test_a_state_that_was_not_trained_has_no_result():
    shown = show(seed=12345)
    assert {shown[name] for name in ("exact_match", "losses", "samples", "seconds")} == {None}


def test_one_training_runs_at_a_time_and_ends_when_nobody_listens():
    running = PAGE.train(PAGE.read(SMALL))
    next(running)
    assert list(PAGE.train(PAGE.read(SMALL))) == [{"busy": True}]
    running.close()
    other = PAGE.train(PAGE.read(SMALL))
    assert next(other) == {"step": 0, "seconds": 0.0}
    other.close()


@pytest.mark.parametrize("longest", [6, 20, 30])
def test_sentences_of_the_test_are_not_learned_from(longest):
    lengths = _paired_training.test_lengths(longest)
    learned, tests = _paired_training.task_data(longest, 500, 3)
    assert longest in lengths and lengths == sorted(lengths) and lengths[0] >= 3
    assert len([length for length in lengths if length > longest]) == 3
    seen = {pair.source for pair in learned}
    for length, group in zip(lengths, tests, strict=True):
        assert len(group) == 24
        assert {len(pair.source.split()) for pair in group} == {length} and not seen & {pair.source for pair in group}


def test_models_differ_in_attention_alone():
    fixed, attentive = (trainer.model for trainer in _paired_training.PairedTraining(_task()).trainers)
    assert {name for name in fixed.settings if fixed.settings[name] != attentive.settings[name]} == {"attention"}


def _task():
    return _paired_training.Task(longest=6, hidden=16, steps=2, pairs=500, seed=0)


def test_what_was_attended_are_the_largest_weights_of_the_first_sentence():
    training = _paired_training.PairedTraining(_task())
    list(training.events())
    score = training.result.scores[2]
    translation = training.trainers[1].model.translate([pair.source for pair in training.tests[2]], beam=1)[0]
    assert score.sample.tokens == list(translation.tokens)
    for row, places in zip(translation.weights.dense().tolist(), score.sample.attended, strict=True):
        assert [weight for _, weight in places] == pytest.approx(sorted(row, reverse=True)[:3])
        assert [row[place] for place, _ in places] == pytest.approx([weight for _, weight in places])


def test_memory_of_attention_grows_with_the_sentence():
    long, short = show(hidden=64, longest=20, words=29)["memory"], show(hidden=64, longest=20, words=5)["memory"]
    assert (long["fixed"], long["attention"]) == (64, 29 * 64)
    assert (short["fixed"], short["attention"]) == (64, 5 * 64)


def test_stored_table_is_the_one_that_comes_with_regard():
    cells = length_table.read()
    for cell, sent in zip(cells, show()["table"], strict=True):
        assert (sent["data"], sent["model"], sent["minutes"]) == (cell.data, cell.model, cell.minutes)
        assert [row["exact_match"] for row in sent["rows"]] == [row.exact_match for row in cell.rows]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"hidden": 24}, "hidden must be a multiple of 16, 24 came"),
        ({"longest": 31}, "longest must be from 6 to 30, 31 came"),
        ({"steps": 10**6}, "steps must be from 1 to 2000, 1000000 came"),
        ({"data": "en-de"}, "data must be one of numbers, en-fr, 'en-de' came"),
    ],
)
def test_settings_that_no_training_has_are_refused(state, message):
    with pytest.raises(ChoiceError, match=message):
        PAGE.read(state)


def test_models_that_a_lesson_compares_are_those_of_the_library():
    for name in _paired_training.MODELS:
        assert seq2seq.Seq2Seq(name).settings["attention"] == name
