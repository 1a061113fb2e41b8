"""Every bit of a file turned, every byte of it cut off: never a wrong number, and never a loss that is not told."""

import os
import random

import numpy as np
import pytest
import recording_faults as faults

import regard as rg
from regard.errors import DamageError, RecordingFileError, RegardError
from regard.recording import _format as form
from regard.recording._reader import Reader
from regard.recording._writer import Writer


def contents(reader):
    """What a reader shows: for each group its words and its arrays, None where it says that they are broken."""
    found = []
    for index in range(len(reader)):
        group = reader.group(index)
        arrays = {}
        for name, stored in group.arrays.items():
            try:
                arrays[name] = (stored.shape, stored.dtype.str, reader.array(stored).tobytes())
            except DamageError:
                arrays[name] = None
        found.append(None if group.broken else (group.meta, arrays))
    return found


def wrong(found, wanted):
    """Whether something is shown that was not written; what is missing or known to be broken is not wrong."""
    left = iter(wanted)
    for group in (g for g in found if g is not None):
        match = next((w for w in left if w[0] == group[0] and list(w[1]) == list(group[1])), None)
        if match is None or any(group[1][name] not in (None, match[1][name]) for name in match[1]):
            return True
    return False


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.regard"
    data = faults.small_file(path)
    return path, data, contents(Reader(path))


def test_every_flipped_bit_of_a_recording_is_noticed(small):
    path, data, wanted = small
    assert 8 * len(data) > 10_000
    noticed = 0
    with path.open("r+b", buffering=0) as file:
        for at, byte in enumerate(data):
            for bit in range(8):
                file.seek(at)
                file.write(bytes([byte ^ (1 << bit)]))
                try:
                    reader = Reader(path)
                except RegardError:
                    noticed += 1
                    continue
                found = contents(reader)
                assert not wrong(found, wanted), f"bit {bit} of byte {at}"
                if found != wanted:
                    noticed += 1
                    assert reader.damage(every_byte=True), f"a loss by bit {bit} of byte {at} is not told"
            file.seek(at)
            file.write(bytes([byte]))
    assert contents(Reader(path)) == wanted
    assert noticed > 2000


def test_bits_of_a_larger_file(tmp_path):
    path = tmp_path / "larger.regard"
    writer = Writer(path, durable=False)
    numbers = np.random.default_rng(0)
    for index in range(5):
        writer.append({"index": index}, {"x": numbers.normal(size=(3, 5, 2111)), "y": numbers.normal(size=7)})
    writer.close()
    wanted = contents(Reader(path))
    size, chance = path.stat().st_size, random.Random(0)
    with path.open("r+b", buffering=0) as file:
        for _ in range(300):
            at, bit = chance.randrange(size), chance.randrange(8)
            byte = path.read_bytes()[at]
            file.seek(at)
            file.write(bytes([byte ^ (1 << bit)]))
            found = contents(Reader(path)) if at >= form.ALIGN else []
            assert not wrong(found, wanted)
            lost = [index for index, (a, b) in enumerate(zip(found, wanted, strict=True)) if a != b] if found else []
            assert len(lost) <= 1, "damage in one place is damage of one group"
            file.seek(at)
            file.write(bytes([byte]))


def test_cut_off_at_every_byte(small):
    path, data, wanted = small
    reader = Reader(path)
    needed = [reader._cursor.head(at).end for at in reader._done]
    assert len(needed) == 4
    for size in range(len(data)):
        path.write_bytes(data[:size])
        if size < form.FILE_HEAD.size:
            with pytest.raises(RecordingFileError, match="no recording"):
                Reader(path)
            continue
        cut = Reader(path)
        assert contents(cut) == wanted[: sum(end <= size for end in needed)]
        assert not cut.closed or size >= len(data) - form.ALIGN


def test_damage_names_the_chunk_and_leaves_the_rest(tmp_path):
    path = tmp_path / "run.regard"
    writer = Writer(path, durable=False)
    for index in range(4):
        writer.append({"index": index}, {"x": np.full(100, index), "y": np.full(3, index)})
    writer.close()
    reader = Reader(path)
    data = bytearray(path.read_bytes())
    data[reader.group(1).arrays["x"].at + form.ALIGN] ^= 1  # a number of chunk 3
    data[reader.group(2).arrays["y"].at + 9] ^= 1  # the head of chunk 7
    data[reader._done[3] + form.ALIGN + 20] ^= 1  # the text of chunk 11
    path.write_bytes(data)
    reader = Reader(path)
    assert [words.split(" of ")[0] for words in reader.damage(every_byte=True)] == ["chunk 3", "chunk 7", "chunk 11"]
    assert [words.split(" of ")[0] for words in reader.damage()] == ["chunk 7", "chunk 11"], "numbers are not read"
    assert [reader.group(index).broken is None for index in range(4)] == [True, True, True, False]
    with pytest.raises(DamageError, match="chunk 3 "):
        reader.array(reader.group(1).arrays["x"])
    assert (reader.array(reader.group(1).arrays["y"]) == 1).all()
    with pytest.raises(DamageError, match="chunk 7 "):
        reader.array(reader.group(2).arrays["y"])
    assert (reader.array(reader.group(0).arrays["x"]) == 0).all()


