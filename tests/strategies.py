"""Random problems: every term of the library beside its formula in `reference`, and shapes whose axes all differ.

A case carries what regard is asked and what the textbook says. Sizes are distinct primes: a swapped axis cannot pass.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import reference
import torch
from hypothesis import strategies as st
from torch import Generator, Tensor

import regard as rg
from regard import masks, normalisers, scores

PLANS = ["dense", "tiled", "fused"]
PRIMES = [5, 7, 11, 13, 17, 19]  # 2 and 3 are the leading axes


class Sizes(NamedTuple):
    lead: tuple[int, ...]
    n: int
    m: int
    d_q: int
    d_k: int
    d_v: int
    kv_heads: int | None = None  # grouped-query heads: fewer key heads than lead[-1]

    @property
    def key_lead(self) -> tuple[int, ...]:
        return self.lead if self.kv_heads is None else (*self.lead[:-1], self.kv_heads)


def normal(generator: Generator, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


# --- scores


class ScoreCase(NamedTuple):
    build: Callable[..., Any]  # parameters -> regard score
    formula: Callable[..., Tensor]  # q, k, parameters -> scores
    parameters: Callable[[Sizes, Generator], tuple[Tensor, ...]] = lambda s, g: ()
    free: bool = False  # d_q != d_k is legal
    fused: bool = False  # the design promises torch's kernel
    heads: bool = False  # needs a head axis


def compact(name: str) -> ScoreCase:
    return ScoreCase(
        lambda h: scores.kernel(name, h),
        lambda q, k, h: reference.kernel(q, k, name, h),
        lambda s, g: ((2 * s.d_q) ** 0.5 * (0.7 + torch.rand((), generator=g, dtype=torch.float64)),),
    )


def additive_parameters(s: Sizes, g: Generator) -> tuple[Tensor, ...]:
    return normal(g, 4, s.d_q), normal(g, 4, s.d_k), normal(g, 4)


def concat_parameters(s: Sizes, g: Generator) -> tuple[Tensor, ...]:
    return normal(g, 4, s.d_q + s.d_k), normal(g, 4)


SCORES = {
    "dot": ScoreCase(scores.dot, reference.dot, fused=True),
    "scaled_dot": ScoreCase(scores.scaled_dot, reference.scaled_dot, fused=True),
    "scaled_dot(2)": ScoreCase(
        lambda: scores.scaled_dot(2.0), lambda q, k: reference.scaled_dot(q, k, 2.0), fused=True
    ),
    "cosine": ScoreCase(lambda: scores.cosine(0.3), lambda q, k: reference.cosine(q, k, 0.3), fused=True),
    "general": ScoreCase(
        scores.general, reference.general, lambda s, g: (normal(g, s.d_q, s.d_k),), free=True, fused=True
    ),
    "additive": ScoreCase(scores.additive, reference.additive, additive_parameters, free=True),
    "concat": ScoreCase(scores.concat, reference.concat, concat_parameters, free=True),
    "location": ScoreCase(
        scores.location,
        reference.location,
        lambda s, g: (normal(g, s.m, s.d_q),),
        free=True,
    ),
    "gaussian": ScoreCase(scores.gaussian, reference.gaussian, lambda s, g: (normal(g),), fused=True),
    "gaussian(d)": ScoreCase(scores.gaussian, reference.gaussian, lambda s, g: (normal(g, s.d_q),), fused=True),
    "uniform": ScoreCase(scores.uniform, reference.uniform),
    "softcap": ScoreCase(
        lambda: scores.softcap(scores.dot(), 1.5), lambda q, k: reference.softcap(reference.dot(q, k), 1.5)
    ),
    "bias": ScoreCase(
        lambda t: scores.scaled_dot() + scores.bias(t),
        lambda q, k, t: reference.scaled_dot(q, k) + t,
        lambda s, g: (normal(g, s.n, s.m),),
    ),
    "key bias": ScoreCase(
        lambda t: scores.scaled_dot() + scores.bias(t),
        lambda q, k, t: reference.scaled_dot(q, k) + t,
        lambda s, g: (normal(g, 1, s.m),),
        fused=True,
    ),
    "alibi": ScoreCase(
        lambda t: scores.scaled_dot() + scores.alibi(t),
        lambda q, k, t: reference.scaled_dot(q, k) + reference.alibi(q.shape[-2], k.shape[-2], t),
        lambda s, g: (torch.rand(s.lead[-1], generator=g, dtype=torch.float64),),
        heads=True,
    ),
    "relative": ScoreCase(
        lambda t: scores.scaled_dot() + scores.relative(t, -20),
        lambda q, k, t: reference.scaled_dot(q, k) + reference.by_distance(q.shape[-2], k.shape[-2], t, -20),
        lambda s, g: (normal(g, s.lead[-1], 41),),
        heads=True,
    ),
    "softcap + bias": ScoreCase(
        lambda t: scores.softcap(scores.scaled_dot(), 0.7) + scores.bias(t),
        lambda q, k, t: reference.softcap(reference.scaled_dot(q, k), 0.7) + t,
        lambda s, g: (normal(g, s.n, s.m),),
    ),
    **{f"kernel {name}": compact(name) for name in reference.KERNELS},
}


# --- masks: (regard mask, visible)


class MaskCase(NamedTuple):
    build: Callable[[Sizes, Generator], tuple[Any, Tensor]]
    fused: bool = False  # the design promises torch's kernel
    square: bool = False


def integer(g: Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


def causal_case(align: str | None) -> Callable[[Sizes, Generator], tuple[Any, Tensor]]:
    return lambda s, g: (masks.causal(align=align), reference.causal(s.n, s.m, align))


def window_case(align: str | None) -> Callable[[Sizes, Generator], tuple[Any, Tensor]]:
    def build(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
        left, right = integer(g, 0, s.m), integer(g, 0, 3)
        return masks.window(left, right, align=align), reference.window(s.n, s.m, left, right, align)

    return build


def prefix_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    count = integer(g, 0, s.m)
    return masks.prefix(count), reference.prefix(s.n, s.m, count)


def ranges_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    start, stop = (torch.randint(0, s.m + 1, (*s.lead[:1], s.n), generator=g) for _ in range(2))
    return masks.ranges(start, stop), reference.ranges(s.m, start, stop, len(s.lead))


def padding_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    lengths = torch.randint(0, s.m + 1, s.lead[: integer(g, 1, 2)], generator=g)
    return masks.padding(lengths), reference.padding(s.n, s.m, lengths, len(s.lead))


def segments_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    lead = s.lead[: integer(g, 0, 2)]
    q_ids, k_ids = torch.randint(0, 4, (*lead, s.n), generator=g), torch.randint(0, 3, (*lead, s.m), generator=g)
    return masks.segments(q_ids, k_ids), reference.segments(q_ids, k_ids, len(s.lead))


def some_cells(s: Sizes, g: Generator) -> Tensor:
    shapes = [(s.n, s.m), (1, s.m), (*s.lead, s.n, s.m)]
    return torch.rand(shapes[integer(g, 0, 2)], generator=g) < 0.4


def allow_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    cells = some_cells(s, g)
    return masks.allow(cells), cells


def hide_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    cells = some_cells(s, g)
    return masks.hide(cells), ~cells


def mixed_case(s: Sizes, g: Generator) -> tuple[Any, Tensor]:
    (a, seen_a), (b, seen_b), (c, seen_c) = padding_case(s, g), window_case("top-left")(s, g), hide_case(s, g)
    return (a & ~b) | c, (seen_a & ~seen_b) | seen_c


MASKS = {
    "nothing": MaskCase(lambda s, g: (None, torch.ones(s.n, s.m, dtype=torch.bool)), fused=True),
    "causal": MaskCase(causal_case(None), fused=True, square=True),
    "causal top-left": MaskCase(causal_case("top-left"), fused=True),
    "causal bottom-right": MaskCase(causal_case("bottom-right")),
    "window": MaskCase(window_case(None), fused=True, square=True),
    "window top-left": MaskCase(window_case("top-left")),
    "window bottom-right": MaskCase(window_case("bottom-right")),
    "prefix": MaskCase(prefix_case),
    "padding": MaskCase(padding_case, fused=True),
    "ranges": MaskCase(ranges_case),
    "segments": MaskCase(segments_case),
    "allow": MaskCase(allow_case),
    "hide": MaskCase(hide_case),
    "mixed": MaskCase(mixed_case),
}


# --- normalisers


class NormaliserCase(NamedTuple):
    build: Callable[[], Any]
    formula: Callable[[Tensor, Tensor], Tensor]
    distribution: bool = True
    smooth: bool = True
    fused: bool = False


NORMALISERS = {
    "softmax": NormaliserCase(normalisers.softmax, reference.softmax, fused=True),
    "sparsemax": NormaliserCase(normalisers.sparsemax, reference.sparsemax),
    "entmax15": NormaliserCase(normalisers.entmax15, reference.entmax15),
    "sigmoid": NormaliserCase(
        lambda: normalisers.sigmoid(-0.5), lambda s, seen: reference.sigmoid(s, seen, -0.5), distribution=False
    ),
    "hard": NormaliserCase(normalisers.hard, reference.hard, smooth=False),
}


# --- problems


class Problem(NamedTuple):
    sizes: Sizes
    q: Tensor
    k: Tensor
    v: Tensor
    parameters: tuple[Tensor, ...]
    score: ScoreCase
    mask: Any
    visible: Tensor
    normaliser: NormaliserCase
    fused: bool  # the design promises plan="fused" here
    recipe: str  # how to make this problem again

    def __repr__(self) -> str:
        return self.recipe

    def terms(self, *parameters: Tensor) -> dict[str, Any]:
        score = self.score.build(*(parameters or self.parameters))
        return {"score": score, "mask": self.mask, "normaliser": self.normaliser.build()}

    def attend(self, **more: Any) -> Any:
        return rg.attend(self.q, self.k, self.v, **self.terms(), **more)

    def weights(self, **more: Any) -> Any:
        return rg.Weights(self.q, self.k, **self.terms(), **more)

    def answer(self) -> reference.Answer:
        parameters = [p.detach().double() for p in self.parameters]
        score = lambda q, k: self.score.formula(q, k, *parameters)  # noqa: E731
        return reference.attend(self.q, self.k, self.v, score, self.visible, self.normaliser.formula)


USUAL = Sizes((2, 3), 5, 17, 7, 7, 11)


def problem(
    score: str = "scaled_dot",
    mask: str = "nothing",
    normaliser: str = "softmax",
    sizes: Sizes = USUAL,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Problem:
    """One problem in full; d_k and m are overruled where the terms need it."""
    terms = SCORES[score], MASKS[mask], NORMALISERS[normaliser]
    sizes = sizes if terms[0].free else sizes._replace(d_k=sizes.d_q)
    sizes = sizes._replace(n=sizes.m) if terms[1].square else sizes
    g = seeded(seed)
    q = normal(g, *sizes.lead, sizes.n, sizes.d_q, dtype=dtype)
    k = normal(g, *sizes.key_lead, sizes.m, sizes.d_k, dtype=dtype)
    v = normal(g, *sizes.key_lead, sizes.m, sizes.d_v, dtype=dtype)
    parameters = tuple(p.to(dtype) for p in terms[0].parameters(sizes, g))
    fused = sizes.m >= 16 and all(term.fused for term in terms)
    fused |= sizes.m >= 16 and (score, mask, normaliser) == ("alibi", "causal", "softmax")
    recipe = f"problem({score!r}, {mask!r}, {normaliser!r}, {sizes}, {seed})"
    return Problem(sizes, q, k, v, parameters, terms[0], *terms[1].build(sizes, g), terms[2], fused, recipe)


@st.composite
def shapes(draw: st.DrawFn) -> Sizes:
    """A prime of its own on every axis; none, one or two leading axes; grouped heads; sometimes n = m."""
    n, m, d_q, d_k, d_v = draw(st.permutations(PRIMES))[:5]
    lead, kv_heads = draw(
        st.sampled_from([((), None), ((3,), None), ((2, 3), None), ((3, 2), None), ((2, 6), 3), ((3, 2), 1)])
    )
    return Sizes(lead, n, draw(st.sampled_from([m, m, n])), d_q, d_k, d_v, kv_heads)


@st.composite
def problems(
    draw: st.DrawFn,
    score: Sequence[str] = tuple(SCORES),
    mask: Sequence[str] = tuple(MASKS),
    normaliser: Sequence[str] = ("softmax",),
) -> Problem:
    sizes = draw(shapes())
    last = draw(st.sampled_from(normaliser))
    score = [name for name in score if sizes.lead or not SCORES[name].heads]
    if last == "sigmoid":  # a kernel is known up to a constant, which only a distribution forgets
        score = [name for name in score if not name.startswith("kernel")]
    return problem(draw(st.sampled_from(score)), draw(st.sampled_from(mask)), last, sizes, draw(st.integers(0, 2**31)))


def served(applies: bool, call: Callable[[], Any]) -> Any:
    """What `call` gives; None where a forced fused plan says why it does not serve a request that it need not serve."""
    try:
        return call()
    except rg.errors.PlanError:
        assert not applies, "the design promises torch's kernel for this request"
        return None
