"""Texts of tokens that weights of a recording know."""

import pickle

import pytest
import torch
from letter_recording import Letters, recorded

import regard as rg


def test_weights_of_a_recording_know_their_tokens():
    recording = recorded([[2, 0, 19]], tokenizer=Letters())
    assert recording["first"].labels == (("c", "a", "t"), ("c", "a", "t"))
    assert recording["first", 0, 1].labels.key == ("c", "a", "t")
    assert recording.calls[1].weights().labels.query == ("c", "a", "t")


def test_without_a_tokenizer_they_are_ids():
    assert recorded([[2, 0, 19]])["second"].labels.key == ("2", "0", "19")


def test_weights_without_a_recording_have_no_labels():
    assert rg.Weights(torch.eye(3), torch.eye(3)).labels == (None, None)


def test_a_batch_of_several_sequences_has_labels_for_each():
    whole = recorded([[2, 0, 19], [3, 14, 6]], tokenizer=Letters())["first"]
    assert whole.labels == (None, None)
    assert whole.select(batch=1).labels.key == ("d", "o", "g")
    assert whole.head(2).select(batch=0).labels.key == ("c", "a", "t")
    assert whole.select(batch=-1, head=0).snapshot().labels.key == ("d", "o", "g")


@pytest.mark.parametrize("where", ["memory", "file"])
def test_labels_survive_a_pickle_and_do_not_keep_the_recording(where, tmp_path):
    recording = recorded([[2, 0, 19], [3, 14, 6]], tokenizer=Letters())
    if where == "file":
        recording.save(tmp_path / "run.regard")
        recording = rg.open(tmp_path / "run.regard")
    pickled = pickle.dumps(recording["first"])
    assert pickle.loads(pickled).select(batch=1).labels.query == ("d", "o", "g")  # noqa: S301  our own bytes
    assert b"Recording" not in pickled


def test_each_step_has_its_own_labels():
    recording = recorded([[2, 0, 18]], steps=2, tokenizer=Letters())
    assert recording["first", 1].labels.key == ("d", "b", "t")
