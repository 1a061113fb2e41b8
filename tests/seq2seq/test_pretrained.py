"""Models that come with regard: each is what its checksum says, small, and does what its card says."""

import json
import shutil

import pytest
import torch

from regard import datasets, seq2seq
from regard.errors import DamageError
from regard.seq2seq import checkpoint, pretrained

NAMES = list(json.loads(pretrained.CHECKSUMS.read_text()))
MOST_BYTES = 25_000_000  # of all models together


@pytest.mark.parametrize("name", NAMES)
def test_model_opens_and_translates_with_weights_of_its_tokens(name):
    model = seq2seq.load(name)
    text = "three hundred five" if name.startswith("numbers") else "i mistook him for my brother ."
    found = model.translate(text)
    assert found.text and found.finished
    if name.endswith("/none"):
        assert found.weights is None
    else:
        assert tuple(found.weights.shape[-2:]) == (len(found.tokens), len(found.source_tokens))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("numbers")])
def test_numbers_are_translated_as_well_as_the_card_says(name):
    _, about = checkpoint.read(pretrained.weights_path(name))
    fresh = datasets.numbers(200, words=(1, 20), seed=12345)
    result = seq2seq.evaluate(seq2seq.load(name), fresh, beam=1)
    assert result.exact_match > about["figures"]["exact_match"] - 0.05


def test_weights_are_small_and_in_float16():
    assert sum(path.stat().st_size for path in pretrained.WEIGHTS.iterdir()) <= MOST_BYTES
    for name in NAMES:
        tensors, _ = checkpoint.read(pretrained.weights_path(name))
        assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}


def test_damaged_weights_are_refused(monkeypatch, tmp_path):
    shutil.copytree(pretrained.WEIGHTS, tmp_path / "weights")
    monkeypatch.setattr(pretrained, "WEIGHTS", tmp_path / "weights")
    path = pretrained.weights_path(NAMES[0])
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamageError, match="is damaged, its sha256 is not"):
        seq2seq.load(NAMES[0])


def test_card_names_every_model():
    card = (pretrained.WEIGHTS / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in card for name in NAMES)
