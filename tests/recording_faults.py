"""Run as a script, without torch: writers that are killed, disks that are full, heads that lie. Prints what it counted.

A parent that has imported everything forks a writer for each trial, so that a trial takes milliseconds.
"""

import json
import os
import random
import resource
import select
import signal
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from regard.errors import RegardError, StorageError
from regard.recording import _format as form
from regard.recording._reader import Reader
from regard.recording._writer import Writer, replacing

SIZES = (0, 1, 63, 64, 1000, form.PIECE, 3 * form.PIECE + 5)
GROUPS = 8  # that a writer writes, if it is not killed before
LATEST = 0.003  # seconds after an acknowledgement in which a writer is killed: a group takes about as long
MEGABYTE = 1 << 20


def group(seed, index):
    """What the writer writes as its next group; whoever knows the seed knows it too."""
    numbers = np.random.default_rng((seed, index))
    arrays = {f"a{i}": numbers.integers(0, 256, numbers.choice(SIZES), np.uint8) for i in range(numbers.integers(1, 4))}
    return {"index": index, "name": f"第 {index} 层"}, arrays


def same(reader, index, seed):
    """Whether a group is the one that was written, to the last byte."""
    meta, arrays = group(seed, index)
    found = reader.group(index)
    assert found.broken is None, found.broken
    assert found.meta == meta and list(found.arrays) == list(arrays), f"group {index} is another"
    return all(np.array_equal(reader.array(found.arrays[name]), array) for name, array in arrays.items())


def forked(work):
    """A child that does the work and tells of its progress, one byte each; returns its process and the pipe."""
    out, into = os.pipe()
    child = os.fork()
    if child:
        os.close(into)
        return child, out
    try:
        work(lambda: os.write(into, b"."))
    finally:
        os._exit(0)


def killed(child, pipe, count, after):
    """Let it acknowledge so much, kill it at an instant of no meaning to it, and count what it acknowledged."""
    acknowledged = 0
    while acknowledged < count:
        acknowledged += len(os.read(pipe, 1))
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while chunk := os.read(pipe, 4096):
        acknowledged += len(chunk)
    os.close(pipe)
    return acknowledged


def kills(folder, trials, seed):
    """Writers of groups, killed: nothing acknowledged is lost, nothing unwritten is shown."""
    chance = random.Random(seed)
    counted = {"trials": trials, "acknowledged": 0, "shown": 0, "cut": 0}
    for trial in range(trials):
        path = folder / f"{trial}.regard"
        ready = [group(seed + trial, index) for index in range(GROUPS)]

        def work(tell, path=path, ready=ready):
            writer = Writer(path)
            for meta, arrays in ready:
                writer.append(meta, arrays)
                tell()
            writer.close()

        acknowledged = killed(*forked(work), chance.randrange(GROUPS + 1), chance.random() * LATEST)
        if not path.exists() or path.stat().st_size < form.FILE_HEAD.size:
            assert acknowledged == 0, "an acknowledged file is gone"
            continue
        reader = Reader(path)
        assert acknowledged <= len(reader) <= acknowledged + 1, f"{acknowledged} acknowledged, {len(reader)} shown"
        assert all(same(reader, index, seed + trial) for index in range(len(reader))), "other bytes than were written"
        counted["acknowledged"] += acknowledged
        counted["shown"] += len(reader)
        counted["cut"] += not reader.closed
        path.unlink()
    return counted


def replaced(folder, trials, seed):
    """A file that is saved anew again and again, killed: there is always one whole version of it."""
    chance = random.Random(seed)
    path = folder / "run.regard"
    versions = set()

    def write(version):
        with replacing(path) as writer:
            writer.append({"version": version}, {"a": np.full(70_000, version % 251, np.uint8)})

    def work(tell):
        for version in range(1, 1000):
            write(version)
            tell()

    write(0)
    for _ in range(trials):
        killed(*forked(work), chance.randrange(3), chance.random() * LATEST)
        reader = Reader(path)
        assert reader.closed and reader.damage(every_byte=True) == []
        found = reader.group(0)
        assert (reader.array(found.arrays["a"]) == found.meta["version"] % 251).all()
        versions.add(found.meta["version"])
    write(0)
    left = [beside.name for beside in folder.iterdir()]
    return {"trials": trials, "versions": len(versions), "left": left}


def watched(folder, count, seed):
    """A reader beside a writer: it sees what was acknowledged, in order, and never anything else."""
    path = folder / "live.regard"

    def work(tell):
        writer = Writer(path)
        tell()
        for index in range(count):
            writer.append(*group(seed, index))
            tell()
        writer.close()

    child, pipe = forked(work)
    acknowledged = len(os.read(pipe, 1)) - 1
    reader = Reader(path)
    refreshed = shown = 0
    while not reader.closed:
        while select.select([pipe], [], [], 0)[0] and (more := os.read(pipe, 4096)):
            acknowledged += len(more)
        reader.refresh()
        refreshed += 1
        assert len(reader) >= acknowledged, f"{acknowledged} acknowledged, {len(reader)} shown"
        assert all(same(reader, index, seed) for index in range(shown, len(reader)))
        shown = len(reader)
    os.waitpid(child, 0)
    return {"shown": shown, "refreshed": refreshed}


