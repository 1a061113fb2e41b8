"""Requests that mean no good, for any route, each with the status that it deserves."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from web_server import Running, raw

# Every route of the table, as somebody would ask for it. ID stands for a recording that is there.
EXAMPLES = {
    ("GET", "/"): "/",
    ("GET", "/assets/{name}"): "/assets/page-1a2b.js",
    ("GET", "/api/health"): "/api/health",
    ("GET", "/api/lessons"): "/api/lessons",
    ("POST", "/api/lessons/{name}"): "/api/lessons/cues",
    ("GET", "/api/lessons/{name}/train"): "/api/lessons/regression/train",
    ("GET", "/api/recordings"): "/api/recordings",
    ("POST", "/api/recordings"): "/api/recordings",
    ("GET", "/api/recordings/{id}"): "/api/recordings/ID",
    ("GET", "/api/recordings/{id}/profiles"): "/api/recordings/ID/profiles",
    ("GET", "/api/recordings/{id}/thumbs/{entry}/{batch}"): "/api/recordings/ID/thumbs/1/0",
    ("GET", "/api/recordings/{id}/maps/{entry}/{batch}/{head}"): "/api/recordings/ID/maps/1/0/3",
    (
        "GET",
        "/api/recordings/{id}/maps/{entry}/{batch}/{head}/tiles/{pool}/{level}/{row}/{column}",
    ): "/api/recordings/ID/maps/1/0/3/tiles/mean/0/1/0",
    (
        "GET",
        "/api/recordings/{id}/maps/{entry}/{batch}/{head}/peaks/{pool}/{level}/{row}",
    ): "/api/recordings/ID/maps/1/0/3/peaks/mean/0/1",
    ("GET", "/api/recordings/{id}/maps/{entry}/{batch}/{head}/rows/{i}"): "/api/recordings/ID/maps/1/0/3/rows/7",
    ("GET", "/api/recordings/{id}/maps/{entry}/{batch}/{head}/columns/{j}"): "/api/recordings/ID/maps/1/0/3/columns/7",
    ("GET", "/api/recordings/{id}/maps/{entry}/{batch}/{head}/top/{i}"): "/api/recordings/ID/maps/1/0/3/top/7",
}
NUMBERS = {"entry", "batch", "head", "level", "row", "column", "i", "j"}
QUERIES = {"thumbs/{entry}/{batch}": "side", "top/{i}": "k"}

NO_NUMBERS = [
    "-1", "+1", "1.5", "1e3", "01", "00", "0x1", "NaN", "inf", "null", "true", "1_000", "%201", "1%20", "1%2c2",
    "%EF%BC%91", "%D9%A3", "%E2%82%82", "99999999999999999999", "9" * 400, "-9223372036854775809", "1;2", "1'--",
    "%24%7B1%7D",
]  # fmt: skip
TRAVERSALS = [
    "/../../../../etc/passwd", "/..%2f..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/..%5c..%5cetc%5cpasswd/x",
    "/%252e%252e%252fetc/%252fpasswd/x", "/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd", "/....//....//etc/passwd",
    "/./../secret.txt/x", "/../assets/../secret.txt/", "/%2fetc%2fpasswd%2f", "/..%00/etc/passwd",
    "/..;/..;/etc/passwd/x",
]  # fmt: skip
NO_JSON = {
    "nothing": b"",
    "half an object": b'{"a": ',
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "a text": b'"x"',
    "Python": b"{'a': 1}",
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 20_000,
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a number without end": b'{"a": ' + b"9" * 100_000 + b"}",
    "two objects": b"{}{}",
    "a key twice": b'{"a": 1, "a": 2}',
    "a form": b"text=hello&model=minilm",
}


class Case(NamedTuple):
    name: str
    request: bytes
    status: int


def target_of(row, identity: str) -> str:
    return EXAMPLES[row.method, row.path].replace("ID", identity)


class Hostile:
    """All cases of one route."""

    def __init__(self, server: Running, row) -> None:
        self.server, self.row = server, row
        self.target = target_of(row, server.id)
        self.cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
        self.host = ("Host", server.host)

    def cases(self) -> Iterator[Case]:
        yield from self.strangers()
        yield from self.hosts()
        yield from self.origins()
        yield from self.methods()
        yield from self.sizes()
        yield from self.no_http()
        yield from self.paths()
        yield from self.numbers()
        yield from self.json()

    def request(self, *headers, target=None, method=None, body=b"", version="HTTP/1.1") -> bytes:
        return raw(method or self.row.method, target or self.target, list(headers), body, version)

    def strangers(self) -> Iterator[Case]:
        address = self.server.address
        wrong = {
            "no token": [],
            "an empty one": [f"{address.cookie}="],
            "a wrong one": [f"{address.cookie}={'x' * 43}"],
            "all but its last letter": [f"{address.cookie}={address.token[:-1]}"],
            "one letter more": [f"{address.cookie}={address.token}x"],
            "in quotes": [f'{address.cookie}="{address.token}"'],
            "of another port": [f"regard-{address.port + 1}={address.token}"],
            "under another name": [f"token={address.token}"],
            "in the name": [f"{address.token}={address.cookie}"],
            "letters of another world": [f"{address.cookie}=\xff\xfe\x80"],
        }
        for name, cookies in wrong.items():
            yield Case(f"token: {name}", self.request(self.host, *(("Cookie", c) for c in cookies)), 401)
        yield Case("token: bearer", self.request(self.host, ("Authorization", f"Bearer {address.token}")), 401)
        yield Case("token: wrong, in the address", self.request(self.host, target=f"{self.target}?token=x"), 401)
        if self.target != "/":
            yield Case(
                "token: in the address", self.request(self.host, target=f"{self.target}?token={address.token}"), 401
            )
        else:
            twice = f"/?token={address.token}&token={address.token}"
            yield Case("token: twice in the address", self.request(self.host, target=twice), 401)

    def hosts(self) -> Iterator[Case]:
        port = self.server.address.port
        wrong = [
            "evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", "127.0.0.1:80",
            f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}", f"evil@127.0.0.1:{port}", "",
            f"0x7f.1:{port}", f"2130706433:{port}", f"[::ffff:127.0.0.1]:{port}", f"127.0.0.1:{port}, evil.example",
            f"127.0.0.1:0{port}", f"0.0.0.0:{port}", f"127.0.0.2:{port}", f":{port}",
        ]  # fmt: skip
        for host in wrong:
            yield Case(f"host: {host}", self.request(("Host", host), self.cookie), 403)
        yield Case("host: none", self.request(self.cookie), 400)
        yield Case("host: twice", self.request(self.host, self.host, self.cookie), 400)
        yield Case("host: none, HTTP/1.0", self.request(self.cookie, version="HTTP/1.0"), 403)
        forwarded = ("X-Forwarded-Host", self.server.host)
        yield Case("host: forwarded", self.request(("Host", "evil.example"), forwarded, self.cookie), 403)

    def origins(self) -> Iterator[Case]:
        port = self.server.address.port
        wrong = [
            "https://evil.example", "null", "", f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}", "http://127.0.0.1",
            f"http://localhost:{port}", f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}.evil.example", "file://",
        ]  # fmt: skip
        for origin in wrong:
            yield Case(f"origin: {origin}", self.request(self.host, self.cookie, ("Origin", origin)), 403)
        own = ("Origin", f"http://{self.server.host}")
        yield Case("origin: twice", self.request(self.host, self.cookie, own, ("Origin", "null")), 403)

    def methods(self) -> Iterator[Case]:
        offered = {row.method for row in self.server.rows if row.path == self.row.path}
        offered |= {"HEAD"} if "GET" in offered else set()
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "PROPFIND"):
            if method not in offered:
                yield Case(f"method: {method}", self.request(self.host, self.cookie, method=method), 405)

    def sizes(self) -> Iterator[Case]:
        known = (self.host, self.cookie)
        yield Case("size: long address", self.request(*known, target=f"{self.target}?{'a' * 20_000}"), 414)
        yield Case("size: endless address", self.request(*known, target=f"{self.target}?{'a' * 200_000}"), 414)
        yield Case("size: long header", self.request(*known, ("X-Long", "a" * 40_000)), 431)
        yield Case("size: endless header", self.request(*known, ("X-Long", "a" * 400_000)), 431)
        yield Case("size: many headers", self.request(*known, *((f"X-{i}", "a" * 9) for i in range(4000))), 431)
        yield Case("size: announced", self.request(*known, ("Content-Length", "1000000000000")), 413)
        yield Case("size: large body", self.request(*known, ("Content-Length", "300000"), body=b"a" * 300_000), 413)
        pieces = b"".join(b"4000\r\n" + b"a" * 0x4000 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
        yield Case("size: in pieces", self.request(*known, ("Transfer-Encoding", "chunked"), body=pieces), 413)
        if self.row.method == "GET":
            yield Case("size: a body", self.request(*known, ("Content-Length", "1"), body=b"a"), 413)

    def no_http(self) -> Iterator[Case]:
        known = (self.host, self.cookie)
        for length in ("-1", "abc", "1 2", "9" * 30, "0x10", "1,2"):
            yield Case(f"http: length {length}", self.request(*known, ("Content-Length", length)), 400)
        two = (("Content-Length", "3"), ("Content-Length", "4"))
        yield Case("http: two lengths", self.request(*known, *two, body=b"abcd"), 400)
        yield Case("http: gzip", self.request(*known, ("Transfer-Encoding", "gzip")), 400)
        pieces = ("Transfer-Encoding", "chunked")
        bodies = {
            "bad piece": b"zz\r\nabc\r\n0\r\n\r\n",
            "signed piece": b"+0\r\n\r\n",
            "hexadecimal piece": b"0x0\r\n\r\n",
            "piece without CR": b"0\n\r\n\r\n",
            "endless piece": b"f" * 40 + b"\r\n",
            "trailer that is no header": b"0\r\nnonsense\r\n\r\n",
        }
        for name, body in bodies.items():
            yield Case(f"http: {name}", self.request(*known, pieces, body=body), 400)
        both = (pieces, ("Content-Length", "5"))
        yield Case("http: length and pieces", self.request(*known, *both, body=b"0\r\n\r\n"), 400)
        yield Case("http: pieces and length", self.request(*known, *both[::-1], body=b"0\r\n\r\n"), 400)
        yield Case("http: pieces twice", self.request(*known, pieces, pieces, body=b"0\r\n\r\n"), 400)
        for odd in ("chunked, chunked", "gzip, chunked", "xchunked", "chunked;a=b", '"chunked"'):
            yield Case(f"http: pieces as {odd}", self.request(*known, ("Transfer-Encoding", odd)), 400)
        old = self.request(*known, pieces, body=b"0\r\n\r\n", version="HTTP/1.0")
        yield Case("http: pieces in HTTP/1.0", old, 400)
        folded = self.request(*known, ("X-Odd", "a\r\n b"))
        yield Case("http: folded line", folded, 400)
        yield Case("http: folded length", self.request(*known, ("Content-Length", "\r\n 5"), body=b"abcde"), 400)
        yield Case("http: lines without CR", self.request(*known).replace(b"\r\n", b"\n"), 400)
        yield Case("http: one line without CR", self.request(*known, ("X-Odd", "a\nX-Two: b")), 400)
        yield Case("http: CR alone", self.request(*known, ("X-Odd", "a\rX-Two: b")), 400)
        yield Case("http: version", self.request(*known, version="HTTP/9.9"), 505)
        yield Case("http: no version", self.request(*known, version=""), 400)
        yield Case("http: NUL", self.request(*known, ("X-Odd", "a\0b")), 400)
        yield Case("http: no colon", self.request(*known).replace(b"\r\n\r\n", b"\r\nnonsense\r\n\r\n"), 400)
        yield Case("http: space before colon", self.request(*known, ("X-Odd ", "a")), 400)
        yield Case("http: bytes in the address", self.request(*known, target=f"{self.target}?\xff"), 400)
        yield Case("http: space in the address", self.request(*known, target=f"{self.target} x"), 400)
        yield Case("http: TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400)
        yield Case("http: nothing", b"\r\n\r\n\r\n", 400)

    def paths(self) -> Iterator[Case]:
        known = (self.host, self.cookie)
        base = self.target.rstrip("/")
        for way in TRAVERSALS:
            yield Case(f"path: {way}", self.request(*known, target=base + way), 404)
        for end in ("%0a", "%00", "%0d%0aSet-Cookie:%20a=b"):
            yield Case(f"path: ends in {end}", self.request(*known, target=self.target + end), 404)
        yield Case("path: //", self.request(*known, target="/" + self.target + "/"), 404)
        yield Case("path: whole address", self.request(*known, target=f"http://{self.server.host}{self.target}"), 404)
        if "{id}" in self.row.path:
            for other in ("0", "..", "%2e%2e", "ID", self.server.id.upper() + "x", "%00", "tiny.regard", "__class__"):
                target = self.target.replace(self.server.id, other)
                yield Case(f"path: recording {other}", self.request(*known, target=target), 404)
        if "{name}" in self.row.path:
            parts = self.row.path.split("/").index("{name}")
            for other in (
                "..",
                "%2e%2e",
                "..%5cindex.html",
                "secret.txt",
                "__init__",
                "%E4%B8%AD",
                "constructor",
                "CUES",
            ):
                pieces = self.target.split("/")
                pieces[parts] = other
                body = b"{}" if self.row.method == "POST" else b""
                size = ("Content-Length", str(len(body)))
                yield Case(f"path: {other}", self.request(*known, size, target="/".join(pieces), body=body), 404)

    def numbers(self) -> Iterator[Case]:
        known = (self.host, self.cookie)
        for place, part in enumerate(self.row.path.split("/")):
            if part.strip("{}") not in NUMBERS or not part.startswith("{"):
                continue
            for odd, status in [*((odd, 400) for odd in NO_NUMBERS), ("999999999", 404), ("", 404), ("1%00", 404)]:
                pieces = self.target.split("/")
                pieces[place] = odd
                yield Case(f"{part}: {odd[:30]}", self.request(*known, target="/".join(pieces)), status)
        for pool in ("sum", "MEAN", "", "..", "mean%20", "0") if "{pool}" in self.row.path else ():
            target = self.target.replace("/mean/", f"/{pool}/")
            yield Case(f"pool: {pool}", self.request(*known, target=target), 404)
        for end, name in QUERIES.items():
            if self.row.path.endswith(end):
                for odd in (*NO_NUMBERS, "0", "999999999", "", f"9&{name}=9"):
                    target = f"{self.target}?{name}={odd.replace('%', '%25') if odd.startswith('%24') else odd}"
                    yield Case(f"{name}: {odd[:30]}", self.request(*known, target=target), 400)

    def json(self) -> Iterator[Case]:
        known = (self.host, self.cookie)
        if self.row.method == "POST":
            for name, body in NO_JSON.items():
                size = ("Content-Length", str(len(body)))
                yield Case(f"json: {name}", self.request(*known, size, body=body), 400)
            for body in self.senseless():
                text = json.dumps(body).encode()
                size = ("Content-Length", str(len(text)))
                yield Case(f"json: {str(body)[:40]}", self.request(*known, size, body=text), 422)
        if self.row.path.endswith("/train"):
            for state in ("", "{", "[]", "null", "%7B%22w%22:NaN%7D", "%ff", "%00", "{}&state={}", "[" * 9000):
                yield Case(f"state: {state[:20]}", self.request(*known, target=f"{self.target}?state={state}"), 400)
            for state in ('{"no_such_field":1}', '{"w":"wide"}', '{"w":[1]}', '{"w":1e308}'):
                target = f"{self.target}?state={state}".replace('"', "%22")
                yield Case(f"state: {state}", self.request(*known, target=target), 422)

    def senseless(self) -> list[dict]:
        if self.row.path == "/api/lessons/{name}":
            return [
                {"no_such_field": 1},
                {"pooling": 1},
                {"pooling": "no such"},
                {"pooling": None},
                {"pooling": ["query"]},
            ]
        return [
            {}, {"text": ""}, {"text": " \n "}, {"text": 1}, {"text": None}, {"text": ["a"]}, {"text": "a" * 20_001},
            {"text": "\ud800"}, {"text": "a", "model": "gpt-7"}, {"text": "a", "model": "/etc/passwd"},
            {"text": "a", "model": None}, {"text": "a", "model": ["minilm"]}, {"text": "a", "path": "/etc/x"},
            {"model": "minilm"},
        ]  # fmt: skip
