"""Recording a model against running it, and against eager attention, which also returns weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import SEED, attention_work, pairs_causal

FUSED = words("the same model, not recorded", "同一模型，不录制")
UNCHECKED = words("the same recording, check='none'", "同样的录制，check='none'")
EAGER = words("the same model, eager, output_attentions=True", "同一模型，eager，output_attentions=True")


@dataclass(frozen=True)
class Model:
    """A decoder with random weights; only its sizes matter."""

    layers: int
    heads: int
    key_heads: int
    hidden: int
    inner: int

    @property
    def size(self) -> str:
        return f"{self.layers} x {self.heads}"

    def build(self, n: int) -> Any:
        import transformers

        torch.manual_seed(SEED)
        config = transformers.LlamaConfig(
            num_hidden_layers=self.layers, num_attention_heads=self.heads, num_key_value_heads=self.key_heads,
            hidden_size=self.hidden, intermediate_size=self.inner, vocab_size=1000, max_position_embeddings=n,
        )  # fmt: skip
        return transformers.LlamaModel(config).eval()

    def sizes(self, n: int) -> Sizes:
        width = self.hidden // self.heads
        return Sizes(n=n, heads=self.heads, d=width, d_v=width)

    def work(self, n: int) -> Work:
        """Attention of every layer, its projections and the three products behind it."""
        inside = attention_work(self.sizes(n), pairs_causal(n), gradients=False)
        keys = self.hidden * self.key_heads // self.heads
        products = 2 * n * (2 * self.hidden * (self.hidden + keys) + 3 * self.hidden * self.inner)
        return Work(self.layers * (inside.flops + products), self.layers * inside.exps)


GPT2 = Model(layers=12, heads=12, key_heads=12, hidden=768, inner=2048)  # 3 products of 2048 are 2 of 3072
SMOLLM2 = Model(layers=30, heads=9, key_heads=3, hidden=576, inner=1536)
SMALL = Model(layers=2, heads=3, key_heads=3, hidden=96, inner=128)


def shallow(model: Model, layers: int) -> Model:
    return Model(layers, model.heads, model.key_heads, model.hidden, model.inner)


def make(sizes: Sizes, *, model: Model) -> Tensors:
    ids = torch.randint(0, 1000, (1, sizes.n), generator=torch.Generator().manual_seed(SEED))
    return Tensors(ids, ids, ids, ids, more={"model": model.build(sizes.n)})


@torch.no_grad()
def forward(x: Tensors) -> Tensor:
    return x.more["model"](x.q, use_cache=False).last_hidden_state


def recorded(x: Tensors, *, check: str = "first") -> Tensor:
    with rg.record(x.more["model"], check=check):
        return forward(x)


@torch.no_grad()
def eager(x: Tensors) -> Tensor:
    model = x.more["model"]
    model.set_attn_implementation("eager")
    try:
        output = model(x.q, use_cache=False, output_attentions=True)
    finally:
        model.set_attn_implementation("sdpa")
    return output.last_hidden_state


def run_work(model: Model, n: int) -> Text:
    return words(f"record a model of {model.size} heads, n = {n}", f"录制一个 {model.size} 个头的模型，n = {n}")


def against_fused(model: Model, n: int) -> Line:
    return Line(
        name=f"record/n{n}/fused",
        family=Family(run_work(model, n), FUSED),
        sizes=model.sizes(n),
        make=partial(make, model=model),
        ours=recorded,
        peers={"fused": forward},
        work=model.work(n),
        goals=("time_ratio <= 1.15",),
        rounds=7,
    )


def against_unchecked(model: Model, n: int) -> Line:
    """The price of comparing weights @ values with the model's output."""
    return Line(
        name=f"record/n{n}/check",
        family=Family(run_work(model, n), UNCHECKED),
        sizes=model.sizes(n),
        make=partial(make, model=model),
        ours=recorded,
        peers={"unchecked": partial(recorded, check="none")},
        work=model.work(n),
        goals=("time_ratio <= 1.01",),
        rounds=15,
    )


def against_eager(model: Model, n: int, goals: tuple[str, ...]) -> Line:
    return Line(
        name=f"record/n{n}/eager",
        family=Family(run_work(model, n), EAGER),
        sizes=model.sizes(n),
        make=partial(make, model=model),
        ours=recorded,
        peers={"eager": eager},
        work=model.work(n),
        goals=goals,
        rounds=3,
    )


def lines(quick: bool) -> list[Line]:
    if quick:
        return [against_fused(SMALL, 512), against_unchecked(SMALL, 512), against_eager(SMALL, 512, ())]
    return [
        against_fused(GPT2, 1024),
        against_unchecked(SMOLLM2, 512),
        against_eager(shallow(GPT2, 4), 4096, ("speedup >= 3.5",)),
    ]
