"""Training of Bahdanau's decoder against the loop of a textbook, which projects the keys again at every step."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import SEED
from regard.seq2seq.recurrent import BahdanauDecoder, Memory

EMBEDDING = 256
PEER = words("the loop of d2l: keys projected at every step, tanh kept", "d2l 的循环：每步重新投影键，保留 tanh")


def make(sizes: Sizes) -> Tensors:
    """Embedded target tokens as queries' inputs, annotations as keys and values, and a decoder that both sides use."""
    torch.manual_seed(SEED)
    decoder = BahdanauDecoder(EMBEDDING, sizes.d, "gru")
    target = torch.randn(sizes.batch, sizes.n, EMBEDDING, requires_grad=True)
    annotations = torch.randn(sizes.batch, sizes.keys, sizes.d, requires_grad=True)
    cotangent = torch.randn(sizes.batch, sizes.n, EMBEDDING)
    leaves = (target, annotations, *decoder.parameters())
    more = {"decoder": decoder, "final": torch.randn(sizes.batch, sizes.d)}
    return Tensors(target, annotations, annotations, cotangent, leaves, more)


def ours(x: Tensors) -> Tensor:
    decoder = x.more["decoder"]
    memory = decoder.prepare(Memory(x.k, None, final=x.more["final"]))
    return decoder.force(x.q, memory).features


def textbook(x: Tensors) -> Tensor:
    """The decoder of "Dive into Deep Learning" (section 11.4), with our deep output behind it."""
    decoder = x.more["decoder"]
    layer = decoder.attention
    (state,) = decoder.start(Memory(x.k, None, final=x.more["final"]))
    states, inputs = [], []
    for token in x.q.unbind(1):
        queries, keys = state[:, None] @ layer.w_q.mT, x.k @ layer.w_k.mT
        features = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))
        weights = torch.softmax((features @ layer.v).squeeze(-1), -1)
        inputs.append(torch.cat([token, (weights @ x.v)[:, 0]], -1))
        hidden, (state,) = decoder.advance(inputs[-1][:, None], (state,))
        states.append(hidden[:, 0])
    return decoder.output(torch.stack(states, 1), torch.stack(inputs, 1))


def work(sizes: Sizes) -> Work:
    """The products of cell, query and output for each token, and of the keys once; backward twice more."""
    tokens, wide = sizes.batch * sizes.n, sizes.d
    cell, output = (EMBEDDING + 2 * wide) * 3 * wide, (EMBEDDING + 2 * wide) * 2 * EMBEDDING
    products = tokens * (cell + output + wide**2) + sizes.batch * sizes.keys * wide**2
    return Work(flops=6 * products, exps=2 * tokens * sizes.keys * wide)


def line(n: int, m: int) -> Line:
    sizes = Sizes(n=n, m=m, batch=96, heads=1, d=256, d_v=256, hidden=256)
    return Line(
        name=f"translation/bahdanau/n{n}",
        family=Family(
            words(
                f"a training step of Bahdanau's decoder, {m} to {n} tokens",
                f"Bahdanau 解码器的一个训练步，{m} 词到 {n} 词",
            ),
            PEER,
        ),
        sizes=sizes,
        make=make,
        ours=ours,
        peers={"d2l": textbook},
        work=work(sizes),
        goals=("speedup >= 1.5", "memory_ratio <= 1/3"),
        gradients=True,
        rounds=10,
        threads=1,
        memory=True,
    )


def lines(quick: bool) -> list[Line]:
    return [line(12, 12)] if quick else [line(12, 12), line(30, 30), line(60, 60)]
