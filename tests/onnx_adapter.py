"""ONNX's Attention operator (opset 23 to 25) spoken in regard's words.

Only the plumbing is here: heads folded into the last axis, caches, what an attn_mask means. The attention is `attend`.
"""

import functools
import operator
from typing import Any

import torch
from torch import Tensor

import regard as rg
from regard import errors, masks, scores


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, length, heads * dim) -> (batch, heads, length, dim)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def visibility(n: int, m: int, mask: Tensor | None, lengths: Tensor | None, past: int, node: dict[str, Any]) -> Any:
    """Every mask of the operator, joined: a bool attn_mask, -inf in a float one, causal, window, padded keys."""
    parts = [window_of(n, m, lengths, past, node)]
    if mask is not None:
        kept = mask if mask.dtype == torch.bool else mask > -torch.inf
        kept = kept.expand(torch.broadcast_shapes(kept.shape, (n, 1)))
        parts.append(masks.allow(torch.nn.functional.pad(kept, (0, m - kept.shape[-1]))))
    if lengths is not None:
        parts.append(masks.padding(lengths))
    parts = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, parts) if parts else None


def window_of(n: int, m: int, lengths: Tensor | None, past: int, node: dict[str, Any]) -> Any:
    causal, left, right = (node.get(key, -1) for key in ("is_causal", "left_window_size", "right_window_size"))
    if causal <= 0 and left < 0 and right < 0:
        return None
    if causal > 0 and left < 0 and lengths is None and past == 0:
        return masks.causal(align="top-left")
    left, right = n + m if left < 0 else left, 0 if causal > 0 else n + m if right < 0 else right
    if lengths is not None:
        return band(n, m, left, right, (lengths - n)[:, None, None, None])
    return masks.window(left - past, right + past, align="top-left") if left >= past else band(n, m, left, right, past)


def band(n: int, m: int, left: int, right: int, past: int | Tensor) -> Any:
    """A window whose queries start after `past` keys, which may differ from batch to batch."""
    away = torch.arange(m) - torch.arange(n)[:, None] - past
    return masks.allow((away >= -left) & (away <= right))


def score_of(q: Tensor, m: int, mask: Tensor | None, node: dict[str, Any], upto: int = 2) -> Any:
    """scale q . k, then (1) softcap, then (2) the finite part of a float attn_mask."""
    score = scores.scaled_dot(node.get("scale"))
    if upto >= 1 and node.get("softcap", 0.0) > 0:
        score = scores.softcap(score, node["softcap"])
    if upto >= 2 and mask is not None and mask.dtype != torch.bool:
        finite = torch.where(mask > -torch.inf, mask, 0)
        score = score + scores.bias(torch.nn.functional.pad(finite, (0, m - mask.shape[-1])))
    return score


def raw_scores(q: Tensor, k: Tensor, score: Any, mask: Any) -> Tensor:
    """Scores read back from the weights, log weight + log-sum-exp, in float64; hidden cells are -inf."""
    weights = rg.Weights(q.double(), k.double(), score=score, mask=mask)
    return (weights.dense().log() + weights.logsumexp()[..., None]).to(q.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, plan: str, **words: Any) -> Any:
    """A forced fused plan may say that it does not serve; then the declared fallback is what "auto" chooses."""
    try:
        return rg.attend(q, k, v, plan=plan, **words)
    except errors.PlanError:
        if plan != "fused":
            raise
        return rg.attend(q, k, v, **words)


def run(node: dict[str, Any], inputs: dict[str, Tensor], plan: str) -> dict[str, Tensor]:
    """One node: its attributes and named inputs -> all its named outputs."""
    q, k, v, mask = inputs["Q"], inputs["K"], inputs["V"], inputs.get("attn_mask")
    folded = q.ndim == 3
    if folded:
        q, k, v = split_heads(q, node["q_num_heads"]), *(split_heads(x, node["kv_num_heads"]) for x in (k, v))
    past = inputs["past_key"].shape[-2] if "past_key" in inputs else 0
    if past:
        k, v = torch.cat([inputs["past_key"], k], -2), torch.cat([inputs["past_value"], v], -2)
    n, m = q.shape[-2], k.shape[-2]
    seen = visibility(n, m, mask, inputs.get("nonpad_kv_seqlen"), past, node)
    output, weights = attend(q, k, v, plan, score=score_of(q, m, mask, node), mask=seen)
    mode = node.get("qk_matmul_output_mode", 0)
    return {
        "Y": output.transpose(1, 2).flatten(2) if folded else output,
        "present_key": k,
        "present_value": v,
        "qk_matmul_output": weights.dense()
        if mode == 3
        else raw_scores(q, k, score_of(q, m, mask, node, upto=mode), seen if mode == 2 else None),
    }
