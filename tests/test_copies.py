"""Copies by copy, pickle and torch.save: they work, and what happens to one does nothing to the other."""

import copy
import gc
import io
import os
import pickle

import pytest
import torch
from random_qkv import qkv
from torch import Tensor

import regard as rg
from regard import masks, normalisers, scores
from regard.errors import RecordingFileError, StaleWeightsError
from regard.recording import Call, Recording
from regard.term import Term


def by_torch(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  our own bytes


DEEP = {"deepcopy": copy.deepcopy, "pickle": by_pickle, "torch.save": by_torch}
deep = pytest.mark.parametrize("how", list(DEEP))

N, M, D = 20, 20, 8
SPECS = {
    "plain": {},
    "causal": {"mask": masks.causal()},
    "tiled": {"plan": "tiled", "budget": 1 << 12},
    "terms": {
        "score": scores.softcap(scores.general(torch.randn(D, D)) + scores.bias(torch.randn(N, M)), 3.0),
        "mask": masks.hide(torch.rand(N, M) > 0.7) & (masks.prefix(9) | masks.padding(torch.tensor([3, 4, 5]))),
        "normaliser": normalisers.sparsemax(),
    },
    "drawn": {"normaliser": normalisers.hard(sample=True, generator=torch.Generator())},
    "kernel": {"score": scores.kernel("epanechnikov", torch.tensor(2.0, requires_grad=True))},
}


@deep
@pytest.mark.parametrize("spec", list(SPECS))
@pytest.mark.parametrize("made", ["attend", "Weights"])
def test_a_deep_copy_of_weights_answers_as_they_did_whatever_happens_to_the_tensors(how, spec, made):
    q, k, v = (t.add_(1).sub_(1) for t in qkv())  # they have been changed in place before
    options = SPECS[spec]
    weights = rg.attend(q, k, v, **options).weights if made == "attend" else rg.Weights(q, k, **options)
    expected, pooled = weights.dense(), weights @ v
    twin = DEEP[how](weights)
    assert torch.equal(twin.dense(), expected)
    torch.testing.assert_close(twin @ v, pooled)
    assert repr(twin) == repr(weights)
    assert torch.equal(twin.mT.dense(), DEEP[how](weights.mT).dense())
    q.zero_()
    assert torch.equal(twin.dense(), expected)
    with pytest.raises(StaleWeightsError, match="query"):
        DEEP[how](weights)
    twin.query.zero_()
    with pytest.raises(StaleWeightsError, match="query"):
        twin.dense()


@deep
def test_weights_inside_a_graph_and_in_inference_mode_can_be_copied(how):
    q, k, v = (t.requires_grad_() * 2 for t in qkv())
    weights = rg.attend(q, k, v).weights
    assert torch.equal(DEEP[how](weights).dense(), weights.dense())
    assert not DEEP[how](weights).query.requires_grad
    with torch.inference_mode():
        weights = rg.attend(*(t * 2 for t in qkv())).weights
        assert torch.equal(DEEP[how](weights).dense(), weights.dense())
    assert torch.equal(DEEP[how](weights).dense(), weights.dense())


def test_a_pickle_of_weights_holds_no_more_than_they_need():
    whole = torch.randn(1000, 50, D)
    weights = rg.Weights(whole[0], whole[1])
    assert len(pickle.dumps(weights)) < 20_000


def test_a_shallow_copy_is_the_same_matrix():
    q, k, v = qkv()
    for weights in (rg.attend(q, k, v).weights, rg.Weights(q, k)):
        twin = copy.copy(weights)
        assert twin.query is weights.query
        assert torch.equal(twin.dense(), weights.dense())
    q.zero_()
    with pytest.raises(StaleWeightsError):
        twin.dense()


@deep
def test_the_result_of_attend_can_be_copied(how):
    q, k, v = (t.add_(1) for t in qkv())
    result = rg.attend(q, k, v)
    twin = DEEP[how](result)
    assert type(twin) is type(result)
    assert torch.equal(twin.output, result.output) and torch.equal(twin.weights.dense(), result.weights.dense())


def tensors_of(value):
    if isinstance(value, Tensor):
        return [value]
    return [t for part in vars(value).values() for t in tensors_of(part)] if isinstance(value, Term) else []


@deep
@pytest.mark.parametrize("family", ["SCORES", "MASKS", "NORMALISERS"])
def test_every_term_can_be_copied_and_its_tensors_are_its_own(how, family):
    import test_terms

    for make in getattr(test_terms, family):
        term = make()
        twin = DEEP[how](term)
        assert twin.signature == term.signature
        assert len(tensors_of(twin)) == len(tensors_of(term))
        for one, other in zip(tensors_of(twin), tensors_of(term), strict=True):
            assert torch.equal(one, other)
            assert one.data_ptr() != other.data_ptr()


def recorded(path=None):
    model = rg.nn.SelfAttention(12, 3)
    with torch.no_grad(), rg.record(model, path=path) as recording:
        model(torch.randn(2, 7, 12))
    return recording


@deep
def test_recordings_and_calls_in_memory_can_be_copied(how):
    recording = recorded()
    expected = recording["SelfAttention"].dense()
    twin, call = DEEP[how](recording), DEEP[how](recording.calls[0])
    assert isinstance(twin, Recording) and isinstance(call, Call)
    recording.calls[0].query.zero_()
    recording.miss("later", "only in the first")
    assert twin.missing == ()
    assert torch.equal(twin["SelfAttention"].dense(), expected)
    assert torch.equal(call.weights().dense(), expected)


@deep
def test_a_copy_of_a_recording_in_a_file_has_a_file_of_its_own(how, tmp_path):
    path = tmp_path / "run.regard"
    recorded(path)
    recording = rg.open(path)
    expected = recording["SelfAttention"].dense()
    twin, entry, call = (DEEP[how](value) for value in (recording, recording.entries[0], recording.calls[0]))
    del recording
    gc.collect()
    (tmp_path / "other").write_bytes(b"other bytes")
    other = [os.open(tmp_path / "other", os.O_RDONLY) for _ in range(20)]  # they take the numbers of closed files
    assert twin.path == path
    assert torch.equal(twin["SelfAttention"].dense(), expected)
    assert torch.equal(entry.load().weights().dense(), expected)
    assert torch.equal(call.weights().dense(), expected)
    for descriptor in other:
        os.close(descriptor)


def test_a_pickled_recording_refuses_a_file_that_has_been_replaced(tmp_path):
    path = tmp_path / "run.regard"
    recorded(path)
    pickled = pickle.dumps(rg.open(path))
    path.unlink()
    recorded(path)
    with pytest.raises(RecordingFileError, match="is another recording than the one that was copied"):
        pickle.loads(pickled)  # noqa: S301
