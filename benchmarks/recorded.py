"""Recordings: questions over a whole one, and opening it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.record import SMALL, Model, forward, make

FORWARD = words("the model's own forward pass", "模型自身的前向计算")
LOAD = words("torch.load of the same tensors", "用 torch.load 读同样的张量")
MINILM = Model(layers=6, heads=12, key_heads=12, hidden=384, inner=1024)
SMOLLM2 = Model(layers=30, heads=9, key_heads=3, hidden=576, inner=1536)


@cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="regard-bench-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def make_recorded(sizes: Sizes, *, model: Model) -> Tensors:
    x = make(sizes, model=model)
    with torch.no_grad(), rg.record(x.more["model"]) as x.more["recording"]:
        forward(x)
    return x


def make_saved(sizes: Sizes, *, model: Model) -> Tensors:
    """The recording in a file, and its queries and keys in one of torch's."""
    x = make_recorded(sizes, model=model)
    kept = x.more.pop("recording")
    x.more["path"] = folder() / f"{sizes.n}.regard"
    x.more["torch"] = folder() / f"{sizes.n}.pt"
    kept.save(x.more["path"])
    torch.save({call.name: (call.query, call.key) for call in kept.calls}, x.more["torch"])
    return x


def profiles(x: Tensors) -> Tensor:
    """Compute profiles of every layer; a recording caches no answers."""
    return torch.tensor(rg.analysis.profiles(x.more["recording"]).column("entropy"))


def opened(x: Tensors) -> Tensor:
    """Open the file and read the name and shape of every layer."""
    return torch.tensor([layer.shape for layer in rg.open(x.more["path"]).layers])


def loaded(x: Tensors) -> Tensor:
    loaded = torch.load(x.more["torch"])
    return torch.tensor([(*query.shape[:-1], key.shape[-2]) for query, key in loaded.values()])


def profiled(model: Model, n: int, goals: tuple[str, ...]) -> Line:
    return Line(
        name=f"recorded/n{n}/profiles",
        family=Family(words(f"profiles of {model.size} heads, n = {n}", f"{model.size} 个头的画像，n = {n}"), FORWARD),
        sizes=model.sizes(n),
        make=partial(make_recorded, model=model),
        ours=profiles,
        peers={"forward": forward},
        work=model.work(n),
        goals=goals,
        rounds=3,
        chained=True,
    )


def opening(model: Model, n: int) -> Line:
    return Line(
        name=f"recorded/n{n}/open",
        family=Family(words(f"open {model.size} heads, n = {n}", f"打开 {model.size} 个头的录制文件，n = {n}"), LOAD),
        sizes=model.sizes(n),
        make=partial(make_saved, model=model),
        ours=opened,
        peers={"load": loaded},
        work=Work(0.0),
        goals=("seconds <= 0.05",),
        rounds=7,
    )


def lines(quick: bool) -> list[Line]:
    if quick:
        return [profiled(SMALL, 256, ()), opening(SMALL, 512)]
    return [
        profiled(MINILM, 512, ("seconds <= 1",)),
        profiled(SMOLLM2, 4096, ("time_ratio <= 3",)),
        opening(SMOLLM2, 2048),
    ]
