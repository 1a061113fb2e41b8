"""Bahdanau's score against the broadcast formula, which holds n x m x h numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import BOTH, make_tensors, mode_name, mode_words
from regard import scores

PEER = words("the broadcast formula (n x m x h)", "广播公式（n x m x h）")
SPEEDUPS = {False: 8, True: 5}


def family(gradients: bool) -> Family:
    mode = mode_words(gradients)
    return Family(words(f"additive, h = 128, {mode['en']}", f"加性打分，h = 128，{mode['zh']}"), PEER)


def make(sizes: Sizes, *, gradients: bool) -> Tensors:
    """Gradients are those of q, k, v and of the score's own parameters, as in training."""
    x = make_tensors(sizes, gradients=gradients)
    generator = torch.Generator().manual_seed(1)
    shapes = {"w_q": (sizes.hidden, sizes.d), "w_k": (sizes.hidden, sizes.d), "v": (sizes.hidden,)}
    parameters = {name: torch.randn(shape, generator=generator) * sizes.d**-0.5 for name, shape in shapes.items()}
    leaves = (*x.leaves, *(p.requires_grad_() for p in parameters.values())) if gradients else ()
    return replace(x, leaves=leaves, more=parameters)


def ours(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, score=scores.additive(x.more["w_q"], x.more["w_k"], x.more["v"])).output


def broadcast(x: Tensors) -> Tensor:
    a, b = x.q @ x.more["w_q"].mT, x.k @ x.more["w_k"].mT
    logits = torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ x.more["v"]
    return torch.softmax(logits, -1) @ x.v


def work(sizes: Sizes, *, gradients: bool) -> Work:
    """For each of n x m x h a tanh (one exponential) and a multiply-add; backward the tanh again and three more."""
    terms = sizes.n**2 * sizes.heads * sizes.hidden
    return Work(flops=2 * terms * (4 if gradients else 1), exps=terms * (2 if gradients else 1))


def line(gradients: bool) -> Line:
    sizes = Sizes(n=512, heads=1, hidden=128)
    return Line(
        name=f"additive/{mode_name(gradients)}",
        family=family(gradients),
        sizes=sizes,
        make=partial(make, gradients=gradients),
        ours=ours,
        peers={"broadcast": broadcast},
        work=work(sizes, gradients=gradients),
        goals=(f"speedup >= {SPEEDUPS[gradients]}", "memory_ratio <= 1/30"),
        gradients=gradients,
        rounds=15,
        memory=True,
    )


def lines(quick: bool) -> list[Line]:  # noqa: ARG001  small as it is
    return [line(gradients) for gradients in BOTH]