def full_disk(folder, limit, seed):
    """A file that may not grow beyond `limit` bytes: a typed error, and all before it is there."""
    path = folder / "full.regard"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        writer = Writer(path)
        written = 0
        try:
            while True:
                writer.append(*group(seed, written))
                written += 1
        except StorageError as error:
            message = str(error)
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    reader = Reader(path)
    assert len(reader) == written and all(same(reader, index, seed) for index in range(written))
    return {"written": written, "message": message, "damage": reader.damage(every_byte=True)}


def small_file(path):
    """Four groups, every kind of chunk, arrays of all sorts."""
    writer = Writer(path, durable=False, mark=7)
    writer.append({"what": "call", "name": "a"}, {"x": np.arange(6, dtype="<f4").reshape(2, 3), "y": np.zeros((0, 5))})
    writer.append({"what": "inputs"}, {"ids": np.arange(3)})
    writer.append({}, {})
    writer.append(
        {"what": "call", "name": "b"}, {"z": np.linspace(0, 1, 35).reshape(5, 7), "bits": np.array([5], "u1")}
    )
    writer.close()
    return bytearray(path.read_bytes())


NASTY = (0, 1, 3, 63, 64, 65, 127, 1 << 16, 1 << 20, (1 << 20) + 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 64) - 1)
TEXTS = (
    b"{}", b"[]", b"null", b'"', b'{"meta": {}}', b'{"meta": 1, "arrays": {}}', b'{"meta": {}, "arrays": []}',
    b"[" * 60_000, b"[" + b"[]," * 50_000 + b"0]", b"9" * 5000, b"\xff\xfe", b'{"a":' * 5000,
)  # fmt: skip


SHAPES = ([2, 3], [6], [], [0, 1 << 61], [1 << 40, 0], [1 << 40, 1 << 40], [-2, -3], [0] * 99, [[2], 3], 6, None)


def entry(chance):
    """What a DONE chunk may say of an array, in earnest or not."""
    return {
        "at": chance.choice([64, 192, -1, 1 << 63, 1 << 70, "64", None, 2.5]),
        "chunk": chance.choice([0, 1, -1, 1 << 63, "0", None]),
        "dtype": chance.choice(["<f4", "|u1", "|O", "<U9", "f4", 4, None, ["<f4"]]),
        "shape": chance.choice(SHAPES),
    }


def text(chance):
    if chance.random() < 0.02:
        return chance.choice(TEXTS)
    arrays = {f"a{i}": entry(chance) for i in range(chance.randrange(4))}
    return json.dumps({"meta": {}, "arrays": arrays}).encode()


def lie(chance, data):
    """A chunk head somewhere that says anything at all, its checksum right as often as not."""
    at = 64 * chance.randrange(1, len(data) // 64)
    kind = chance.choice([*form.KINDS, b"WHAT"])
    if chance.random() < 0.3:
        payload = text(chance) if kind == form.DONE else chance.randbytes(chance.choice([0, 8, 16, 48]))
        whole = form.chunk_head(kind, len(payload), chance.randrange(9), 7) + payload + form.checksums(payload)
        data[at : at + len(whole)] = whole
        return
    length, number = (chance.choice(NASTY) if chance.random() < 0.7 else chance.randrange(300) for _ in range(2))
    start = struct.pack("<4s4sQQI", form.SIGN, kind, length, number, chance.choice([7, 7, 7, 8]))
    sum_ = zlib.crc32(start) if chance.random() < 0.8 else chance.getrandbits(32)
    data[at : at + 32] = start + struct.pack("<I", sum_)


def scrawl(chance, data):
    """Random bytes over a head."""
    at = 64 * chance.randrange(len(data) // 64) + chance.randrange(32)
    data[at] ^= 1 << chance.randrange(8)
    data[at : at + 4] = chance.randbytes(4) if chance.random() < 0.5 else data[at : at + 4]


def everything(path, *, damage):
    """Read all that can be read; what cannot is an error of ours."""
    reader = Reader(path)
    if damage:
        reader.damage(every_byte=True)
    for index in range(len(reader)):
        for stored in reader.group(index).arrays.values():
            try:
                reader.array(stored)
                if stored.shape and stored.shape[0] > 0:
                    reader.array(stored, 0, 0)
            except RegardError:
                continue


def heads(folder, count, seed):
    """Files with heads and texts that lie, in memory: no crash, no hang, and no room for more than 64 MB."""
    sound = small_file(folder / "small.regard")
    chance = random.Random(seed)
    file = os.memfd_create("fuzz")
    path = Path(f"/proc/self/fd/{file}")
    status = Path("/proc/self/status").read_text()
    room = 1024 * int(status.split("VmSize:")[1].split()[0]) + 64 * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
    refused = files = lies = 0
    while lies < count:
        data = bytearray(sound)
        files, some = files + 1, chance.randrange(1, 8)
        lies += some
        for _ in range(some):
            (lie if chance.random() < 0.7 else scrawl)(chance, data)
        os.ftruncate(file, 0)
        os.pwrite(file, data[: chance.randrange(len(data)) if chance.random() < 0.1 else None], 0)
        signal.alarm(20)  # a hang ends the script
        try:
            everything(path, damage=files % 4 == 0)
        except RegardError:
            refused += 1
    signal.alarm(0)
    return {"heads": lies, "files": files, "refused": refused}


if __name__ == "__main__":
    what, folder, count, seed = sys.argv[1:]
    assert "torch" not in sys.modules
    result = globals()[what](Path(folder), int(count), int(seed))
    assert "torch" not in sys.modules
    sys.stdout.write(json.dumps(result))
