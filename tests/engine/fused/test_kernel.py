"""What torch's fused kernel does with rows that see no key; other modules count on it."""

import pytest
import torch

from regard.engine.fused.kernel import flash, hiding_bias, mark_empty_rows
from regard.operands import NEVER


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keys", [16, 33, 511, 700, 1300])
@pytest.mark.parametrize("queries", [1, 40, 200, 800])
@pytest.mark.parametrize("causal", [False, True])
def test_only_rows_that_see_no_key_become_minus_infinity(
    dtype: torch.dtype, keys: int, queries: int, causal: bool
) -> None:
    generator = torch.Generator().manual_seed(keys + queries)
    q, k, v = (torch.randn(1, 2, rows, 16, generator=generator, dtype=dtype) for rows in (queries, keys, keys))
    visible = torch.rand(1, 2, 1 if causal else queries, keys, generator=generator) < 0.5
    visible[..., ::3, : keys if not causal else keys // 2] = False
    q[..., 1::4, :] = 0
    bias = hiding_bias(visible, dtype)
    out, lse = flash(q, k, v, 0.0, causal, attn_mask=bias, scale=0.25)
    rule = torch.ones(queries, keys, dtype=torch.bool).tril() if causal else torch.ones((), dtype=torch.bool)
    empty = ~(visible & rule).any(-1)
    assert bool((lse[empty] == 0).all())
    assert bool((out[empty] == 0).all())
    assert torch.equal(mark_empty_rows(lse, bias, causal=causal) == NEVER, empty)


def test_a_row_whose_log_sum_exp_is_zero_is_not_empty() -> None:
    q, k = torch.zeros(1, 1, 20, 16), torch.randn(1, 1, 20, 16)
    bias = hiding_bias(torch.eye(20, dtype=torch.bool)[None, None], torch.float32)
    lse = flash(q, k, k, 0.0, False, attn_mask=bias)[1]
    assert bool((lse == 0).all())
    assert torch.equal(mark_empty_rows(lse, bias, causal=False), lse)
