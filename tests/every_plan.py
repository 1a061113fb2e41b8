"""Attention on every plan and in every precision, and masks that hide one key or one row."""

from typing import Any, NamedTuple

import pytest
import torch
from strategies import normal, seeded
from torch import Tensor

import regard as rg
from regard import errors, masks

PLANS = ["dense", "tiled", "fused"]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}
every = pytest.mark.parametrize
plans = every("plan", PLANS)
dtypes = every("dtype", DTYPES, ids=lambda t: str(t).removeprefix("torch."))


def attend(plan: str, *x: Tensor, **words: Any) -> Any:
    """A forced plan; where torch's kernel says it does not serve, what "auto" takes in its place."""
    try:
        return rg.attend(*x, plan=plan, budget=1 << 14 if plan == "tiled" else None, **words)
    except errors.PlanError:
        assert plan == "fused"
        return rg.attend(*x, **words)


def qkv(
    dtype: torch.dtype, n: int = 24, m: int = 24, d: int = 8, d_v: int = 5, lead: tuple[int, ...] = (2, 3)
) -> list[Tensor]:
    return [normal(seeded(i), *lead, *size, dtype=dtype) for i, size in enumerate([(n, d), (m, d), (m, d_v)])]


def close(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    torch.testing.assert_close(actual.double(), expected.double(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def learn(*x: Tensor) -> list[Tensor]:
    return [t.detach().clone().requires_grad_() for t in x]


NOTHING_FOR_ROW_3 = torch.zeros(24, 24, dtype=torch.bool).index_fill(0, torch.tensor([3]), True)
IDS = torch.zeros(24, dtype=torch.long)
AT = 20  # the poisoned key


class Hider(NamedTuple):
    mask: Any
    sees: Tensor  # (24,) which queries see key AT


def nobody() -> Tensor:
    return torch.zeros(24, dtype=torch.bool)


ROWS = torch.arange(24)
HIDERS = {
    "hide": Hider(masks.hide((ROWS == AT)[None, :]), nobody()),
    "allow": Hider(masks.allow((ROWS != AT).expand(24, 24)), nobody()),
    "padding": Hider(masks.padding(torch.tensor([AT, AT])), nobody()),
    "prefix": Hider(masks.prefix(AT), nobody()),
    "segments": Hider(masks.segments(IDS, IDS.index_fill(0, torch.tensor([AT]), 1)), nobody()),
    "causal": Hider(masks.causal(), ROWS >= AT),
    "window": Hider(masks.window(3, 0), (ROWS >= AT) & (ROWS <= AT + 3)),
    "two-sided window": Hider(masks.window(2, 2), (ROWS - AT).abs() <= 2),
    "causal and padding": Hider(masks.causal() & masks.padding(torch.tensor([AT, AT])), nobody()),
    "not prefix": Hider(~(masks.prefix(AT + 1) & ~masks.prefix(AT)), nobody()),
}


def ask_everything(weights: Any) -> None:
    weights.entropy(), weights.saturation(), weights.received(), weights.distance(), weights.mass(IDS), weights.top(3)
    (
        weights.heatmap(4),
        weights.empty_rows(),
        weights.logsumexp(),
        weights.dense(),
        weights[..., 1, 2:5],
        weights.mT[..., 0, :],
    )
