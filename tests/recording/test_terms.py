"""Every formula comes back from a file as it went in, and one head of it alone."""

import mmap
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from strategies import MASKS, NORMALISERS, SCORES, Sizes, problem, problems

import regard as rg
from regard import normalisers
from regard.errors import ChoiceError, RecordError, RecordingFileError
from regard.masks._base import Part
from regard.masks._rules import Near, QueryLengths
from regard.recording import Call, Recording
from regard.recording._codec import unpack
from regard.recording._term_codec import decode
from regard.scores import Score
from regard.scores._base import ScorePart
from regard.term import TERMS, Term

FOUR = Sizes((2, 3), 5, 17, 7, 7, 11)
GROUPED = Sizes((2, 6), 5, 17, 7, 7, 11, kv_heads=3)


def through_a_file(weights, step=0):
    """The weights as a recording in a file gives them, and the recording."""
    recording = Recording([Call.of_weights("layer", step, weights)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.regard"
        recording.save(path)
        stored = rg.open(path)
        assert stored.verify() == []
        return stored["layer"], stored  # the map stays when the name is gone


@given(problems(normaliser=tuple(NORMALISERS)))
def test_any_formula_is_the_same_after_save_and_open(case):
    weights = case.weights()
    found, stored = through_a_file(weights)
    assert torch.equal(found.dense(), weights.dense())
    assert repr(found.spec) == repr(weights.spec)
    assert stored.layers[0].shape == tuple(weights.shape)


@pytest.mark.parametrize("sizes", [FOUR, GROUPED], ids=["heads", "grouped heads"])
@pytest.mark.parametrize(
    "terms",
    [*((s,) for s in SCORES), *(("scaled_dot", m) for m in MASKS), *(("dot", "causal", n) for n in NORMALISERS)],
)
def test_one_head_of_a_stored_call_is_that_head(terms, sizes):
    weights = problem(*terms, sizes=sizes).weights()
    found, stored = through_a_file(weights)
    dense = weights.dense()
    assert torch.equal(found.dense(), dense)
    in_memory = Recording([Call.of_weights("layer", 0, weights)])
    for head in (0, sizes.lead[1] - 1):
        for recording in (stored, in_memory):
            torch.testing.assert_close(recording["layer", 0, head].dense(), dense[:, head : head + 1])


def test_terms_of_layers_come_back_too():
    q, k = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7)
    places = torch.rand(2, 3, 5) * 11
    for terms in (
        {"mask": QueryLengths(torch.randint(1, 11, (2, 3, 5)))},
        {"mask": Near(places, 2)},
        {"normaliser": normalisers.Tapered(places, 11, 1.5)},
        {"normaliser": normalisers.hard(sample=True, generator=torch.Generator().manual_seed(1))},
    ):
        weights = rg.Weights(q, k, **terms)
        found, stored = through_a_file(weights)
        assert torch.equal(found.dense(), weights.dense())
        torch.testing.assert_close(stored["layer", 0, 2].dense(), weights.dense()[:, 2:])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_stored_tensors_keep_their_dtype(dtype):
    weights = rg.Weights(torch.randn(2, 3, 5, 7).to(dtype), torch.randn(2, 3, 11, 7).to(dtype))
    found, stored = through_a_file(weights)
    assert torch.equal(found.query, weights.query) and torch.equal(found.key, weights.key)
    assert found.dtype == dtype
    assert stored.bytes == (2 * 3 * 5 * 7 + 2 * 3 * 11 * 7) * dtype.itemsize


def test_a_mask_without_a_form_takes_bits():
    seen = torch.rand(2, 3, 5, 19) < 0.5
    q, k = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 19, 7)
    found, stored = through_a_file(rg.Weights(q, k, mask=rg.masks.allow(seen)))
    assert torch.equal(found.spec.mask.visible, seen)
    assert stored.bytes == (q.numel() + k.numel()) * 4 + 2 * 3 * 5 * 3
    assert stored.layers[0].mask == f"its own mask, {-(-seen.numel() // 8)} bytes"


def test_every_concrete_term_of_the_library_is_registered():
    def leaves(kind):
        return [leaf for sub in kind.__subclasses__() for leaf in leaves(sub)] or [kind]

    ours = {kind for kind in leaves(Term) if kind.__module__.startswith("regard.")}
    ours -= {Part, ScorePart}  # rectangles of another term, which no file holds
    assert ours == {term for term in TERMS.values() if term.__module__.startswith("regard.")}
    assert all(name == term.term_name for name, term in TERMS.items())


class Stranger(Score):
    pass


def test_a_term_that_is_no_dataclass_is_refused_by_name(tmp_path):
    call = Call.of_weights("layer", 0, rg.Weights(torch.randn(3, 2), torch.randn(5, 2)))
    object.__setattr__(call.spec, "score", Stranger())
    with pytest.raises(RecordError, match="Stranger is no word"):
        Recording([call]).save(tmp_path / "run.regard")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        ({"word": "eval"}, "the word 'eval'"),
        ({"word": ["Dot"]}, "does not know"),
        ({"word": "Dot"}, "has the fields scale"),
        ({"word": "Dot", "scale": 1.0, "code": "x"}, "code, scale"),
        ({"word": "Dot", "scale": "1"}, "score.scale should be float or NoneType"),
        ({"word": "Dot", "scale": True}, "score.scale should be"),
        ({"word": "Dot", "scale": {"array": "x"}}, "score.scale should be"),
        ({"word": "Bias", "t": 1.0}, "score.t should be Tensor"),
        ({"word": "Softmax"}, "score should be Score"),
        ({"word": "Softcap", "inner": {"word": "Prefix", "length": 3}, "cap": 1.0}, "score.inner should be Score"),
        ({"word": "Softcap", "inner": None, "cap": 1.0}, "score.inner should be Score"),
        (None, "score should be Score"),
        ([], "score should be Score"),
        ({}, "score should be Score"),
    ],
)
def test_a_tree_that_is_no_formula_is_refused(tree, complaint):
    with pytest.raises(RecordingFileError, match=complaint):
        decode(tree, Score, "score", lambda *_: torch.zeros(1))


def test_numbers_that_json_does_not_have_come_back():
    q, k = torch.randn(3, 2), torch.randn(5, 2)
    found, _ = through_a_file(rg.Weights(q, k, score=rg.scores.cosine(float("inf"))))
    assert found.spec.score.temperature == float("inf")


def test_a_head_that_is_not_there_is_refused():
    recording = Recording([Call.of_weights("layer", 0, rg.Weights(torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7)))])
    with pytest.raises(ChoiceError, match="has heads 0 to 2"):
        recording["layer", 0, 3]
    flat = Recording([Call.of_weights("layer", 0, rg.Weights(torch.randn(5, 7), torch.randn(5, 7)))])
    with pytest.raises(ChoiceError, match="has no heads"):
        flat["layer", 0, 0]


def test_a_tensor_of_a_file_is_a_view_of_it_and_writes_nothing_back(tmp_path):
    path = tmp_path / "run.regard"
    Recording([Call.of_weights("layer", 0, rg.Weights(torch.randn(5, 7), torch.randn(5, 7)))]).save(path)
    before = path.read_bytes()
    recording = rg.open(path)
    (entry,), reader = recording.entries, recording._index.reader
    array = reader.array(entry.group.arrays["query"])
    assert isinstance(array.base, mmap.mmap)
    assert np.shares_memory(unpack({"array": "query"}, array).numpy(), array)
    recording.calls[0].query.zero_()
    assert path.read_bytes() == before
