"""Five questions about the weights: entropy, received, saturation, heatmap(256), top(8).

Time is held against the faster of two peers, all heads at once and head by head; memory against a dense softmax matrix,
which is that of all heads. The results name the memory of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import BOTH, make_tensors, maker, mask_name, pairs_causal, pairs_full
from regard import masks

BINS = 256
TOP = 8
SPEEDUPS = {(4096, False): 2.5, (4096, True): 3.5, (8192, False): 4, (8192, True): 6}
LONG = 32768
Answers = tuple[Tensor, ...]

DENSE = words("the same from a dense softmax matrix", "由稠密 softmax 矩阵得出同样答案")
TUNED = words("the same from a dense matrix, reductions tuned by hand", "稠密矩阵，归约手工调优")


def work(n: int, causal: bool) -> Text:
    return words(
        f"entropy, received, saturation, heatmap(256), top(8), n = {n}" + ", causal" * causal,
        f"entropy、received、saturation、heatmap(256)、top(8)，n = {n}" + "，因果" * causal,
    )


def make_masked(sizes: Sizes) -> Tensors:
    hidden = torch.full((sizes.n, sizes.n), -torch.inf).triu_(1)
    return replace(make_tensors(sizes), more={"hidden": hidden})


def ask(weights: rg.Weights) -> Answers:
    answers = (weights.entropy(), weights.received(), weights.saturation(), weights.heatmap(BINS))
    return (*answers, weights.top(TOP).values)


def ask_fresh(x: Tensors, *, causal: bool) -> Answers:
    return ask(rg.Weights(x.q, x.k, mask=masks.causal() if causal else None))


def attend(x: Tensors) -> Tensor:
    output, x.more["weights"] = rg.attend(x.q, x.k, x.v)
    return output


def ask_attended(x: Tensors) -> Answers:
    """Ask the weights that attend has just returned; they are removed, so that no cached answer is used twice."""
    return ask(x.more.pop("weights"))


def dense_weights(q: Tensor, k: Tensor, hidden: Tensor | None) -> Tensor:
    logits = (q * q.shape[-1] ** -0.5) @ k.mT
    if hidden is not None:
        logits += hidden
    return torch.softmax(logits, -1)


def pooled(p: Tensor) -> Tensor:
    side = p.shape[-1] // BINS
    return p.view(*p.shape[:-2], BINS, side, BINS, side).mean((-3, -1))


def dense_answers(p: Tensor) -> Answers:
    return (torch.special.entr(p).sum(-1), p.sum(-2), p.square().sum(-1), pooled(p), p.topk(TOP).values)


def pooled_in_steps(p: Tensor) -> Tensor:
    side = p.shape[-1] // BINS
    return p.view(*p.shape[:-2], BINS, side, -1).mean(-2).view(*p.shape[:-2], BINS, BINS, side).mean(-1)


def tuned_answers(p: Tensor) -> Answers:
    saturation = torch.linalg.vector_norm(p, dim=-1).square()  # one pass, no temporary
    return (torch.special.entr(p).sum(-1), p.sum(-2), saturation, pooled_in_steps(p), p.topk(TOP).values)


Reduce = Callable[[Tensor], Answers]


def all_heads(x: Tensors, *, reduce: Reduce = dense_answers) -> Answers:
    return reduce(dense_weights(x.q, x.k, x.more.get("hidden")))


def head_by_head(x: Tensors, *, reduce: Reduce = dense_answers) -> Answers:
    heads = zip(x.q[0], x.k[0], strict=True)
    answers = [reduce(dense_weights(q, k, x.more.get("hidden"))) for q, k in heads]
    return tuple(torch.stack(parts)[None] for parts in zip(*answers, strict=True))


ALL_HEADS = "all heads at once"
WAYS = {ALL_HEADS: all_heads, "head by head": head_by_head}


def scores_work(sizes: Sizes, pairs: int) -> Work:
    """Count one product and one exponential for each visible pair, the least that any method needs."""
    return Work(flops=2 * pairs * sizes.heads * sizes.d, exps=pairs * sizes.heads)


def against_dense(n: int, causal: bool, *, tuned: bool = False) -> Line:
    sizes = Sizes(n=n)
    speedup = SPEEDUPS.get((n, causal))
    reduce = tuned_answers if tuned else dense_answers
    return Line(
        name=f"questions/n{n}/{mask_name(causal)}" + ("/tuned peer" if tuned else ""),
        family=Family(work(n, causal), TUNED if tuned else DENSE),
        sizes=sizes,
        make=make_masked if causal else maker(),
        ours=partial(ask_fresh, causal=causal),
        peers={name: partial(way, reduce=reduce) for name, way in WAYS.items()},
        work=scores_work(sizes, pairs_causal(n) if causal else pairs_full(n)),
        goals=(f"speedup >= {speedup}", "memory_ratio <= 1/50") if speedup and not tuned else (),
        rounds=5 if n > 4096 else 9,
        memory=not tuned,
        memory_peer=None if tuned else ALL_HEADS,
    )


def against_attend(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name=f"questions/n{n}/full/after attend",
        family=Family(work(n, causal=False), words("attend itself", "attend 自身")),
        sizes=sizes,
        make=maker(),
        ours=ask_attended,
        peers={"attend": attend},
        work=scores_work(sizes, pairs_full(n)),
        goals=("time_ratio <= 2", "memory_mb <= 128") if n == LONG else (),
        rounds=3,
        memory=True,
        chained=True,
    )


def lines(quick: bool) -> list[Line]:
    lengths = (1024, 2048) if quick else (4096, 8192)
    compared = [against_dense(n, causal) for n, causal in product(lengths, BOTH)]
    return [*compared, against_dense(lengths[0], causal=False, tuned=True), against_attend(4096 if quick else LONG)]
