"""Padded batches: padding gets no weight, on either side and however low the scores are."""

import reference
import torch
from every_plan import ROWS, attend, close, dtypes, plans, qkv

from regard import masks, scores


@plans
@dtypes
def test_scores_far_below_minus_a_million_stay_off_the_padding(plan: str, dtype: torch.dtype) -> None:
    q, k = torch.full((2, 24, 64), 256.0, dtype=dtype), torch.full((2, 24, 64), -256.0, dtype=dtype)
    weights = attend(plan, q, k, k, score=scores.dot(), mask=masks.padding(torch.tensor([3, 24]))).weights.dense()
    assert not weights[0, :, 3:].any()
    close(weights[0, :, :3], torch.full((24, 3), 1 / 3, dtype=torch.float64), dtype)
    close(weights[1], torch.full((24, 24), 1 / 24, dtype=torch.float64), dtype)


@plans
@dtypes
def test_left_padded_batches_show_no_pattern_that_is_not_there(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    pad = torch.tensor([5, 0])
    hidden = (pad[:, None] > ROWS)[:, None, None, :]  # (batch, 1, 1, keys)
    output, weights = attend(plan, q, k, v, mask=masks.causal() & masks.hide(hidden))
    short = reference.attend(q[0, :, 5:], k[0, :, 5:], v[0, :, 5:], visible=reference.causal(19, 19))
    close(output[0, :, 5:], short.output, dtype)
    assert not output[0, :, :5].any() and not weights.dense()[0, :, :5].any()
    assert weights.empty_rows().sum((-1, -2)).tolist() == [15, 0]
