"""A head's map: fine tiles on their own, the coarse levels in one pass, and the wall of thumbnails."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors
from benchmarks.record import SMALL, Model, forward
from benchmarks.recorded import FORWARD, MINILM, make_recorded
from benchmarks.tasks import BOTH, SEED, attention_work, make_tensors, mask_name, pairs_causal, pairs_full
from regard import masks
from regard.web.maps.arrays import TILE
from regard.web.maps.pyramid import AttentionMap, n_levels
from regard.web.maps.thumbnails import thumbnails

LONG = 32_768
FINE = 5  # levels of which a tile is made on its own
COUNT = 200  # tiles of which the 95th percentile is taken
WHOLE_ROWS = words("the softmax of whole rows, cut and pooled", "整行 softmax，再裁切、池化")
ATTEND = words("attend on the same head", "同一个头的 attend")

Place = tuple[str, int, int, int]


def places(n: int, count: int) -> Iterator[Place]:
    """Return random tiles of all fine levels."""
    draw = random.Random(SEED)
    for number in range(count):
        level = number % min(FINE, n_levels(n))
        last = -(-n // (TILE << level)) - 1
        yield draw.choice(("mean", "max")), level, draw.randint(0, last), draw.randint(0, last)


def make(sizes: Sizes, *, causal: bool) -> Tensors:
    """Return one head and its map, with the log-sum-exp of the fused kernel, as in a recording."""
    x = make_tensors(sizes)
    output, weights = rg.attend(x.q, x.k, x.v, mask=masks.causal() if causal else None)
    del output
    x.more.update(map=AttentionMap(weights, lse=weights.logsumexp()[0, 0]), weights=weights, causal=causal)
    return x


def our_tiles(x: Tensors) -> list[Tensor]:
    return [torch.from_numpy(x.more["map"].tile(*place).values) for place in places(x.q.shape[-2], FINE)]


def whole_rows(x: Tensors) -> list[Tensor]:
    return [from_whole_rows(x, *place) for place in places(x.q.shape[-2], FINE)]


def from_whole_rows(x: Tensors, pool: str, level: int, row: int, column: int) -> Tensor:
    """Compute tiles without the row statistic, a few rows at a time so that they stay in the cache."""
    n, side = x.q.shape[-2], 1 << level
    low, left = row * TILE * side, column * TILE * side
    strips: list[Tensor] = []
    for start in range(low, min(low + TILE * side, n), 64):
        rows = slice(start, min(start + 64, n))
        s = (x.q[0, 0, rows] * x.q.shape[-1] ** -0.5) @ x.k[0, 0].mT
        if x.more["causal"]:
            s.masked_fill_(torch.arange(n) > torch.arange(n)[rows, None], -torch.inf)
        p = torch.softmax(s, -1)[:, left : left + TILE * side]
        squares = p.unflatten(0, (-1, side)).unflatten(-1, (-1, side))
        strips.append(squares.mean((1, 3)) if pool == "mean" else squares.amax((1, 3)))
    return torch.cat(strips)


def slowest(n: int, causal: bool) -> dict[str, float]:
    """Return the 95th percentile of the time of a tile, each made once."""
    one = make(Sizes(n=n, heads=1), causal=causal).more["map"]
    took: list[float] = []
    for place in places(n, COUNT):
        start = time.perf_counter()
        one.tile(*place)
        took.append(time.perf_counter() - start)
    return {"p95_ms": 1e3 * float(np.percentile(took, 95))}


def refined(x: Tensors) -> Tensor:
    """Compute all coarse levels of a map that has no row statistic yet."""
    one = AttentionMap(x.more["weights"])
    for _ in one.refine():
        pass
    return torch.from_numpy(one.tile("mean", one.levels - 1, 0, 0).values)


def attended(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, mask=masks.causal() if x.more["causal"] else None).output


def wall(x: Tensors) -> list[Tensor]:
    return [torch.from_numpy(thumbnails(entry).values) for entry in x.more["recording"].entries]


def pairs(n: int, causal: bool) -> int:
    return pairs_causal(n) if causal else pairs_full(n)


def tiles(n: int, causal: bool, goals: tuple[str, ...]) -> Line:
    sizes = Sizes(n=n, heads=1)
    text = words(f"tiles of a {n} x {n} map, {mask_name(causal)}", f"{n} x {n} 图的图块，{mask_name(causal)}")
    return Line(
        name=f"maps/n{n}/{mask_name(causal)}/tiles",
        family=Family(text, WHOLE_ROWS),
        sizes=sizes,
        make=partial(make, causal=causal),
        ours=our_tiles,
        peers={"whole rows": whole_rows},
        work=attention_work(sizes, pairs(n, causal), gradients=False),
        goals=goals,
        rounds=5,
        memory=True,
        quality=partial(slowest, n, causal),
    )


def coarse(n: int, causal: bool, goals: tuple[str, ...]) -> Line:
    sizes = Sizes(n=n, heads=1)
    text = words(
        f"all coarse levels of a {n} x {n} map, {mask_name(causal)}", f"{n} x {n} 图的全部粗层，{mask_name(causal)}"
    )
    return Line(
        name=f"maps/n{n}/{mask_name(causal)}/coarse",
        family=Family(text, ATTEND),
        sizes=sizes,
        make=partial(make, causal=causal),
        ours=refined,
        peers={"attend": attended},
        work=attention_work(sizes, pairs(n, causal), gradients=False),
        goals=goals,
        rounds=3,
        memory=True,
        chained=True,
    )


def painted(model: Model, n: int, goals: tuple[str, ...]) -> Line:
    text = words(f"thumbnails of {model.size} heads, n = {n}", f"{model.size} 个头的缩略图，n = {n}")
    return Line(
        name=f"maps/n{n}/wall",
        family=Family(text, FORWARD),
        sizes=model.sizes(n),
        make=partial(make_recorded, model=model),
        ours=wall,
        peers={"forward": forward},
        work=model.work(n),
        goals=goals,
        rounds=5,
        chained=True,
    )


def lines(quick: bool) -> list[Line]:
    if quick:
        return [tiles(2048, True, ()), coarse(9000, False, ()), painted(SMALL, 256, ())]
    return [
        *(tiles(LONG, causal, ("p95_ms <= 150",)) for causal in BOTH),
        *(coarse(LONG, causal, ("seconds <= 6", "memory_mb <= 128")) for causal in BOTH),
        painted(MINILM, 512, ("seconds <= 1.5",)),
    ]
