"""A recording by number and by name: recording[3], len, iteration, keys, in, words, calls."""

import numpy as np
import pytest
import torch
from letter_recording import Letters, recorded

import regard as rg
from regard.errors import ChoiceError, PositionError
from regard.recording import Recording


@pytest.fixture(scope="module", params=["memory", "file"])
def recording(request, tmp_path_factory) -> Recording:
    """Two layers, "first" and "second", two steps, a batch of two."""
    made = recorded([[2, 0, 18], [3, 14, 6]], steps=2, tokenizer=Letters())
    if request.param == "memory":
        return made
    path = tmp_path_factory.mktemp("mapping") / "run.regard"
    made.save(path)
    return rg.open(path)


def test_a_number_is_the_place_of_a_layer(recording):
    for number, layer in enumerate(recording.layers):
        for step in layer.steps:
            assert torch.equal(recording[number, step].dense(), recording[layer.name, step].dense())
            assert torch.equal(recording[number - 2, step - 2].dense(), recording[layer.name, step].dense())
    assert torch.equal(recording[0, 1, -1].dense(), recording["first", 1, 2].dense())
    assert recording[np.int64(1), 0].shape == (2, 2, 3, 3)


def test_one_step_needs_no_number():
    once = recorded([[2, 0, 19]])
    assert once[1].shape == once[-1].shape == (1, 2, 3, 3)
    assert torch.equal(once[0].dense(), once["first"].dense())


def test_names_are_those_of_a_mapping(recording):
    assert len(recording) == 2
    assert list(recording) == list(recording.keys()) == ["first", "second"]
    assert "first" in recording
    assert "third" not in recording
    assert 0 not in recording
    assert recording._ipython_key_completions_() == ["first", "second"]
    assert len(repr(recording)) < 300


def test_tab_completes_names_in_ipython(recording):
    from IPython.core.completer import IPCompleter, provisionalcompleter
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    completer = IPCompleter(shell, namespace={"recording": recording})
    with provisionalcompleter():
        completer.use_jedi = False
        offered = {offer.text.strip('"]') for offer in completer.completions('recording["', 11)}
    assert {"first", "second"} <= offered


def test_words_are_the_tokens_of_a_row(recording):
    assert recording.words(step=0) == ["c", "a", "s"]
    assert recording.words(1, 0) == ["d", "o", "g"]
    assert recording.words(row=-1, step=-1) == ["e", "p", "h"]


def test_words_without_a_tokenizer_are_ids():
    assert recorded([[2, 0, 19]]).words() == ["2", "0", "19"]


def test_calls_have_name_step_shape_cross_and_weights(recording):
    calls = recording.calls
    assert [(call.name, call.step) for call in calls] == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]
    assert calls[-1].shape == (2, 2, 3, 3)
    assert not calls[0].cross
    assert torch.equal(calls[2].weights().dense(), recording[0, 1].dense())
    assert [call.name for call in calls[1:3]] == ["second", "first"]


@pytest.mark.parametrize(
    ("typed", "error", "shown"),
    [
        ("recording[2]", PositionError, "there is no layer 2 among 2 layers, counted from 0: first, second"),
        ("recording[0]", ChoiceError, "recorded in steps 0, 1: say which"),
        ("recording[0, 5]", ChoiceError, "'first' has no step 5"),
        ("recording[0, -3]", ChoiceError, "'first' has no step -3"),
        ("recording[True]", ChoiceError, "a layer is a name, or a place in recording.layers, not True"),
        ("recording[1.5]", ChoiceError, "a layer is a name, or a place"),
        ("recording['first', 'last']", ChoiceError, r"ask for recording\[layer\]"),
        ("recording[:]", ChoiceError, "a layer is a name"),
        ("recording[()]", ChoiceError, r"ask for recording\[layer\]"),
        ("recording['fist', 0]", ChoiceError, "no layer 'fist' was recorded; there are: first, second"),
        ("recording.words()", ChoiceError, "in steps 0, 1: say which, words"),
        ("recording.words(0, 7)", ChoiceError, "no token ids were recorded in step 7"),
        ("recording.words(2, 0)", PositionError, "no row 2 in a batch of 2"),
    ],
)
def test_what_is_not_there_is_named(recording, typed, error, shown):
    with pytest.raises(error, match=shown):
        eval(typed, {"recording": recording})  # noqa: S307  our own text


def test_without_token_ids_there_are_no_words():
    layer = rg.nn.SelfAttention(12, 3)
    with torch.no_grad(), rg.record(layer) as recording:
        layer(torch.randn(2, 5, 12))
    with pytest.raises(ChoiceError, match="read no token ids"):
        recording.words()
    assert recording[0].labels == (None, None)
