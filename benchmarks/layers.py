"""Layers against torch's own, and against the formulas as one would write them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks import additive
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import BOTH, SEED, attention_work, mode_name, mode_words, pairs_full
from regard import nn

HEADS, TOP = 8, 8
TORCH = "torch.nn.MultiheadAttention"
Make = Callable[[Sizes], Tensors]


def make(sizes: Sizes, *, gradients: bool) -> Tensors:
    """One sequence, and the same layer twice: torch's and ours, with the same parameters."""
    torch.manual_seed(SEED)
    width = sizes.heads * sizes.d
    theirs = torch.nn.MultiheadAttention(width, sizes.heads, batch_first=True).requires_grad_(gradients)
    ours = nn.MultiheadAttention(width, sizes.heads, batch_first=True).requires_grad_(gradients)
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    x, cotangent = torch.randn(1, sizes.n, width, requires_grad=gradients), torch.randn(1, sizes.n, width)
    return Tensors(x, x, x, cotangent, (x,) if gradients else (), {"ours": ours, "theirs": theirs})


def output(x: Tensors, *, which: str) -> Tensor:
    return x.more[which](x.q, x.k, x.v, need_weights=False)[0]


def lazy_answers(x: Tensors) -> tuple[Tensor, ...]:
    out, weights = x.more["ours"](x.q, x.k, x.v, need_weights="lazy")
    return out, weights.entropy(), weights.top(TOP).values


def dense_answers(x: Tensors) -> tuple[Tensor, ...]:
    out, weights = x.more["theirs"](x.q, x.k, x.v, average_attn_weights=False)
    return out, torch.special.entr(weights).sum(-1), weights.topk(TOP).values


def multihead_work(sizes: Sizes, *, gradients: bool) -> Work:
    """Attention, and four projections; backward each of these twice more."""
    inside = attention_work(sizes, pairs_full(sizes.n), gradients=gradients)
    projections = 4 * 2 * sizes.n * (sizes.heads * sizes.d) ** 2 * (3 if gradients else 1)
    return Work(inside.flops + projections, inside.exps)


def against_torch(n: int, gradients: bool) -> Line:
    sizes, mode = Sizes(n=n), mode_words(gradients)
    work = words(f"MultiheadAttention without weights, {mode['en']}", f"MultiheadAttention，不要权重，{mode['zh']}")
    return Line(
        name=f"layers/multihead/n{n}/{mode_name(gradients)}",
        family=Family(work, words(TORCH)),
        sizes=sizes,
        make=partial(make, gradients=gradients),
        ours=partial(output, which="ours"),
        peers={TORCH: partial(output, which="theirs")},
        work=multihead_work(sizes, gradients=gradients),
        goals=("time_ratio <= 1.05",),
        gradients=gradients,
        rounds=20,
    )


def with_weights(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name=f"layers/multihead/n{n}/weights",
        family=Family(
            words(
                f"MultiheadAttention with entropy and top(8), n = {n}", f"MultiheadAttention，并求熵与 top(8)，n = {n}"
            ),
            words(f"{TORCH}, need_weights=True"),
        ),
        sizes=sizes,
        make=partial(make, gradients=False),
        ours=lazy_answers,
        peers={"need_weights=True": dense_answers},
        work=multihead_work(sizes, gradients=False),
        goals=("speedup >= 1.6",) if n == 2048 else (),
        rounds=15,
        memory=True,
    )


def make_additive(sizes: Sizes) -> Tensors:
    """The module with the very parameters that the formula has."""
    x = additive.make(sizes, gradients=True)
    layer = nn.AdditiveAttention(sizes.d, sizes.d, sizes.hidden)
    for name in ("w_q", "w_k", "v"):
        setattr(layer, name, torch.nn.Parameter(x.more[name].detach()))
    x.more["layer"] = layer
    return x


def additive_layer(x: Tensors) -> Tensor:
    layer = x.more["layer"]
    x.leaves = (x.q, x.k, x.v, layer.w_q, layer.w_k, layer.v)
    return layer(x.q, x.k, x.v).output


def broadcast(x: Tensors) -> Tensor:
    x.leaves = (x.q, x.k, x.v, x.more["w_q"], x.more["w_k"], x.more["v"])
    return additive.broadcast(x)


def additive_line() -> Line:
    sizes = Sizes(n=512, heads=1, hidden=128)
    return Line(
        name="layers/additive/forward+backward",
        family=Family(
            words("AdditiveAttention, h = 128, forward+backward", "AdditiveAttention，h = 128，前向加反向"),
            additive.PEER,
        ),
        sizes=sizes,
        make=make_additive,
        ours=additive_layer,
        peers={"broadcast": broadcast},
        work=additive.work(sizes, gradients=True),
        goals=("speedup >= 4",),
        gradients=True,
        rounds=15,
        memory=True,
    )


def lines(quick: bool) -> list[Line]:
    lengths = (512,) if quick else (1024, 2048)
    compared = [against_torch(n, gradients) for n in lengths for gradients in BOTH]
    return [*compared, *(with_weights(n) for n in lengths), additive_line()]
