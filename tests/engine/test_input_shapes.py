"""Empty and single dimensions, wide values, and inputs in any memory layout."""

from collections.abc import Callable
from typing import Any

import reference
import torch
from every_plan import attend, close, dtypes, every, learn, plans, qkv
from largest_allocation import LargestAllocation
from torch import Tensor

import regard as rg
from regard import masks, scores

SHAPES = {
    "no keys": ((2, 3), 5, 0, 7, 4),
    "no queries": ((2, 3), 0, 5, 7, 4),
    "neither": ((2, 3), 0, 0, 7, 4),
    "empty batch": ((0, 3), 5, 6, 7, 4),
    "one value": ((2, 3), 5, 6, 7, 1),
    "one of all": ((), 1, 1, 1, 1),
    "many axes": ((2, 1, 3, 1), 5, 6, 7, 4),
    "one key": ((2,), 5, 1, 7, 4),
    "wide values": ((2,), 20, 21, 7, 64),
    "no values": ((2,), 5, 6, 7, 0),
}


@every("shape", list(SHAPES.values()), ids=list(SHAPES))
@every(
    "mask", [None, masks.causal(align="bottom-right"), masks.window(2, 1, align="top-left"), masks.prefix(1)], ids=str
)
@plans
@dtypes
def test_attention_of_empty_and_single_dimensions(shape: Any, mask: Any, plan: str, dtype: torch.dtype) -> None:
    lead, n, m, d, d_v = shape
    q, k, v = learn(*qkv(dtype, n, m, d, d_v, lead))
    output, weights = attend(plan, q, k, v, mask=mask)
    output.sum().backward()
    seen = rg.Weights(q, k, score=scores.uniform(), mask=mask, plan="dense").dense() > 0
    close(output, reference.attend(q, k, v, visible=seen).output, dtype)
    assert output.shape == (*lead, n, d_v) and weights.shape == (*lead, n, m)
    assert all(x.grad.shape == x.shape and x.grad.isfinite().all() for x in (q, k, v))


@every("shape", list(SHAPES.values()), ids=list(SHAPES))
@plans
def test_questions_of_empty_and_single_dimensions(shape: Any, plan: str) -> None:
    lead, n, m, d, d_v = shape
    weights = attend(plan, *qkv(torch.float32, n, m, d, d_v, lead)).weights
    rows = [
        weights.entropy(),
        weights.saturation(),
        weights.distance(torch.arange(n)),
        weights.logsumexp(),
        weights.empty_rows(),
    ]
    assert {tuple(x.shape) for x in rows} == {(*lead, n)}
    assert weights.received().shape == (*lead, m)
    assert weights.mass(torch.zeros(m, dtype=torch.long)).shape == (*lead, n, min(m, 1))
    assert weights.top(2).values.shape == weights.top(2).indices.shape == (*lead, n, 2)
    assert weights.heatmap(4).shape == (*lead, min(4, n), min(4, m))
    assert weights.empty_rows().all() if m == 0 else not weights.empty_rows().any()


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "strided": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "reversed axes": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "offset": lambda x: torch.cat([x, x])[x.shape[0] :],
    "expanded": lambda x: x[:1].expand(x.shape),
}


@every("layout", list(LAYOUTS))
@plans
@dtypes
def test_the_layout_of_the_input_does_not_matter(layout: str, plan: str, dtype: torch.dtype) -> None:
    x = learn(*qkv(dtype))
    odd = [LAYOUTS[layout](t) for t in x]
    output = attend(plan, *odd, mask=masks.causal()).output
    plain = attend(plan, *(t.detach().contiguous().clone() for t in odd), mask=masks.causal()).output
    close(output, plain, dtype)
    output.sum().backward()
    assert all(t.grad.isfinite().all() and t.grad.any() for t in x[:3:2])


@dtypes
@every("d_v", [1, 8, 128])
@every("plan", ["auto", "tiled", "fused"])
def test_no_width_of_values_builds_the_matrix(plan: str, dtype: torch.dtype, d_v: int) -> None:
    """torch's own function does, where values are not as wide as keys."""
    n = 2048
    q, k, v = (torch.randn(n, width).to(dtype).requires_grad_() for width in (64, 64, d_v))
    with LargestAllocation() as largest:
        rg.attend(q, k, v, plan=plan, budget=4 << 20).output.sum().backward()
    assert largest.bytes < n * n * dtype.itemsize / 3
