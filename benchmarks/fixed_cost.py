"""Fixed cost of a call, at a size with hardly any work: 64 positions, one thread."""

from __future__ import annotations

from functools import partial
from itertools import product

from benchmarks.attend import attend, sdpa
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes
from benchmarks.tasks import (
    BOTH,
    SDPA,
    SHORT_SDPA,
    attention_work,
    maker,
    mask_name,
    mode_name,
    pairs_causal,
    pairs_full,
)

WORK = words("fixed cost of a call, n = 64, one thread", "一次调用的固定开销，n = 64，单线程")
GOALS = {(False, False): ("added_us <= 15",), (True, True): ("added_us <= 40",)}


def work(causal: bool, gradients: bool) -> Text:
    en = ", causal" * causal + ", with gradients" * gradients
    zh = "，因果掩码" * causal + "，含梯度" * gradients
    return words(WORK["en"] + en, WORK["zh"] + zh)


def line(causal: bool, gradients: bool) -> Line:
    sizes = Sizes(n=64)
    return Line(
        name=f"fixed_cost/{mask_name(causal)}/{mode_name(gradients)}",
        family=Family(work(causal, gradients), words(SDPA)),
        sizes=sizes,
        make=maker(gradients=gradients),
        ours=partial(attend, causal=causal),
        peers={SHORT_SDPA: partial(sdpa, causal=causal)},
        work=attention_work(sizes, pairs_causal(sizes.n) if causal else pairs_full(sizes.n), gradients=gradients),
        goals=GOALS.get((causal, gradients), ()),
        gradients=gradients,
        rounds=60,
        threads=1,
    )


def lines(quick: bool) -> list[Line]:  # noqa: ARG001  small as it is
    return [line(causal, gradients) for causal, gradients in product(BOTH, BOTH)]
