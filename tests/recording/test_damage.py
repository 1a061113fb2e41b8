"""Every bit of a file turned, every byte of it cut off: never a wrong number, and never a loss that is not told."""

import random

import numpy as np
import pytest
import recording_faults as faults

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


def test_every_single_bit(small):
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
