"""The page about the format is the format: a file is built from its tables, and its example is what we write."""

import importlib
import json
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from regard.recording import _format as form
from regard.recording._reader import DTYPES
from regard.recording._writer import Writer
from regard.term import TERMS

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "recording.md").read_text(encoding="utf-8")
MARK = 42


def table(heading):
    """The rows of the first table behind a heading."""
    behind = PAGE.split(f"\n{heading}\n", 1)[1]
    rows = re.search(r"^\|.*?(?=\n\n)", behind, re.MULTILINE | re.DOTALL)[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def packed(heading, **values):
    """A head as its table says: every field where it stands, then the checksum of what is before it."""
    data = b""
    for byte, kind, what, _ in table(heading):
        assert int(byte) == len(data), f"{what} of {heading}"
        checksum = what == "checksum"
        empty = b"" if kind.endswith("s`") else 0
        value = zlib.crc32(data) if checksum else values.get(what, empty)
        data += struct.pack(f"<{kind.strip('`')}", value)
    return data


def constant(heading, what):
    """The bytes that a table spells out in hex."""
    said = next(row[3] for row in table(heading) if row[2] == what)
    return bytes.fromhex(re.match(r"`([0-9a-f ]+)`", said)[1])


def chunk(kind, payload, number):
    sign = constant("## Chunks", "sign")
    head = packed("## Chunks", sign=sign, kind=kind, length=len(payload), number=number, mark=MARK)
    pieces = [payload[low : low + 65_536] for low in range(0, len(payload), 65_536)]
    data = head + payload + b"".join(struct.pack("<I", zlib.crc32(piece)) for piece in pieces)
    return data + bytes(-len(data) % 64)


def by_hand(array, meta):
    """A closed file with one group, from the page alone."""
    data = packed("## The head of the file", magic=constant("## The head of the file", "magic"), version=1, mark=MARK)
    entry = {"at": len(data), "chunk": 0, "dtype": array.dtype.str, "shape": list(array.shape)}
    data += chunk(b"DATA", array.tobytes(), 0)
    done = len(data)
    data += chunk(b"DONE", json.dumps({"meta": meta, "arrays": {"x": entry}}).encode(), 1)
    listed = len(data)
    data += chunk(b"LIST", struct.pack("<Q", done), 2)
    return data + chunk(b"ENDS", struct.pack("<QQ", 1, listed), 3)


def written(path, array, meta):
    writer = Writer(path, mark=MARK)
    writer.append(meta, {"x": array})
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("length", [0, 3, 32_768, 100_003])
def test_a_file_built_from_the_tables_is_what_we_write(tmp_path, length):
    array, meta = np.arange(length, dtype="<i2").reshape(1, length), {"what": "note", "是": [1, 2.5, None]}
    assert written(tmp_path / "x.regard", array, meta) == by_hand(array, meta)


def dumped(data):
    """As the page shows it."""
    lines, last = [], None
    for at in range(0, len(data), 16):
        line = data[at : at + 16]
        if line != last:
            lines.append(f"{at:04x}  {line.hex(' ')}")
        elif lines[-1] != "*":
            lines.append("*")
        last = line
    return "\n".join([*lines, f"{len(data):04x}"])


def test_the_example_of_the_page_is_what_we_write(tmp_path):
    said = re.search(r"```hexdump\n(.*?)\n```", PAGE, re.DOTALL)[1]
    assert dumped(written(tmp_path / "x.regard", np.array([[1, 2, 3]], "<i2"), {"what": "note"})) == said


def test_the_page_names_every_word_every_kind_and_every_type():
    words = dict(re.findall(r"`(\w+)\(([^)]*)\)`", PAGE.split("| words of |")[1].split("###")[0]))
    for name in ("scores", "masks", "normalisers"):
        importlib.import_module(f"regard.{name}")  # a term is registered when its module is imported
    ours = {name: term for name, term in TERMS.items() if term.__module__.startswith("regard.")}
    assert words == {name: ", ".join(term.stored_fields()) for name, term in ours.items()}
    kinds = PAGE.split("| kind | payload |")[1].split("\n\n")[0]
    assert tuple(kind.encode() for kind in re.findall(r"^\| `(\w+)`", kinds, re.MULTILINE)) == form.KINDS
    dtypes = next(row[1] for row in table("## Groups") if row[0] == "`dtype`")
    assert {kind.replace("\\", "") for kind in re.findall(r"`([^`]+)`", dtypes)} == DTYPES
