"""float16 and bfloat16: as good as computing in float32 and rounding once, over 500 shapes and on every plan."""

import pytest
import reference
import torch
from strategies import integer, normal, seeded
from torch import Tensor

import regard as rg
from regard import errors, masks

SHAPES = 500
every = pytest.mark.parametrize
low = every("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])


def numbers(seed: int, dtype: torch.dtype) -> tuple[list[Tensor], bool]:
    """q, k, v of some shape and size, and whether to mask causally."""
    g = seeded(seed)
    n, m, d, d_v = integer(g, 1, 40), integer(g, 1, 70), integer(g, 1, 33), integer(g, 1, 9)
    sharp = 2.0 ** integer(g, -2, 2)
    lead = [(), (2,), (2, 3)][integer(g, 0, 2)]
    x = [normal(g, *lead, n, d) * sharp, normal(g, *lead, m, d), normal(g, *lead, m, d_v)]
    return [t.to(dtype) for t in x], bool(integer(g, 0, 1))


def rounded_once(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    scores = q.float() @ k.float().mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~visible, -torch.inf), -1)
    return (weights @ v.float()).to(q.dtype)


def pooled(plan: str, *x: Tensor, mask: masks.Mask | None) -> Tensor:
    try:
        return rg.attend(*x, mask=mask, plan=plan, budget=1 << 14 if plan == "tiled" else None).output
    except errors.PlanError:
        return rg.attend(*x, mask=mask).output


@every("plan", ["auto", "dense", "tiled", "fused"])
@low
def test_output_is_no_worse_than_a_float32_result_rounded_once(plan: str, dtype: torch.dtype) -> None:
    ours, theirs = [], []
    for seed in range(SHAPES):
        (q, k, v), causal = numbers(seed, dtype)
        n, m = q.shape[-2], k.shape[-2]
        visible = reference.causal(n, m) if causal else torch.ones(n, m, dtype=torch.bool)
        exact = reference.attend(q, k, v, visible=visible).output
        output = pooled(plan, q, k, v, mask=masks.causal(align="top-left") if causal else None)
        assert output.dtype == dtype
        ours.append((output.double() - exact).square().mean().sqrt())
        theirs.append((rounded_once(q, k, v, visible).double() - exact).square().mean().sqrt())
    assert sum(ours) <= 1.05 * sum(theirs)
    assert max(ours) <= 1.05 * max(theirs)


@low
def test_gradients_are_rounded_once_too(dtype: torch.dtype) -> None:
    ours, theirs = [], []
    for seed in range(100):
        x, _ = numbers(seed, dtype)
        exact, plain, found = (gradients(x, how) for how in ("reference", "float32", "regard"))
        for e, p, f in zip(exact, plain, found, strict=True):
            ours.append((f.double() - e).square().mean().sqrt())
            theirs.append((p.to(dtype).double() - e).square().mean().sqrt())
    assert sum(ours) <= 1.05 * sum(theirs)


def gradients(x: list[Tensor], how: str) -> tuple[Tensor, ...]:
    wide = {"reference": torch.float64, "float32": torch.float32, "regard": x[0].dtype}[how]
    q, k, v = (t.to(wide).requires_grad_() for t in x)
    output = rg.attend(q, k, v).output if how == "regard" else torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
    return torch.autograd.grad(output.sum(), (q, k, v))


@low
def test_statistics_are_those_of_float32(dtype: torch.dtype) -> None:
    for seed in range(100):
        (q, k, v), _ = numbers(seed, dtype)
        weights, dense = rg.attend(q, k, v).weights, reference.attend(q, k, v).weights
        pairs = [(weights.entropy(), reference.entropy(dense)), (weights.received(), reference.received(dense))]
        pairs += [
            (weights.saturation(), reference.saturation(dense)),
            (weights.top(1).values, dense.amax(-1, keepdim=True)),
        ]
        for found, exact in pairs:
            assert found.dtype == torch.float32
            torch.testing.assert_close(found.double(), exact, atol=1e-5, rtol=1e-5)
