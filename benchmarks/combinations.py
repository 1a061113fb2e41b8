"""A few hundred calls of regard: masks and their pairs, scores, dtypes, shapes, gradients and questions.

Each is a `Line`: ours against all that a user could write by hand, of which the harness takes the fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from benchmarks import by_hand
from benchmarks.formulas import FORMULAS, PLAIN, parameters, spread
from benchmarks.goals import words
from benchmarks.harness import Contestant, Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import attention_work, make_tensors
from benchmarks.visible import (
    DOCUMENTS,
    RULES,
    SINGLE,
    SINKS_AND_WINDOW,
    Places,
    count,
    count_in_blocks,
    key_range,
    visible_pairs,
)

SHAPES = {
    "tiny": Sizes(n=64, batch=2, heads=4, d=32, d_v=32),
    "decode": Sizes(n=1, m=4096),
    "grouped decode": Sizes(n=1, m=4096, heads=32, key_heads=8, d=128, d_v=128),
    "wide batch": Sizes(n=256, batch=8, heads=4),
    "grouped": Sizes(n=1024, heads=8, key_heads=2),
    "long": Sizes(n=2048, heads=2),
}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}
BITS = {"float32": 32, "bfloat16": 16, "float16": 16, "float64": 64}
FORWARD, BACKWARD, ENTROPY_BACKWARD = "forward", "forward+backward", "entropy+backward"
TOP, BINS, ROWS = 8, 16, 64
COMMON = (None, "causal", "padding", "segments")
SMALL = 64  # queries and keys of the quick version, of which run_small takes a quarter: bins and documents divide it


def middle_rows(n: int) -> slice:
    return slice(n // 4, n // 4 + max(1, min(ROWS, n // 2)))


def options_for(visible: Tensor) -> dict[str, Any]:
    """Return how F.sdpa is told of the pairs (1, queries, keys) that are visible."""
    if visible.all():
        return {}
    causal = torch.equal(visible[0], torch.ones_like(visible[0]).tril())
    return {"is_causal": True} if causal else {"attn_mask": visible.clone()}


def pooled_in_bins(p: Tensor) -> Tensor:
    side = (p.shape[-2] // BINS, p.shape[-1] // BINS)
    return p.unflatten(-1, (BINS, side[1])).unflatten(-3, (BINS, side[0])).mean((-3, -1))


@dataclass(frozen=True)
class Question:
    """What is asked of the lazy weights, and the same of the dense matrix."""

    ask: Callable[[rg.Weights], Tensor]
    dense: Callable[[Tensor], Tensor]


QUESTIONS = {
    "entropy": Question(lambda weights: weights.entropy(), lambda p: torch.special.entr(p).sum(-1)),
    "received": Question(lambda weights: weights.received(), lambda p: p.sum(-2)),
    "top": Question(lambda weights: weights.top(TOP).values, lambda p: p.topk(TOP).values),
    "heatmap": Question(lambda weights: weights.heatmap(BINS), pooled_in_bins),
    "rows": Question(
        lambda weights: weights[..., middle_rows(weights.shape[-2]), :], lambda p: p[..., middle_rows(p.shape[-2]), :]
    ),
    ENTROPY_BACKWARD: Question(lambda weights: weights.entropy(), lambda p: torch.special.entr(p).sum(-1)),
}


@dataclass(frozen=True)
class Combination:
    """One call: a shape, a mask, a formula, a dtype, and what is computed."""

    shape: str
    sizes: Sizes
    mask: str | None = None
    formula: str = PLAIN
    dtype: str = "float32"
    mode: str = FORWARD

    @property
    def name(self) -> str:
        return "/".join((self.shape, self.mask or "none", self.formula, self.dtype, self.mode))

    @property
    def gradients(self) -> bool:
        return self.mode in (BACKWARD, ENTROPY_BACKWARD)

    @property
    def is_plain(self) -> bool:
        return self.mask is None and self.formula == PLAIN

    @cached_property
    def seen(self) -> Tensor:
        """Booleans (batch or 1, 1, queries, keys): the visible pairs that the answer depends on."""
        seen = visible_pairs(self.mask, self.sizes)
        return seen[..., middle_rows(self.sizes.n), :] if self.mode == "rows" else seen

    @cached_property
    def pairs(self) -> int:
        return count(self.seen, self.sizes)

    @cached_property
    def pairs_in_blocks(self) -> int:
        return count_in_blocks(self.seen, self.sizes)

    def for_memory(self) -> Combination:
        """Return the call whose memory is measured: long sequences are longer, so that n x m is beyond any tile."""
        longer = self.shape in ("grouped", "long") and self.sizes == SHAPES[self.shape]
        return replace(self, sizes=replace(self.sizes, n=2 * self.sizes.n)) if longer else self

    @property
    def matrix_bytes(self) -> int:
        """Bytes of the matrix of weights that nobody should build, where memory is measured."""
        sizes = self.for_memory().sizes
        return sizes.batch * sizes.heads * sizes.n * sizes.keys * BITS[self.dtype] // 8

    def plain(self) -> Combination:
        """Return the call of the same shape without mask, by scaled products."""
        return replace(self, mask=None, formula=PLAIN)

    def terms(self, x: Tensors) -> dict[str, Any]:
        """Return score, mask and normaliser, made anew for each call as in a layer."""
        formula = FORMULAS[self.formula]
        return {
            "score": None if self.formula == PLAIN else formula.score(x),
            "mask": RULES[self.mask].mask(x.more["places"]) if self.mask else None,
            "normaliser": formula.normaliser() if formula.normaliser else None,
        }

    def make(self, sizes: Sizes) -> Tensors:
        x = make_tensors(sizes, gradients=self.gradients, dtype=TYPES[self.dtype])
        visible = visible_pairs(self.mask, sizes)
        ranges = [key_range(sequence) for sequence in visible]
        cut = [options_for(sequence[..., a:b]) for sequence, (a, b) in zip(visible, ranges, strict=True)]
        more = {"visible": visible, "places": Places(sizes), "ranges": ranges, "cut": cut}
        x = replace(x, more=parameters(x, pairs=FORMULAS[self.formula].pair_bias) | more)
        form = FORMULAS[self.formula].inner
        bias = form(x).bias if form else None
        if bias is not None:
            x.more["masked_bias"] = bias.detach().masked_fill(~visible, -torch.inf) if self.mask else bias.detach()
        if self.mode == ENTROPY_BACKWARD:
            x = replace(x, leaves=(x.q, x.k), cotangent=x.cotangent[..., 0])
        return x

    def ours(self, x: Tensors) -> Tensor:
        if self.mode in QUESTIONS:
            return QUESTIONS[self.mode].ask(rg.Weights(x.q, x.k, **self.terms(x)))
        return rg.attend(x.q, x.k, x.v, **self.terms(x)).output

    def plan(self) -> str:
        """Return the plan that regard takes, in its own words."""
        x = self.make(self.sizes)
        if self.mode in QUESTIONS:
            return str(rg.Weights(x.q, x.k, **self.terms(x)).plan)
        return str(rg.attend(x.q, x.k, x.v, **self.terms(x)).weights.plan)

    def eager(self, x: Tensors) -> Tensor:
        """Write the whole matrix, as a textbook does."""
        formula = FORMULAS[self.formula]
        if self.mode == "rows":
            rows = middle_rows(x.q.shape[-2])
            visible = x.more["visible"][..., rows, :]
            return formula.weights(formula.logits(replace(x, q=x.q[..., rows, :])).masked_fill(~visible, -torch.inf))
        logits = formula.logits(x)
        if self.mask:
            logits = logits.masked_fill(~x.more["visible"], -torch.inf)
        p = formula.weights(logits)
        return QUESTIONS[self.mode].dense(p) if self.mode in QUESTIONS else p @ spread(x.v, x.q)

    def fused(self, x: Tensors) -> Tensor:
        """Call F.sdpa with all that it takes: a bias, booleans, or is_causal."""
        form = FORMULAS[self.formula].inner
        if form is None:
            raise TypeError(f"{self.formula} is no inner product, so F.sdpa cannot compute it")
        parts, biased = form(x), x.more.get("masked_bias")
        causal = biased is None and self.mask == "causal" and self.sizes.n == self.sizes.keys
        table = x.more["visible"] if self.mask and not causal else None
        return scaled_dot_product_attention(
            parts.q,
            parts.k,
            x.v,
            attn_mask=table if biased is None else biased,
            is_causal=causal,
            scale=parts.scale,
            enable_gqa=x.k.shape[1] != x.q.shape[1],
        )

    def cut(self, x: Tensors) -> Tensor:
        """Call F.sdpa on the range of keys that is seen at all, sequence by sequence where they differ."""
        sequences = len(x.more["ranges"])
        parts = [(x.q, x.k, x.v)] if sequences == 1 else zip(x.q.split(1), x.k.split(1), x.v.split(1), strict=True)
        outputs = []
        for (q, k, v), (a, b), options in zip(parts, x.more["ranges"], x.more["cut"], strict=True):
            grouped = k.shape[1] != q.shape[1]
            keys, values = k[..., a:b, :], v[..., a:b, :]
            outputs.append(scaled_dot_product_attention(q, keys, values, enable_gqa=grouped, **options))
        return torch.cat(outputs)

    def peers(self) -> Mapping[str, Contestant]:
        """Return what a user may write by hand; the first one computes any combination of its kind."""
        formula = FORMULAS[self.formula]
        if self.mode in QUESTIONS:
            return {"the dense matrix": self.eager}
        if formula.inner is None or (self.gradients and formula.differentiable_bias):
            return {"eager": self.eager}
        found: dict[str, Contestant] = {"F.sdpa": self.fused}
        if self.formula == PLAIN and self.mask:
            square = self.sizes.n == self.sizes.keys
            if self.seen.shape[0] > 1 or not self.seen.any(-2).all():
                found["F.sdpa on the keys that are seen"] = self.cut
            if self.mask in ("segments", "causal & segments") and square:
                causal = self.mask != "segments"
                found["the documents as a batch"] = partial(by_hand.as_batch, documents=DOCUMENTS, causal=causal)
        return found

    def work(self) -> Work:
        if self.mode in QUESTIONS:
            steps = 1 + 2 * self.gradients
            work = Work(2.0 * self.pairs * self.sizes.heads * self.sizes.d * steps, self.pairs * self.sizes.heads)
        else:
            work = attention_work(self.sizes, self.pairs, gradients=self.gradients)
        return replace(work, exps=work.exps * FORMULAS[self.formula].exps)

    def line(self) -> Line:
        return Line(
            name=self.name,
            family=Family(words(self.name), words("by hand", "手写")),
            sizes=self.sizes,
            make=self.make,
            ours=self.ours,
            peers=self.peers(),
            work=self.work(),
            gradients=self.gradients,
            dtype=self.dtype,
            tolerance=1e-3 if BITS[self.dtype] > 16 else 0.05,
        )


def every(*, quick: bool) -> list[Combination]:
    """Return all combinations; the quick version has the same ones at small sizes."""
    shapes = {name: shrunk(sizes) if quick else sizes for name, sizes in SHAPES.items()}
    unique = dict.fromkeys(chosen())
    return [
        Combination(shape, shapes[shape], mask, formula, dtype, mode) for shape, mask, formula, dtype, mode in unique
    ]


def shrunk(sizes: Sizes) -> Sizes:
    return replace(sizes, n=min(sizes.n, SMALL), m=min(sizes.m, SMALL), batch=min(sizes.batch, 3))


def chosen() -> Iterator[tuple[str, str | None, str, str, str]]:
    masked: tuple[str | None, ...] = (None, *RULES)
    one: tuple[str | None, ...] = (None, *SINGLE)
    formulas = tuple(name for name in FORMULAS if name != PLAIN)
    for shape, mask in product(SHAPES, masked):
        if SHAPES[shape].n == 1 and not visible_pairs(mask, SHAPES[shape]).any():
            continue  # a single query that sees nothing
        yield shape, mask, PLAIN, "float32", FORWARD
    for shape, mask, formula in product(("tiny", "wide batch", "long"), (None, "causal"), formulas):
        if (shape, formula) != ("long", "additive"):  # a hundred million tanh by hand, and a gigabyte
            yield shape, mask, formula, "float32", FORWARD
    for shape, mask, dtype in product(("decode", "grouped decode", "wide batch", "long"), COMMON, TYPES):
        yield shape, mask, PLAIN, dtype, FORWARD
    for shape, mask in product(
        ("tiny", "wide batch", "grouped", "long"), (*one, "causal & segments", SINKS_AND_WINDOW)
    ):
        yield shape, mask, PLAIN, "float32", BACKWARD
    for formula in formulas:
        if formula != "additive" and FORMULAS[formula].uses_keys:
            yield "long", None, formula, "float32", BACKWARD
    for mask, question in product((*COMMON, "window"), QUESTIONS):
        yield "long", mask, PLAIN, "float32", question


def find(name: str, *, quick: bool) -> Line:
    """Return the line of which memory is measured."""
    return next(one.for_memory().line() for one in every(quick=quick) if one.name == name)