def test_one_slice_is_checked_by_itself(tmp_path):
    path = tmp_path / "run.regard"
    x = np.random.default_rng(0).normal(size=(2, 3, 2 * form.PIECE // 8, 1))  # a slice is two pieces
    writer = Writer(path, durable=False)
    writer.append({}, {"x": x})
    writer.close()
    data = bytearray(path.read_bytes())
    stored = Reader(path).group(0).arrays["x"]
    data[stored.at + form.ALIGN + 2 * form.PIECE + 5] ^= 1  # in [0, 1]
    path.write_bytes(data)
    reader = Reader(path)
    for index in (0, 2):
        assert np.array_equal(reader.array(stored, 1, index), x[:, index : index + 1])
    with pytest.raises(DamageError, match="piece 2 "):
        reader.array(stored, 1, 1)
    assert np.array_equal(reader.array(stored, 0, 1), x[1:])


def test_a_file_that_becomes_shorter_is_an_error_and_not_the_end_of_the_process(small):
    path, _, _ = small
    reader = Reader(path)
    stored = reader.group(0).arrays["x"]
    reader.array(stored)
    path.open("r+b").truncate(100)
    with pytest.raises(DamageError, match="chunk 0 "):
        reader.array(stored)


@pytest.mark.parametrize("data", [b"", b"\x89REGARD\n", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_recording_is_refused(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(RecordingFileError, match="is no recording"):
        Reader(tmp_path / "x")


def test_a_newer_version_is_refused_by_its_number(small):
    path, data, _ = small
    data[8] = 2
    path.write_bytes(data)
    with pytest.raises(RecordingFileError, match="has version 2 of the format"):
        Reader(path)


def test_a_file_inside_a_file_is_not_taken_for_it(tmp_path):
    inner = tmp_path / "inner.regard"
    other = faults.small_file(inner)
    path = tmp_path / "outer.regard"
    writer = Writer(path, durable=False, mark=8)
    writer.append({"what": "outer"}, {"file": np.frombuffer(bytes(other), np.uint8)})
    at = writer._done[0]
    writer.append({"what": "behind"}, {})
    writer.close()
    data = bytearray(path.read_bytes())
    data[form.ALIGN] ^= 1  # the head of the chunk that holds the other file
    data = data[: -form.END_SIZE]  # and no list
    path.write_bytes(data)
    reader = Reader(path)
    assert [reader.group(index).meta["what"] for index in range(len(reader))] == ["outer", "behind"]
    assert reader._done[0] == at


def rewritten(data, at, kind, payload, number):
    """Put another chunk of the same size over the one at an offset, with right checksums."""
    old = form.parse_head(bytes(data[at : at + form.ALIGN]), at, 7)
    payload = payload.ljust(old.length)
    assert len(payload) == old.length
    data[at : old.end] = form.chunk_head(kind, len(payload), number, 7) + payload + form.checksums(payload)


@pytest.mark.parametrize("kind", [form.DATA, form.LIST, form.DONE])
@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("closed", [True, False])
def test_a_group_that_is_dropped_with_right_checksums_is_told(small, kind, group, closed):
    path, data, _ = small
    reader = Reader(path)
    rewritten(data, reader._done[group], kind, b'{"meta": {}, "arrays": {}}', reader.group(group).chunk)
    path.write_bytes(data if closed else data[: reader._cursor.head(reader._done[3]).end])
    damage = Reader(path).damage()
    assert damage
    assert all(f"of {path} is damaged" in words for words in damage)


@pytest.mark.parametrize("kind", [form.DATA, form.LIST])
def test_a_group_without_arrays_that_the_list_names_is_told_when_it_is_dropped(small, kind):
    path, data, _ = small
    reader = Reader(path)
    rewritten(data, reader._done[2], kind, b"", reader.group(2).chunk)
    path.write_bytes(data)
    assert [words for words in Reader(path).damage() if "says that it completes a group, and it does not" in words]


def test_a_group_that_does_not_say_what_it_is_is_told(small):
    assert [words for words in rg.open(small[0]).damage if "does not say what it is" in words]


def relisted(path, data, change):
    """Change the list of groups, with right checksums."""
    listed = Reader(path)._done.tolist()
    at = len(data) - form.END_SIZE - form.aligned(form.ALIGN + 8 * len(listed) + 4)
    number = form.parse_head(bytes(data[at : at + form.ALIGN]), at, 7).number
    chosen = change(listed)
    payload = np.asarray(chosen, "<u8").tobytes()
    end = form.END.pack(len(chosen), at)
    chunks = [(form.LIST, payload, number), (form.ENDS, end, number + 1)]
    del data[at:]
    for kind, text, count in chunks:
        chunk = form.chunk_head(kind, len(text), count, 7) + text + form.checksums(text)
        data += chunk.ljust(form.aligned(len(chunk)), b"\0")
    path.write_bytes(data)
    return Reader(path)


def test_a_list_that_leaves_out_a_group_or_names_none_is_told(small):
    path, data, wanted = small
    assert relisted(path, data[:], lambda listed: listed).damage(every_byte=True) == []
    assert "does not name" in relisted(path, data[:], lambda listed: listed[1:]).damage()[0]
    assert "no chunk at byte" in relisted(path, data[:], lambda listed: [32, *listed]).damage()[-1]
    assert contents(relisted(path, data[:], lambda listed: [listed[0], *listed])) == wanted, "none is shown twice"


def test_chunks_behind_the_end_are_told(small):
    path, data, wanted = small
    number = form.parse_head(bytes(data[-form.END_SIZE :]), 0, 7).number + 1
    path.write_bytes(data + form.chunk_head(form.DONE, 0, number, 7))
    assert contents(Reader(path)) == wanted
    assert any("behind the end" in words for words in Reader(path).damage())


def test_a_pipe_a_folder_and_a_device_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, os.devnull):
        with pytest.raises(RecordingFileError, match="cannot be read: it is no regular file"):
            Reader(path)
