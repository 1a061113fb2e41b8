"""A recording in a file: written while a model runs, saved, opened, asked; and what happens when the disk is full."""

import errno
import mmap
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch
from torch import nn

import regard as rg
from regard.errors import ChoiceError, DamageError, RecordError, RecordingFileError, StorageError
from regard.recording import Recording
from regard.recording import _format as form
from regard.recording._reader import Reader
from regard.recording._tokens import texts_of
from regard.recording._writer import Writer

N, DIM = 7, 12


class Model(nn.Module):
    """Embeddings and two layers of torch's."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(97, DIM)
        self.first = nn.MultiheadAttention(DIM, 3, batch_first=True)
        self.second = nn.MultiheadAttention(DIM, 2, batch_first=True)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in (self.first, self.second):
            x = layer(x, x, x, need_weights=False)[0]
        return x


class Words:
    """What record() needs of a tokenizer."""

    def decode(self, ids):
        return f"词{ids[0]}" if ids[0] % 2 else "</script>"


def ids(length=N):
    return torch.arange(2 * length).reshape(2, length)


@pytest.fixture
def model():
    return Model().eval()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.regard"


def alike(one, other):
    """Whether two recordings say the same."""
    assert [(e.name, e.step, e.shape, e.cross, e.mask) for e in one.entries] == [
        (e.name, e.step, e.shape, e.cross, e.mask) for e in other.entries
    ]
    for entry in one.entries:
        assert torch.equal(one[entry.name, entry.step].dense(), other[entry.name, entry.step].dense())
    assert one.about == other.about
    assert one.tokens == other.tokens and one.steps == other.steps and list(one.inputs) == list(other.inputs)
    for step, given in one.inputs.items():
        assert all(torch.equal(tensor, other.inputs[step][name]) for name, tensor in given.items())


@torch.no_grad()
def test_memory_a_running_file_a_saved_one_and_a_copy_are_alike(model, path):
    plain = model(ids())
    with rg.record(model, tokenizer=Words(), about={"from": "模型"}) as held:
        model(ids())
        model(ids(5))
    with rg.record(model, path=path, tokenizer=Words(), about={"from": "模型"}) as written:
        assert torch.equal(model(ids()), plain)
        assert [layer.name for layer in written.layers] == ["first", "second"], "calls are there as they come"
        model(ids(5))
    held.save(path.with_name("saved.regard"))
    saved = rg.open(path.with_name("saved.regard"))
    saved.save(path.with_name("copy.regard"))
    for other in (written, rg.open(path), saved, rg.open(path.with_name("copy.regard"))):
        alike(held, other)
        assert other.verify() == [] == other.damage
    assert held.about == {"model": "Model", "from": "模型"}
    assert held.tokens[0]["input_ids"][1][:2] == ["词7", "</script>"]
    assert sorted(p.name for p in path.parent.iterdir()) == ["copy.regard", "run.regard", "saved.regard"]


def test_tokens_that_share_a_character_say_so():
    class Bytes:
        def decode(self, ids):
            return bytes(ids).decode("utf-8", "replace")

    given = torch.tensor([list("a旷é".encode()), list(b"a\xff\xfeb\xc3\xa9")])
    rows = texts_of({"input_ids": given}, Bytes())["input_ids"]
    assert rows == [
        ["a", "旷 1/3", "旷 2/3", "旷 3/3", "é 1/2", "é 2/2"],
        ["a", "\ufffd", "\ufffd", "b", "é 1/2", "é 2/2"],
    ]


@torch.no_grad()
def test_a_recording_prints_its_calls_layers_and_bytes(model, path):
    with rg.record(model, path=path) as recording:
        model(ids())
    tensors = 2 * 2 * (2 * N * DIM) * 4
    assert repr(recording) == f"Recording(2 calls of 2 layers, 1 step, {recording.bytes:,} bytes in {path})"
    assert tensors <= recording.bytes <= tensors + 2 * 2 * 3 * N * 4
    assert [layer.shape for layer in recording.layers] == [(2, 3, N, N), (2, 2, N, N)]
    assert sum(layer.bytes for layer in recording.layers) == recording.bytes
    assert recording.steps == (0,)
    with pytest.raises(ChoiceError, match="there are: first, second"):
        recording["third"]


@pytest.mark.plain
@torch.no_grad()
def test_a_question_with_too_many_parts_is_refused(model):
    with rg.record(model) as recording:
        model(ids())
    with pytest.raises(ChoiceError, match=r"\[layer, step, head\], not for"):
        recording["first", 0, 0, 0]


@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_while_writing_takes_back_nothing_that_was_seen(path, monkeypatch, at, when):
    """Ctrl-C around any call of the system: a group is there as a whole or not at all, and the next ones follow it."""
    writer = Writer(path)
    writer.append({"what": "note", "number": 0}, {"x": np.arange(5)})
    reader, count = Reader(path), 0

    def impatient(real):
        def call(*args):
            nonlocal count
            count += 1
            result = real(*args) if count != at + 1 or when == "after" else None
            reader.refresh()
            if count == at + 1:
                raise KeyboardInterrupt
            return result

        return call

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", impatient(os.fsync))
        patched.setattr(os, "pwrite", impatient(os.pwrite))
        try:
            writer.append({"what": "note", "number": 1}, {"x": np.arange(7)})
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    assert interrupted == (at < 8)  # three writes and a wait, twice
    writer.append({"what": "note", "number": 2}, {"x": np.arange(3)})
    writer.close()
    for found in (reader, Reader(path)):
        found.refresh()
        numbers = [found.group(index).meta["number"] for index in range(len(found))]
        assert numbers in ([0, 1, 2], [0, 2])
        assert [found.array(found.group(i).arrays["x"]).size for i in range(len(found))] == [
            (5, 7, 3)[n] for n in numbers
        ]
        assert found.damage(every_byte=True) == []
        assert (1 in numbers) == (at > 6 or (at, when) == (6, "after"))


@torch.no_grad()
def test_an_interrupt_keeps_what_was_recorded(model, path):
    def impatient():
        model(ids())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), rg.record(model, path=path):
        impatient()
    found = rg.open(path)
    assert [layer.name for layer in found.layers] == ["first", "second"]
    assert Reader(path).closed and found.damage == []


@torch.no_grad()
def test_a_full_disk_stops_the_recording_and_not_the_model(model, path, monkeypatch):
    plain, real, room = model(ids()), os.pwrite, 6000

    def pwrite(file, data, offset):
        if offset + len(data) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    outputs = []
    with (
        pytest.raises(StorageError, match="No space left on device") as stopped,
        rg.record(model, path=path) as recording,
    ):
        outputs.extend(model(ids()) for _ in range(5))
    assert [torch.equal(output, plain) for output in outputs] == [True] * 5
    kept = len(recording.entries)
    assert 0 < kept < 10
    assert len(rg.open(path).entries) == kept and rg.open(path).verify() == []
    assert f"the {kept} calls before it are safe" in str(stopped.value)


@torch.no_grad()
def test_a_disk_without_room_for_one_call_leaves_no_file_and_says_so(model, path, monkeypatch):
    real = os.pwrite

    def pwrite(file, data, offset):
        if offset > 700:  # behind the notes
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(StorageError) as stopped, rg.record(model, path=path):
        model(ids())
    assert str(stopped.value).endswith("No space left on device; no call was recorded, and the file is removed")
    assert not path.exists()


@torch.no_grad()
def test_save_through_a_link_keeps_the_link_and_the_permissions(model, path):
    with rg.record(model) as recording:
        model(ids())
    folder = path.parent / "elsewhere"
    folder.mkdir()
    path.symlink_to(folder / "run.regard")
    recording.save(path)
    (folder / "run.regard").chmod(0o600)
    recording.save(path)
    assert path.is_symlink() and (folder / "run.regard").stat().st_mode & 0o777 == 0o600
    alike(recording, rg.open(path))
    assert [inside.name for inside in folder.iterdir()] == ["run.regard"]


@torch.no_grad()
def test_save_to_a_pipe_is_refused_and_not_waited_for(model, path):
    with rg.record(model) as recording:
        model(ids())
    os.mkfifo(path)
    with pytest.raises(StorageError, match="it is no regular file"):
        recording.save(path)


@torch.no_grad()
def test_a_tokenizer_that_fails_stops_the_recording_and_not_the_model(model, path):
    with pytest.raises(RecordError, match="has no attribute 'decode'"), rg.record(model, path=path, tokenizer=3):
        assert torch.equal(model(ids()), model(ids()))
    assert not path.exists()


@torch.no_grad()
def test_generated_rows_and_tokens_come_to_one_call_and_one_text(path):
    import transformers

    config = transformers.GPT2Config(
        n_layer=2, n_embd=12, n_head=3, vocab_size=97, bos_token_id=0, eos_token_id=96, pad_token_id=96
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    options = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "attention_mask": torch.ones(2, N).long()}
    with rg.record(model, path=path, tokenizer=Words()) as written:
        out = model.generate(ids(), **options)
    with rg.record(model, tokenizer=Words()) as held:
        model.generate(ids(), **options)
    alike(held, written)
    assert [layer.shape for layer in written.layers] == [(2, 3, N + 4, N + 4)] * 2
    assert torch.equal(written.inputs[0]["input_ids"], out[:, :-1])


@torch.no_grad()
def test_a_recording_begins_a_file_of_its_own(model, path):
    path.write_text("precious")
    with pytest.raises(RecordingFileError, match="exists already"), rg.record(model, path=path):
        model(ids())
    assert path.read_text() == "precious"


def test_nothing_recorded_leaves_no_file(model, path):
    with pytest.raises(RecordError, match="nothing was recorded"), rg.record(model, path=path):
        pass
    with pytest.raises(ChoiceError), rg.record(model, layers="nobody", path=path):
        pass
    assert not path.exists()
    with pytest.raises(RecordError, match="nothing to save"):
        Recording().save(path)
    assert list(path.parent.iterdir()) == []


@torch.no_grad()
def test_a_save_that_fails_leaves_the_old_file(model, path, monkeypatch):
    with rg.record(model) as recording:
        model(ids())
    recording.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("pwrite", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(StorageError, match="No space left"):
                recording.save(path)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]
    recording.save(path)
    alike(recording, rg.open(path))
    with pytest.raises(StorageError):
        recording.save(path.parent)


@torch.no_grad()
def test_a_reader_follows_a_recording(model, path):
    with rg.record(model, path=path):
        model(ids())
        beside = rg.open(path)
        assert len(beside.entries) == 2 and beside.refresh() == 0
        model(ids(5))
        assert beside.refresh() == 2
        assert beside["first", 1].shape == (2, 3, 5, 5)
        assert beside.inputs[1]["input_ids"].shape == (2, 5)
    assert beside.refresh() == 0


@torch.no_grad()
def test_a_module_that_runs_twice_in_a_step_is_two_layers(path):
    model = Model().eval()
    model.second = model.first
    for where in (None, path):
        with rg.record(model, path=where) as recording:
            model(ids())
        assert [layer.name for layer in recording.layers] == ["first", "first#2"]
        assert not torch.equal(recording["first"].dense(), recording["first#2"].dense())


@torch.no_grad()
def test_damage_is_named_and_the_rest_is_there(model, path):
    with rg.record(model, path=path) as recording:
        model(ids())
    first, second = recording.entries
    wanted = recording["second"].dense()
    data = bytearray(path.read_bytes())
    data[first.group.arrays["query"].at + form.ALIGN + 3] ^= 16
    path.write_bytes(data)
    found = rg.open(path)
    chunk = first.group.arrays["query"].chunk
    assert found.damage == [] and [f"chunk {chunk} of" in words for words in found.verify()] == [True]
    with pytest.raises(DamageError, match=f"chunk {chunk} of"):
        found["first"]
    assert torch.equal(found["second"].dense(), wanted)

    data[Reader(path)._done[-1] + form.ALIGN + 3] ^= 16  # the text of the second call
    path.write_bytes(data)
    found = rg.open(path)
    assert [f"chunk {second.group.chunk} of" in words for words in found.damage] == [True]
    assert [layer.name for layer in found.layers] == ["first"]
    assert repr(found).endswith(", 1 call lost to damage)")
    with pytest.raises(ChoiceError, match="1 call lost to damage"):
        found["second"]


@torch.no_grad()
def test_turned_bits_never_change_an_answer(model, path):
    with rg.record(model, path=path) as recording:
        model(ids())
    wanted = {entry.name: recording[entry.name].dense() for entry in recording.entries}
    data, chance = path.read_bytes(), torch.Generator().manual_seed(0)
    lost = 0
    for at in torch.randint(len(data), (300,), generator=chance).tolist():
        turned = bytearray(data)
        turned[at] ^= 1 << (at % 8)
        path.write_bytes(turned)
        for name, dense in wanted.items():
            try:
                assert torch.equal(rg.open(path)[name].dense(), dense), f"byte {at}"
            except (RecordingFileError, ChoiceError):
                lost += 1
    assert 100 < lost < 500


def large(path, groups, *, closed):
    """A recording of 10 MB a call, mostly holes: what stands in the file is right, and takes no room."""
    rows, dim = 10_240, 256
    length = rows * dim * 4
    zeros = struct.pack("<I", zlib.crc32(bytes(form.PIECE))) * (length // form.PIECE)
    words = '"score": {"word": "Dot", "scale": 1.0}, "mask": null, "normaliser": {"word": "Softmax"}'
    same = '"cross": false, "heads": null, "sees": "everything", "lse": null, "chosen": null'
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    size, number, done = form.ALIGN, 0, []

    def put(kind, payload, text=b""):
        nonlocal size, number
        head = form.Head(kind, number, size + form.ALIGN, payload)
        os.pwrite(file, form.chunk_head(kind, payload, number, 9) + text, size)
        os.pwrite(file, form.checksums(text) if text else zeros, head.checksums)
        size, number = head.stop, number + 1

    os.pwrite(file, form.file_head(9), 0)
    for step in range(groups):
        array = f'{{"at": {size}, "chunk": {number}, "dtype": "<f4", "shape": [1, 1, {rows}, {dim}]}}'
        put(form.DATA, length)
        tensors = '"query": {"array": "x"}, "key": {"array": "x"}'
        meta = f'{{"what": "call", "name": "layer", "step": {step}, {same}, {tensors}, {words}}}'
        text = f'{{"meta": {meta}, "arrays": {{"x": {array}}}}}'.encode()
        done.append(size)
        put(form.DONE, len(text), text)
    if closed:
        at = size
        put(form.LIST, 8 * groups, struct.pack(f"<{groups}Q", *done))
        put(form.ENDS, 16, struct.pack("<QQ", groups, at))
    os.ftruncate(file, size)
    os.close(file)


@pytest.mark.parametrize("closed", [True, False])
def test_ten_gigabytes_are_opened_by_their_heads(path, closed, monkeypatch):
    large(path, 1000, closed=closed)
    assert path.stat().st_size > 10**10
    read, real = [], os.pread

    def pread(file, count, offset):
        data = real(file, count, offset)
        read.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", pread)
        patch.setattr(mmap, "mmap", None)  # nothing is mapped
        recording = rg.open(path)
        assert len(read) <= (5 if closed else 2005), "heads, one by one, only if there is no list"
        assert len(recording.entries) == 1000 and recording.bytes > 10**10
        assert sum(read) < 2_000_000
    assert recording["layer", 999][0, 0, 0, :3].tolist() == pytest.approx([1 / 10_240] * 3)


def test_writer_and_reader_need_no_torch():
    code = (
        "import sys, regard.recording._writer, regard.recording._reader, regard.recording\n"
        "assert dir(regard.recording) == ['Layer', 'Recording', 'open']\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="it offers Layer, Recording, open"):
        rg.recording.Nobody  # noqa: B018  the access is the test


@torch.inference_mode()
def test_a_file_that_is_read_in_inference_mode_is_not_copied(model, path):
    with rg.record(model, path=path) as recording:
        model(ids())
    call = recording.calls[0]
    assert call.weights().query.data_ptr() == call.query.data_ptr()
    assert not call.query.is_inference()
