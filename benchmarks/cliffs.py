"""Masks, biases and shapes that everybody uses, against the best that a user writes by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from statistics import median

import torch
from torch import Tensor

import regard as rg
from benchmarks import attend, by_hand, regression_bandwidth
from benchmarks.combinations import ENTROPY_BACKWARD, Combination
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.memory import ROOT
from benchmarks.tasks import SDPA, SEED, SHORT_SDPA, attention_work, make_tensors, maker, pairs_causal, pairs_full
from benchmarks.visible import SINKS_AND_WINDOW
from regard import masks, scores

RAGGED = (3000, 1800, 1200, 800, 600, 400, 200, 128, 64)  # tokens of documents, 8,192 together
PACKED = 8192
SHORTEST = 100  # of the padded sequences, where the longest has 1,024 tokens
DROPOUT = 0.1
POINTS = 1500
PROCESSES = 5
SDPA_TABLE = words(f"{SDPA} with that mask", f"{SDPA}，同一掩码")
AS_BATCH = words("the documents as a batch", "把文档作为一批")
FIRST_FIT = """
import json, time
import finufft, scipy.optimize, sklearn.base, torch
from regard.regression import NadarayaWatson
from benchmarks.harness import Sizes
from benchmarks.regression_bandwidth import make
data = make(Sizes(n={n}, heads=1, d=1, d_v=1))
x, y = data.q.numpy(), data.v[:, 0].numpy()
start = time.perf_counter()
NadarayaWatson().fit(x, y)
print(json.dumps(time.perf_counter() - start))
"""
Lengths = Callable[[int], list[int]]


def equal_lengths(n: int, *, documents: int) -> list[int]:
    return [n // documents] * documents


def ragged_lengths(n: int) -> list[int]:
    """Return the lengths of nine documents in n tokens, as those of RAGGED in 8,192."""
    edges = [edge * n // PACKED for edge in accumulate(RAGGED, initial=0)]
    return [b - a for a, b in pairwise(edges)]


def padded_lengths(sizes: Sizes) -> Tensor:
    """Return a length for each sequence, evenly from about a tenth of n to n."""
    return torch.linspace(SHORTEST * sizes.n / 1024, sizes.n, sizes.batch).round().long()


def make_packed(sizes: Sizes, *, lengths: Lengths, gradients: bool = False) -> Tensors:
    counts = lengths(sizes.n)
    ids = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    return replace(make_tensors(sizes, gradients=gradients), more={"ids": ids})


def make_allowed(sizes: Sizes) -> Tensors:
    table = torch.rand(sizes.n, sizes.n, generator=torch.Generator().manual_seed(SEED)) < 0.5
    return replace(make_tensors(sizes), more={"visible": table})


def make_biased(sizes: Sizes) -> Tensors:
    table = torch.randn(sizes.n, sizes.n, generator=torch.Generator().manual_seed(SEED))
    return replace(make_tensors(sizes), more={"bias": table})


def make_padded(sizes: Sizes, *, causal: bool) -> Tensors:
    lengths, at = padded_lengths(sizes), torch.arange(sizes.n)
    visible = (at < lengths[:, None])[:, None, None]  # (batch, 1, 1, keys)
    if causal:
        visible = visible & (at <= at[:, None])
    return replace(make_tensors(sizes), more={"lengths": lengths, "visible": visible})


def packed(x: Tensors, *, causal: bool) -> Tensor:
    within = masks.segments(x.more["ids"])
    return rg.attend(x.q, x.k, x.v, mask=within & masks.causal() if causal else within).output


def allowed(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, mask=masks.allow(x.more["visible"])).output


def biased(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, score=scores.scaled_dot() + scores.bias(x.more["bias"])).output


def padded(x: Tensors, *, causal: bool) -> Tensor:
    real = masks.padding(x.more["lengths"])
    return rg.attend(x.q, x.k, x.v, mask=real & masks.causal() if causal else real).output


def dropped(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, dropout_p=DROPOUT).output


def packed_line(n: int, documents: int, goal: str, *, causal: bool, gradients: bool = False) -> Line:
    sizes, lengths = Sizes(n=n), partial(equal_lengths, documents=documents)
    pairs = documents * (pairs_causal if causal else pairs_full)(n // documents)
    en = f"{documents} packed documents of {n // documents}" + ", causal" * causal + ", forward+backward" * gradients
    zh = f"打包 {documents} 篇长 {n // documents} 的文档" + "，因果" * causal + "，前向加反向" * gradients
    return Line(
        name=f"cliffs/packed/{documents}x{n // documents}" + "/causal" * causal + "/forward+backward" * gradients,
        family=Family(words(en, zh), AS_BATCH),
        sizes=sizes,
        make=partial(make_packed, lengths=lengths, gradients=gradients),
        ours=partial(packed, causal=causal),
        peers={"as a batch": partial(by_hand.as_batch, documents=documents, causal=causal)},
        work=attention_work(sizes, pairs, gradients=gradients),
        goals=(goal,),
        gradients=gradients,
        rounds=15,
        memory=not gradients,
    )


def ragged_line(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name="cliffs/packed/ragged/causal",
        family=Family(
            words(f"9 ragged documents in {n}, causal", f"9 篇长短不一的文档，共 {n}，因果"),
            words("a loop over the documents", "逐篇文档循环"),
        ),
        sizes=sizes,
        make=partial(make_packed, lengths=ragged_lengths),
        ours=partial(packed, causal=True),
        peers={"a loop": partial(by_hand.loop, lengths=ragged_lengths, causal=True)},
        work=attention_work(sizes, sum(map(pairs_causal, ragged_lengths(n))), gradients=False),
        goals=("time_ratio <= 1.1",),
        rounds=15,
        memory=True,
    )


def table_lines(n: int) -> list[Line]:
    sizes = Sizes(n=n)
    allow = Line(
        name="cliffs/allow",
        family=Family(words(f"allow(random booleans {n} x {n})", f"allow(随机布尔 {n} x {n})"), SDPA_TABLE),
        sizes=sizes,
        make=make_allowed,
        ours=allowed,
        peers={"sdpa with that mask": by_hand.sdpa_with("visible")},
        work=attention_work(sizes, pairs_full(n), gradients=False),  # every block holds visible pairs
        goals=("time_ratio <= 1.05",),
        rounds=15,
        memory=True,
    )
    bias = replace(
        allow,
        name="cliffs/bias",
        family=Family(words(f"scaled_dot() + bias({n} x {n})"), SDPA_TABLE),
        make=make_biased,
        ours=biased,
        peers={"sdpa with that mask": by_hand.sdpa_with("bias")},
    )
    return [allow, bias]


def decode_line(keys: int) -> Line:
    sizes = Sizes(n=1, m=keys, heads=32, key_heads=8, d=128, d_v=128)
    return Line(
        name="cliffs/decode",
        family=Family(
            words(
                f"one query, {keys} keys, 32 heads on 8, d = 128, bfloat16",
                f"一个查询，{keys} 个键，32 头共用 8 头，d = 128，bfloat16",
            ),
            words(f"{SDPA}, enable_gqa=True"),
        ),
        sizes=sizes,
        make=maker(dtype=torch.bfloat16),
        ours=partial(attend.attend, causal=False),
        peers={SHORT_SDPA: by_hand.sdpa},
        work=attention_work(sizes, keys, gradients=False),
        goals=("time_ratio <= 0.45",),
        rounds=30,
        dtype="bfloat16",
        memory=True,
        tolerance=0.05,
    )


def bfloat16_line(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name="cliffs/bfloat16",
        family=Family(words(f"bfloat16, n = {n}, forward", f"bfloat16，n = {n}，前向"), words(SDPA)),
        sizes=sizes,
        make=maker(dtype=torch.bfloat16),
        ours=partial(attend.attend, causal=False),
        peers={SHORT_SDPA: by_hand.sdpa},
        work=attention_work(sizes, pairs_full(n), gradients=False),
        goals=("time_ratio <= 1.03",),
        dtype="bfloat16",
        tolerance=0.05,
    )


def padded_line(n: int, *, causal: bool) -> Line:
    sizes = Sizes(n=n, batch=16)
    lengths = padded_lengths(sizes).tolist()
    visible = sum(length * (length + 1) // 2 + (n - length) * length if causal else n * length for length in lengths)
    en, zh = f"padding, 16 x {n}, lengths {lengths[0]} to {n}", f"padding，16 x {n}，长度 {lengths[0]} 至 {n}"
    return Line(
        name="cliffs/padding" + "/causal" * causal,
        family=Family(
            words(en + ", causal" * causal, zh + "，因果" * causal),
            words(f"{SDPA} with the boolean mask", f"{SDPA}，布尔掩码"),
        ),
        sizes=sizes,
        make=partial(make_padded, causal=causal),
        ours=partial(padded, causal=causal),
        peers={"sdpa with the boolean mask": by_hand.sdpa_with("visible")},
        work=attention_work(sizes, visible, gradients=False),
        goals=("time_ratio <= 0.45" if causal else "time_ratio <= 0.65",),
        rounds=15,
        memory=True,
    )


def dropout_line(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name="cliffs/dropout",
        family=Family(
            words(f"dropout {DROPOUT}, n = {n}, forward+backward", f"dropout {DROPOUT}，n = {n}，前向加反向"),
            words(f"{SDPA}, dropout_p={DROPOUT}"),
        ),
        sizes=sizes,
        make=maker(gradients=True),
        ours=dropped,
        peers={SHORT_SDPA: partial(by_hand.sdpa, dropout_p=DROPOUT)},
        work=attention_work(sizes, pairs_full(n), gradients=True),
        goals=("time_ratio <= 1",),
        gradients=True,
        rounds=9,
        peer_sizes=sizes,  # both draw their own numbers, so the outputs differ
    )


def first_fit(n: int, processes: int = PROCESSES) -> dict[str, float]:
    """Return the seconds inside the first `fit` of a process, the median over several."""

    def run() -> float:
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FIT.format(n=n)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return {"first_seconds": median(run() for _ in range(processes))}


def first_fit_line(n: int, processes: int) -> Line:
    work: Text = words(f"the first fit in a process, {n} points", f"进程中的第一次 fit，{n} 个点")
    sizes = Sizes(n=n, heads=1, d=1, d_v=1)
    return Line(
        name="cliffs/first fit",
        family=Family(work, words("a fit that is not the first", "非首次的 fit")),
        sizes=sizes,
        make=regression_bandwidth.make,
        ours=regression_bandwidth.ours,
        peers={"a warm fit": regression_bandwidth.ours},
        work=Work(flops=3.0 * n**2, exps=float(n) ** 2),
        goals=("first_seconds <= 0.5",),
        rounds=5,
        dtype="float64",
        quality=partial(first_fit, n, processes),
    )


def kept_lines(n: int) -> list[Line]:
    """Return what should stay well below the fastest code by hand."""
    plain = Combination("long", Sizes(n=n))
    kept = {
        "sinks": (words(f"4 sinks and a window of {n // 16}", f"4 个锚点与窗口 {n // 16}"), {"mask": SINKS_AND_WINDOW}),
        "alibi": (words("alibi, causal", "alibi，因果"), {"mask": "causal", "formula": "alibi"}),
        **{name: (words(name), {"formula": name}) for name in ("softcap", "sigmoid", "sparsemax", "entmax15")},
        "entropy": (words("entropy in a loss", "损失中的 entropy"), {"mode": ENTROPY_BACKWARD}),
    }
    fastest = words("the fastest by hand: F.sdpa or the whole matrix", "最快的手写代码：F.sdpa 或整个矩阵")
    return [
        replace(
            combination.line(),
            name=f"cliffs/kept/{name}",
            family=Family(words(f"{work['en']}, n = {n}", f"{work['zh']}，n = {n}"), fastest),
            peers={**combination.peers(), "eager": combination.eager},
            goals=("time_ratio <= 0.75",),
            rounds=9,
        )
        for name, (work, changes) in kept.items()
        for combination in [replace(plain, **changes)]
    ]


def lines(quick: bool) -> list[Line]:
    share = 4 if quick else 1
    whole, half = PACKED // share, 4096 // share
    return [
        packed_line(whole, 16, "time_ratio <= 1.1", causal=False),
        packed_line(whole, 16, "time_ratio <= 1.1", causal=True),
        ragged_line(whole),
        packed_line(2048 // share, 4, "time_ratio <= 1.1", causal=True, gradients=True),
        *table_lines(half),
        decode_line(whole),
        bfloat16_line(half),
        padded_line(1024 // share, causal=False),
        padded_line(1024 // share, causal=True),
        dropout_line(2048 // share),
        first_fit_line(POINTS // share, 1 if quick else PROCESSES),
        *kept_lines(2048 // share),
    ]
