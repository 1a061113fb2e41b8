"""What a recording says about itself: layers that are missing, and whether a call was checked against the model."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regard as rg
from regard.errors import ChoiceError
from regard.recording import Call, FileSink, MemorySink, Recording
from regard.recording._reader import Reader
from regard.spec import Spec

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "recording.md").read_text(encoding="utf-8")
PAIRS = (("encoder.0", "it writes out softmax"), ("解码器.1", "its output is not weights @ values: off by 0.3"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.regard"


def call(name="first", check="passed"):
    spec = Spec(rg.scores.scaled_dot(), None, rg.normalisers.softmax())
    return Call(name, 0, torch.randn(1, 2, 3, 5), torch.randn(1, 2, 7, 5), spec, check=check)


def sinks(path):
    return MemorySink(about={"model": "M"}), FileSink(path, about={"model": "M"})


def test_missing_layers_are_kept_once_in_order_in_memory_in_a_file_and_in_a_saved_one(path):
    for sink in sinks(path):
        assert sink.recording.missing == ()
        for name, reason in (*PAIRS, *PAIRS):
            sink.miss(name, reason)
        sink.take(call())
        sink.close()
        assert sink.failure is None
        assert sink.recording.missing == PAIRS
        saved = path.with_name("saved.regard")
        sink.recording.save(saved)
        assert rg.open(saved).missing == PAIRS
        assert "2 layers missing" in repr(rg.open(saved))
    assert rg.open(path).missing == PAIRS


def test_a_missing_layer_survives_a_writer_that_never_closed(path):
    sink = FileSink(path, about={"model": "M"})
    sink.miss(*PAIRS[0])
    found = rg.open(path)
    assert not found.closed
    assert found.missing == PAIRS[:1]
    assert found.about == {"model": "M"}
    sink.close()


def test_a_file_with_nothing_but_missing_layers_is_deleted_and_they_stay_readable(path):
    sink = FileSink(path)
    sink.miss(*PAIRS[0])
    sink.close()
    assert not path.exists()
    assert sink.recording.missing == PAIRS[:1]


def test_asking_for_a_missing_layer_says_why_it_is_missing():
    recording = Recording([call()], missing=PAIRS)
    with pytest.raises(ChoiceError, match=r"no layer 'encoder.0' was recorded \(it writes out softmax\)"):
        recording["encoder.0"]


def test_check_of_a_call_is_kept_in_memory_in_a_file_and_in_a_saved_one(path):
    checks = ("passed", "not first", "undecided", "dropout", "none", "")
    for sink in sinks(path):
        for index, check in enumerate(checks):
            sink.take(call(f"layer{index}", check))
        sink.close()
        saved = path.with_name("saved.regard")
        sink.recording.save(saved)
        for recording in (sink.recording, rg.open(saved)):
            assert tuple(entry.check for entry in recording.entries) == checks
            assert tuple(entry.load(1).check for entry in recording.entries) == checks
    reader = Reader(path)
    metas = [reader.group(index).meta for index in range(len(reader))]
    assert ["check" in meta for meta in metas if meta["what"] == "call"] == [True] * 5 + [False]


def test_the_page_names_the_fields_of_every_kind_of_group(path):
    sink = FileSink(path, about={"model": "M"})
    sink.miss(*PAIRS[0])
    sink.add_inputs(0, {"input_ids": torch.arange(3).reshape(1, 3)})
    sink.take(replace(call(), heads=(0, 1)))
    sink.close()
    reader = Reader(path)
    for index in range(len(reader)):
        meta = reader.group(index).meta
        said = PAGE.split(f'### `"what": "{meta["what"]}"`')[1].split("\n\n")[1]
        fields = {name for row in said.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
        assert fields == set(meta) - {"what"}, meta["what"]
