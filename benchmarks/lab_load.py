"""The viewer's server under load: cached tiles and new tiles."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import SEED
from benchmarks.web_load import Asking, Served, Tally, closed_loop, open_loop, serve, serve_plain

TILE = 256
PLAIN = words("uvicorn alone, the same bytes", "单独的 uvicorn，同样的字节")
LEVELS = 5  # one pixel is 1 to 16 x 16 cells


@cache
def recorded(n: int) -> Path:
    """A recording of n tokens by a tiny random model."""
    import transformers

    torch.manual_seed(SEED)
    config = transformers.LlamaConfig(
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, hidden_size=128, intermediate_size=64,
        vocab_size=1000, max_position_embeddings=n,
    )  # fmt: skip
    model = transformers.LlamaModel(config).eval()
    path = Path(tempfile.mkdtemp(prefix="regard-bench-")) / "long.regard"
    with torch.no_grad(), rg.record(model, path=path):
        model(torch.randint(0, 1000, (1, n)), use_cache=False)
    return path


@cache
def served(n: int) -> Served:
    return serve(recorded(n))


@cache
def base(n: int) -> str:
    """The address of one head's map; asking for it makes its coarse levels exact, for which we wait."""
    ask = Asking(served(n).port)
    _, body = ask(served(n).request("/api/recordings"))
    identity = body.split(b'"id":"')[1].split(b'"')[0].decode()
    place = f"/api/recordings/{identity}/maps/0/0/1"
    while b'"exact":true' not in ask(served(n).request(place))[1]:
        pass
    return place


def kept(n: int) -> list[str]:
    """A screen full of tiles, more than once."""
    across = min(5, -(-n // TILE))
    return [f"{base(n)}/tiles/mean/0/{row}/{column}" for row in range(across) for column in range(across)]


def fresh(n: int) -> Iterator[str]:
    """Return paths of new tiles in the visible half, at any fine level."""
    draw = random.Random(SEED)
    counts = [-(-n // (TILE << level)) for level in range(LEVELS)]
    tiles = [
        (level, row, column) for level in range(LEVELS) for row in range(counts[level]) for column in range(row + 1)
    ]
    while True:  # a small map is soon seen whole
        for level, row, column in draw.sample(tiles, len(tiles)):
            yield f"{base(n)}/tiles/{draw.choice(('mean', 'max'))}/{level}/{row}/{column}"


@cache
def served_plain(n: int) -> Served:
    file = recorded(n).with_suffix(".tile")
    file.write_bytes(Asking(served(n).port)(served(n).request(kept(n)[0]))[1])
    return serve_plain(file)


def make(sizes: Sizes) -> Tensors:
    ours, plain = served(sizes.n), served_plain(sizes.n)
    more: dict[str, Any] = {
        "ours": (Asking(ours.port), ours.request(kept(sizes.n)[0])),
        "plain": (Asking(plain.port), plain.request("/")),
    }
    nothing = torch.zeros(0)
    return Tensors(nothing, nothing, nothing, nothing, more=more)


def tile(x: Tensors, *, of: str) -> Tensor:
    ask, request = x.more[of]
    status, body = ask(request)
    if status != 200:
        raise RuntimeError(f"the server says {status}: {body[:200]!r}")
    return torch.frombuffer(bytearray(body), dtype=torch.float32)


def warm(n: int) -> list[str]:
    targets = kept(n)
    ask = Asking(served(n).port)
    for target in targets * 2:
        ask(served(n).request(target))
    return targets


def at_a_rate(n: int, seconds: float) -> Mapping[str, float]:
    """Request 300 cached tiles per second at a fixed rate. Memory is compared after the first tenth of the time."""
    targets, memory = warm(n), list[int]()
    server = served(n)
    tally = open_loop(server, targets, 300, seconds, lambda: memory.append(server.memory))
    before, after = memory[len(memory) // 10], server.memory
    return {
        "p99_ms": tally.quantile(0.99),
        "errors": tally.errors,
        "growth": 100 * (after - before) / before,
        "per_second": tally.per_second,
    }


def as_fast_as_it_goes(n: int, connections: int, seconds: float) -> Mapping[str, float]:
    return figures(closed_loop(served(n), itertools.cycle(warm(n)), connections, seconds))


def never_seen(n: int, connections: int, seconds: float) -> Mapping[str, float]:
    return figures(closed_loop(served(n), fresh(n), connections, seconds))


def figures(tally: Tally) -> Mapping[str, float]:
    return {
        "p95_ms": tally.quantile(0.95),
        "p99_ms": tally.quantile(0.99),
        "errors": tally.errors,
        "per_second": tally.per_second,
    }


def line(name: str, n: int, en: str, zh: str, quality: Any, goals: tuple[str, ...]) -> Line:
    return Line(
        name=f"lab_load/{name}",
        family=Family(words(en, zh), PLAIN),
        sizes=Sizes(n=n, heads=2, d=64, d_v=64),
        make=make,
        ours=partial(tile, of="ours"),
        peers={"uvicorn": partial(tile, of="plain")},
        work=Work(flops=2.0 * TILE * TILE * 64, exps=TILE * TILE),
        goals=goals,
        quality=quality,
        rounds=5,
        tolerance=0.0,
    )


def lines(quick: bool) -> list[Line]:
    n, long, short = (1024, 1.0, 0.5) if quick else (32_768, 60.0, 10.0)
    steady = ("p99_ms <= 100", "errors <= 0", "growth <= 5")
    return [
        line(
            "open300", n, "kept tiles, 300 a second", "已缓存的图块，每秒 300 块", partial(at_a_rate, n, long), steady
        ),
        *(
            line(
                f"closed{connections}",
                n,
                f"kept tiles, {connections} connections",
                f"已缓存的图块，{connections} 个连接",
                partial(as_fast_as_it_goes, n, connections, short),
                ("errors <= 0",),
            )
            for connections in (8, 64)
        ),
        line(
            "fresh",
            n,
            f"fine tiles of a map of {n} x {n}, never asked for before, 2 connections",
            f"{n} x {n} 图中从未请求过的细图块，2 个连接",
            partial(never_seen, n, 2, short),
            ("p95_ms <= 150", "errors <= 0"),
        ),
    ]
