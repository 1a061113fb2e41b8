"""Calls of attention on shards beside the same call on one process. The functions run on every rank of a group.

Every rank makes the same random tensors, so each can compute what one process would.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

import regard as rg
from regard import distributed as rd
from regard import masks, normalisers, scores
from regard.masks import Mask

BATCH, HEADS, KEY_HEADS, DIM, DIM_V = 2, 6, 3, 8, 5
TOLERANCE = 1e-12  # in float64, of numbers of about 1


def sorted_ids(rows: int, groups: int = 4) -> Tensor:
    return torch.sort(torch.randint(0, groups, (BATCH, rows)), -1).values


def make_masks(n: int, m: int) -> dict[str, Mask | None]:
    align: Any = None if n == m else "bottom-right"
    q_ids = sorted_ids(n)
    k_ids = q_ids if n == m else sorted_ids(m)
    causal = masks.causal(align)
    start = torch.randint(0, max(1, m // 2), (n,))
    return {
        "none": None,
        "causal": causal,
        "window": masks.window(5, 0, align),
        "both sides": masks.window(3, 9, align),
        "prefix": masks.prefix(m // 3),
        "padding": masks.padding(torch.tensor([m // 4, m])),
        "empty rows": masks.padding(torch.tensor([0, max(0, m - 3)])),
        "segments": masks.segments(q_ids, k_ids),
        "documents": causal & masks.segments(q_ids, k_ids),
        "sinks": masks.window(4, 0, align) | masks.prefix(min(3, m)),
        "not prefix": ~masks.prefix(m // 4),
        "allow": masks.allow(torch.rand(BATCH, 1, n, m) > 0.6),
        "sparse": masks.hide(torch.rand(n, m) < 0.9),
        "ranges": masks.ranges(start, start + torch.randint(0, m, (n,))),
    }


def weight(*shape: int) -> Tensor:
    return (torch.randn(*shape) * 0.5).requires_grad_()


def make_scores(n: int, m: int) -> dict[str, Any]:
    scaled = scores.scaled_dot()
    return {
        "dot": scores.dot(),
        "cosine": scores.cosine(0.3),
        "general": scores.general(weight(DIM, DIM)),
        "additive": scores.additive(weight(7, DIM), weight(7, DIM), weight(7)),
        "concat": scores.concat(weight(7, 2 * DIM), weight(7)),
        "location": scores.location(weight(m, DIM)),
        "gaussian": scores.gaussian(torch.tensor(0.7).requires_grad_()),
        "kernel": scores.kernel("epanechnikov", torch.tensor(3.0).requires_grad_()),
        "laplace": scores.kernel("laplace", 2.0),
        "uniform": scores.uniform(),
        "learned bias": scaled + scores.bias(weight(n, m)),
        "bias of heads": scaled + scores.bias(torch.randn(HEADS, n, m)),
        "bias of keys": scaled + scores.bias(weight(m)),
        "alibi": scaled + scores.alibi(torch.rand(HEADS)),
        "learned alibi": scaled + scores.alibi(torch.rand(HEADS).requires_grad_()),
        "relative": scaled + scores.relative(weight(HEADS, n + m - 1), 1 - n),
        "softcap": scores.softcap(scaled, 2.0),
    }


NORMALISERS: dict[str, Callable[[], Any]] = {
    "sigmoid": lambda: normalisers.sigmoid(-0.5),
    "sparsemax": normalisers.sparsemax,
    "entmax15": normalisers.entmax15,
    "hard": normalisers.hard,
    "drawn": lambda: normalisers.hard(sample=True, generator=torch.Generator().manual_seed(5)),
}


def make_call(n: int, m: int, mask: str, score: str | None, normaliser: str | None) -> dict[str, Any]:
    torch.manual_seed(n * 100 + m)
    return {
        "mask": make_masks(n, m)[mask],
        "score": None if score is None else make_scores(n, m)[score],
        "normaliser": None if normaliser is None else NORMALISERS[normaliser](),
    }


def inputs(n: int, m: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    return (
        torch.randn(BATCH, HEADS, n, DIM),
        torch.randn(BATCH, KEY_HEADS, m, DIM),
        torch.randn(BATCH, KEY_HEADS, m, DIM_V),
        torch.randn(BATCH, HEADS, n, DIM_V),
    )


def whole(x: Tensor | None) -> Tensor | None:
    return rd.gather(x) if x is not None and type(x) is not Tensor else x


def distance(one: Tensor | None, two: Tensor | None) -> float:
    """The largest difference; a missing gradient is 0, and NaN must be where NaN is."""
    if one is None or two is None:
        there = one if two is None else two
        return 0.0 if there is None else there.abs().max().item()
    if one.shape != two.shape or not torch.equal(one.isnan(), two.isnan()) or not torch.equal(one.isinf(), two.isinf()):
        return float("inf")
    return (one.double() - two.double()).abs().nan_to_num(0, 0, 0).max().item() if one.numel() else 0.0


def attend_error(
    n: int,
    m: int,
    mask: str = "none",
    score: str | None = None,
    normaliser: str | None = None,
    layout: str = "contiguous",
    plan: str = "auto",
    shared: str = "",
    dtype: str = "float64",
    dropout: float = 0.0,
    poison: bool = False,
) -> dict[str, float]:
    """Errors of output and gradients. `shared` names the sides that every rank has whole: "query" or "keys".

    With `poison`, the keys that the mask "empty rows" hides are NaN and inf, and so are their values.
    """
    torch.set_default_dtype(torch.float64)
    call = make_call(n, m, mask, score, normaliser)
    learned = [] if call["score"] is None else [t for t in call["score"].all_tensors() if t.requires_grad]
    q, k, v, grad = (t.to(getattr(torch, dtype)) for t in inputs(n, m))
    if poison:
        for x in (k, v):
            x[0] = torch.nan
            x[1, :, m - 3 :] = torch.inf
    errors: dict[str, float] = {}
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    torch.manual_seed(3)
    output, _ = rg.attend(*leaves, **call, dropout_p=dropout)
    expected = [output, *torch.autograd.grad((output * grad).sum(), [*leaves, *learned], allow_unused=True)]

    def placed(x: Tensor, whole_side: bool) -> Tensor:
        if whole_side:
            return x.clone().requires_grad_()
        return rd.shard(x, -2, layout, call["mask"] if layout == "balanced" else None).detach().requires_grad_()

    leaves = [placed(x, shared == side) for x, side in ((q, "query"), (k, "keys"), (v, "keys"))]
    call["normaliser"] = None if normaliser is None else NORMALISERS[normaliser]()
    torch.manual_seed(3)
    output, weights = rg.attend(*leaves, **call, plan=plan, dropout_p=dropout)
    if plan != "auto":
        assert f"{plan} over" in str(weights.plan)
    last = grad if shared == "query" else placed(grad, whole_side=False).detach()
    found = [output, *torch.autograd.grad((output * last).sum(), [*leaves, *learned], allow_unused=True)]
    for name, one, two in zip(
        ["output", "query", "key", "value"] + ["learned"] * len(learned), expected, map(whole, found), strict=True
    ):
        errors[name] = max(errors.get(name, 0.0), distance(one, two))
    return errors


def second_derivative() -> str:
    """The message of the error for a gradient of a gradient."""
    q, k, v, _ = inputs(8, 8)
    leaves = [rd.shard(x, -2).requires_grad_() for x in (q, k, v)]
    output, _ = rg.attend(*leaves)
    try:
        torch.autograd.grad(output.to_local().sum(), leaves, create_graph=True)
    except rg.errors.CallError as error:
        return str(error)
    return ""


QUESTIONS: Mapping[str, Callable[[Any], Any]] = {
    "entropy": lambda w: w.entropy(),
    "saturation": lambda w: w.saturation(),
    "logsumexp": lambda w: w.logsumexp(),
    "received": lambda w: w.received(),
    "empty_rows": lambda w: w.empty_rows(),
    "distance": lambda w: w.distance(torch.arange(w.shape[-2])),
    "mass": lambda w: w.mass(torch.arange(w.shape[-1]) % 3 - 1),
    "mass of batches": lambda w: w.mass(torch.arange(w.shape[-1]).repeat(BATCH, 1) % 4 - 1),
    "top": lambda w: w.top(3).values,
    "top keys": lambda w: w.top(11).values,
    "heatmap": lambda w: w.heatmap(),
    "means": lambda w: w.heatmap(7),
    "maxima": lambda w: w.heatmap(7, "max"),
    "max": lambda w: w.max(-1).values,
    "argmax": lambda w: w.argmax(-1),
    "argmax of all": lambda w: w.dense().flatten()[w.argmax()],  # of weights equal but for rounding, either will do
    "max of all": lambda w: w.max(),
    "sum": lambda w: w.sum(-1),
    "sum of all": lambda w: w.sum(),
    "dense": lambda w: w.dense(),
    "row": lambda w: w[..., 5, :10],
    "picked": lambda w: w[0, 2, 3:20:4, torch.tensor([3, 1, 1, 8])],
    "points": lambda w: w[torch.tensor([0, 1]), 1, torch.tensor([4, 3])],
    "corner": lambda w: w[1, -1, -1],
    "transposed block": lambda w: w.mT[0, :, 3, :5],
    "product": lambda w: w @ torch.linspace(0, 1, w.shape[-1]),
    "product of heads": lambda w: w @ torch.linspace(0, 1, w.shape[-1]).expand(BATCH, HEADS, 2, -1).mT,
    "transposed product": lambda w: w.mT @ torch.linspace(0, 1, w.shape[-2]),
    "head": lambda w: w.head(2).entropy(),
    "one matrix": lambda w: w.select(batch=1, head=4).received(),
    "snapshot": lambda w: w.snapshot().dense(),
}


def question_errors(
    n: int, m: int, mask: str, score: str | None, normaliser: str | None, layout: str, shared: str = ""
) -> dict[str, float]:
    """Errors of the answers to all questions; an answer that one process refuses must be refused here too."""
    torch.set_default_dtype(torch.float64)
    call = make_call(n, m, mask, score, normaliser)
    q, k, v, _ = inputs(n, m)
    with torch.no_grad():
        _, alone = rg.attend(q, k, v, **call)
        parts = [
            x if shared == side else rd.shard(x, -2, layout, call["mask"] if layout == "balanced" else None)
            for x, side in ((q, "query"), (k, "keys"), (v, "keys"))
        ]
        _, over_ranks = rg.attend(*parts, **call)
        return {name: _answer_error(ask, alone, over_ranks) for name, ask in QUESTIONS.items()}


def _answer_error(ask: Callable[[Any], Any], alone: Any, over_ranks: Any) -> float:
    try:
        expected = ask(alone)
    except rg.errors.RegardError as error:
        try:
            ask(over_ranks)
        except type(error):
            return 0.0
        return float("inf")
    return distance(expected, whole(ask(over_ranks)))


ROW_QUESTIONS = ("entropy", "saturation", "logsumexp", "distance")


def row_gradient_errors(n: int, mask: str, score: str | None, normaliser: str | None, layout: str) -> dict[str, float]:
    """Errors of the gradients of questions with one number for each query."""
    torch.set_default_dtype(torch.float64)
    call = make_call(n, n, mask, score, normaliser)
    learned = [] if call["score"] is None else [t for t in call["score"].all_tensors() if t.requires_grad]
    q, k, _, _ = inputs(n, n)
    grad = torch.randn(BATCH, HEADS, n)
    errors = {}
    for question in ROW_QUESTIONS:
        if question == "logsumexp" and normaliser is not None:
            continue
        leaves = [x.clone().requires_grad_() for x in (q, k)]
        answer = getattr(rg.Weights(*leaves, **call), question)()
        expected = [answer, *torch.autograd.grad((answer * grad).sum(), [*leaves, *learned], allow_unused=True)]
        leaves = [rd.shard(x, -2, layout).requires_grad_() for x in (q, k)]
        answer = getattr(rg.Weights(*leaves, **call), question)()
        last = rd.shard(grad, -1, layout)
        found = [answer, *torch.autograd.grad((answer * last).sum(), [*leaves, *learned], allow_unused=True)]
        errors[question] = max(map(distance, expected, map(whole, found)))
    return errors
