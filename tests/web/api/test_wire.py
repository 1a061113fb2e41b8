"""docs/formats/wire.md is the wire format: its tables are compared with the server, its formulas with weights."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from web_hostile import EXAMPLES
from web_server import running

from regard.web.api import recordings
from regard.web.server import guard, protocol

PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "wire.md").read_text(encoding="utf-8")


def table(heading):
    behind = PAGE.split(f"\n{heading}\n", 1)[1]
    rows = re.search(r"^\|.*?(?=\n\n|\Z)", behind, re.MULTILINE | re.DOTALL)[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(text):
    """The field names before the first semicolon or colon."""
    return re.findall(r"`(\w+)`", re.split(r"[;:]", text)[0])


def listed(what):
    """Names in the sentence `what` is a list of ..."""
    sentence = re.search(rf"`{what}`(?: of profiles)? is a list of (.*?)\.", PAGE, re.DOTALL)[1]
    return re.findall(r"`(\w+)`", sentence)


FIELDS = {path.strip("`"): names(fields) for path, fields in table("## JSON")}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("web")) as running_server:
        yield running_server


@pytest.fixture(scope="module")
def client(server):
    with server.client() as asking:
        yield asking


@pytest.fixture(scope="module")
def weights(server):
    entry = server.recording.entries[1]
    return server.recording[entry.name, entry.step].dense().numpy()  # (2, 4, 301, 301)


def settled(client, path):
    """The answer, when it is no longer "not yet"."""
    while (answer := client.get(path)).status_code == 202:
        assert list(answer.json()) == ["progress", "rows"]
    return answer


def test_documented_questions_are_the_route_table(server):
    assert [(method, path.strip("`")) for method, path, _ in table("## Questions")] == [
        (row.method, row.path) for row in server.rows
    ]


@pytest.mark.parametrize("path", [path for path in FIELDS if path != "/api/lessons/{name}"])
def test_json_fields_are_documented(server, client, path):
    found = settled(client, EXAMPLES["GET", path].replace("ID", server.id)).json()
    for one in found if isinstance(found, list) else [found]:
        assert sorted(one) == sorted(FIELDS[path])


def test_fields_of_a_lesson_are_documented(client):
    assert list(client.post("/api/lessons/cues", json={}).json()) == FIELDS["/api/lessons/{name}"]


def test_fields_of_entries_and_profiles_are_documented(server, client):
    whole = client.get(f"/api/recordings/{server.id}").json()
    assert list(whole["entries"][0]) == listed("entries")
    assert whole["entries"][0]["shape"] == [2, 4, 301, 301]
    ids = server.recording.inputs[0]["input_ids"]
    assert whole["tokens"]["0"][whole["entries"][0]["keys"]][1][7] == str(int(ids[1, 7]))
    assert [list(absent) for absent in whole["missing"]] == [listed("missing")]
    rows = settled(client, f"/api/recordings/{server.id}/profiles").json()["rows"]
    assert list(rows[0]) == listed("rows")
    assert len(rows) == 8


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("level", [0, 1])
def test_tiles_are_the_weights_byte_by_byte(server, client, weights, pool, level):
    side = 2**level
    for row in range(2 - level):
        for column in range(2 - level):
            path = f"/api/recordings/{server.id}/maps/1/1/2/tiles/{pool}/{level}/{row}/{column}"
            answer = client.get(path)
            rows, columns = (int(length) for length in answer.headers["regard-shape"].split(","))
            assert len(answer.content) == 4 * rows * columns
            for r, c in ((0, 0), (rows - 1, columns - 1), (rows // 3, columns // 2)):
                top, left = side * (256 * row + r), side * (256 * column + c)
                cells = weights[1, 2, top : top + side, left : left + side]
                (value,) = struct.unpack_from("<f", answer.content, 4 * (r * columns + c))
                assert value == pytest.approx(getattr(cells, pool)(), abs=1e-6)


def test_headers_of_arrays_are_documented(server, client):
    said = {header.strip("`"): value for header, value in table("## Numbers")}
    answer = client.get(f"/api/recordings/{server.id}/maps/1/1/2/tiles/mean/0/1/0")
    assert answer.headers["content-type"] == said["content-type"].strip("`")
    assert answer.headers["regard-shape"] == re.search(r"`([\d,]+)`", said["regard-shape"])[1] == "45,256"
    assert int(answer.headers["content-length"]) == len(answer.content) == 4 * 45 * 256
    assert answer.headers["regard-exact"] == "yes" in said["regard-exact"]
    assert answer.headers["cache-control"] == recordings.CACHE_FOREVER in said["cache-control"]


def test_rows_columns_and_top_are_those_of_the_weights(server, client, weights):
    base = f"/api/recordings/{server.id}/maps/1/1/2"
    np.testing.assert_allclose(
        np.frombuffer(client.get(f"{base}/rows/17").content, "<f4"), weights[1, 2, 17], atol=1e-6
    )
    column = np.frombuffer(client.get(f"{base}/columns/17").content, "<f4")
    np.testing.assert_allclose(column, weights[1, 2, :, 17], atol=1e-6)
    top = client.get(f"{base}/top/17?k=3").json()
    np.testing.assert_allclose(top["weights"], np.sort(weights[1, 2, 17])[::-1][:3], atol=1e-6)
    np.testing.assert_allclose(weights[1, 2, 17][top["keys"]], top["weights"], atol=1e-6)


def test_thumbnails_are_mean_weights(server, client, weights):
    answer = client.get(f"/api/recordings/{server.id}/thumbs/1/1?side=8")
    assert answer.headers["regard-shape"] == "4,8,8"
    found = np.frombuffer(answer.content, "<f4").reshape(4, 8, 8)
    edges = [b * 301 // 8 for b in range(9)]
    part = weights[1, 2, edges[3] : edges[4], edges[1] : edges[2]]
    assert found[2, 3, 1] == pytest.approx(part.mean(), abs=1e-6)


def test_head_is_get_without_a_body(server, client):
    for (method, _), example in EXAMPLES.items():
        if method == "GET" and not example.endswith("/train"):
            target = example.replace("ID", server.id)
            get, head = settled(client, target), client.head(target)
            assert head.status_code == get.status_code == 200
            assert head.content == b""
            unlike = {"date", "retry-after"}
            assert {k: v for k, v in head.headers.items() if k not in unlike} == {
                k: v for k, v in get.headers.items() if k not in unlike
            }


def test_limits_are_documented():
    said = {int(status): when for status, when in table("## Refusals")}
    assert str(guard.BODY_LIMIT) in said[413]
    assert str(guard.URL_LIMIT) in said[414]
    assert str(guard.HEADER_LIMIT) in said[431]
    assert f"{protocol.RECEIVE_SECONDS:.0f} seconds" in said[408]
