"""A Transformer block: from tokens to the next token, for five tokens by hand or in SmolLM2.

`show` returns `part`, as in the state. For five tokens of width d, all in double precision, with the norm after each
residual as in the original Transformer:

    sizes           {tokens, width, heads, head_dim, hidden}
    query, key, value   (5, d) tokens @ w_q, tokens @ w_k, tokens @ w_v. Head h has `head_dim` columns of each
    scores          (heads, 5, 5) q_h @ k_h.mT / sqrt(head_dim); null where the mask hides the key
    weights         (heads, 5, 5) softmax(scores); rows sum to 1
    pooled          (heads, 5, head_dim) weights @ v_h
    joined          (5, d) the heads side by side
    attention       (5, d) joined @ w_o
    sum_1, norm_1   (5, d) tokens + attention, and its layer norm
    inner           (5, hidden) relu(norm_1 @ w_1)
    feed_forward    (5, d) inner @ w_2
    sum_2, output   (5, d) norm_1 + feed_forward, and its layer norm
    mean_1, deviation_1, mean_2, deviation_2   (5,) of each row of the sums; `deviation` is sqrt(variance + 1e-5)
    logits          (5, 5) output @ tokens.mT: the vocabulary is the five tokens, and their vectors are tied
    probabilities   (5, 5) softmax(logits): the next token after each

For SmolLM2 and n tokens of the text, `at` is the token that is followed, and `layer` the block, counted from 0:

    loading         true while the model is being loaded; then there is nothing else
    model           {layers, heads, key_heads, head_dim, width, hidden, vocabulary}
    pieces          (n,) texts of the tokens
    weights         (heads, n) of this token in this block, to six decimals; rows sum to 1
    vectors         {before, norm_1, attention, between, norm_2, feed_forward, after}, each (width,): between = before +
                    attention, after = between + feed_forward. `output` is the last one
    lengths         the same names, (layers,) each: the Euclidean norms in every block
    lens            (layers + 1) rows {tokens, probabilities, last, rank}: the likeliest next tokens if the model ended
                    here, first before block 0 and then after each block; `last` is what the row gives to the
                    likeliest token of the last row, and `rank` its place among all tokens, 1 for the likeliest
    candidates      {tokens, probabilities} the likeliest next tokens of the whole model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import LayerNorm

from regard import datasets, masks, models
from regard.errors import ShapeError
from regard.lab.pages import _block_code
from regard.lab.pages._background_load import BackgroundLoad
from regard.lab.pages._caching_encoder import MODEL_LOCK
from regard.lab.pages._numbers import score_matrix
from regard.lab.pages._residual_stream import PARTS, ResidualStream, candidates, read
from regard.lab.pages._state import Choice, Flag, Grid, Maybe, Real, Text, Whole, setting
from regard.lab.strict_json import plain
from regard.masks import Mask
from regard.nn import MultiheadAttention
from regard.scores import scaled_dot, uniform
from regard.weights import Weights

STAGES = 9
TOKENS, WIDTH, HEADS, HIDDEN = 5, 4, 2, 8
LAYERS = 30  # of SmolLM2
MAX_TOKENS = 64  # more would not fit the picture
LIKELIEST = 8  # next tokens that are shown
PATIENCE = 1.0  # seconds in which a loaded model usually is there; the page asks again

Rows = tuple[tuple[float, ...], ...]


def _rows(*rows: Sequence[float]) -> Rows:
    return tuple(tuple(float(number) for number in row) for row in rows)


# Head 0 finds tokens that are alike in their first two numbers; head 1 finds, for the last two numbers of a token, the
# same as the first two of another. The rest makes token 1 the likeliest after token 5.
W_Q = _rows((2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 2, 0), (0, 0, 0, 2))
W_K = _rows((2, 0, 2, 0), (0, 2, 0, 2), (0, 0, 0, 0), (0, 0, 0, 0))
W_V = _rows((0, 0, 1, 0), (0, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 0))
W_O = _rows((0, 0, 1, 0), (0, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 0))
W_1 = _rows(
    (-2, 0, 0, -0.5, 1.5, 1, 0, 0), (0, -0.5, 0, -0.5, 1, 1.5, 0, 1.5),
    (0, 1, 0, 1.5, -0.5, -0.5, 1, 0), (1, 0, 0, 1.5, -1, -0.5, 0, 0),
)  # fmt: skip
W_2 = _rows(
    (1.5, 0.5, -0.5, -2), (-1, 1, 0, 0), (1, -0.5, -0.5, 2), (1.5, -0.5, 0.5, -0.5),
    (0.5, 0, 0.5, 0), (0, -0.5, 0.5, 0.5), (0, 0.5, -1, 1), (-1.5, -0.5, 0, 2),
)  # fmt: skip


X = _rows(*datasets.worked_example().tokens.tolist())
NUMBER = Real(-10, 10)
SQUARE = Grid((WIDTH, WIDTH), (WIDTH, WIDTH), NUMBER)


@dataclass(frozen=True)
class State:
    part: str = setting("tokens", Choice(("tokens", "model")))
    stage: int = setting(0, Whole(0, STAGES - 1))
    token: int = setting(4, Whole(0, TOKENS - 1))
    causal: bool = setting(True, Flag())
    tokens: tuple[tuple[float, ...], ...] = setting(X, Grid((TOKENS, TOKENS), (WIDTH, WIDTH), NUMBER))
    w_q: tuple[tuple[float, ...], ...] = setting(W_Q, SQUARE)
    w_k: tuple[tuple[float, ...], ...] = setting(W_K, SQUARE)
    w_v: tuple[tuple[float, ...], ...] = setting(W_V, SQUARE)
    w_o: tuple[tuple[float, ...], ...] = setting(W_O, SQUARE)
    w_1: tuple[tuple[float, ...], ...] = setting(W_1, Grid((WIDTH, WIDTH), (HIDDEN, HIDDEN), NUMBER))
    w_2: tuple[tuple[float, ...], ...] = setting(W_2, Grid((HIDDEN, HIDDEN), (WIDTH, WIDTH), NUMBER))
    text: str = setting("She opened the door and looked out of the", Text(400))
    position: int | None = setting(None, Maybe(Whole(0, MAX_TOKENS - 1)))  # none: the last token
    layer: int = setting(26, Whole(0, LAYERS - 1))


def show(state: State) -> dict[str, Any]:
    """Every stage of the block, or one block of SmolLM2 and what the model would say after each."""
    return plain({"part": state.part, **(_five_tokens(state) if state.part == "tokens" else _model(state))})


# Five tokens


def _five_tokens(state: State) -> dict[str, Any]:
    tokens, w_1, w_2 = (_double(rows) for rows in (state.tokens, state.w_1, state.w_2))
    layer = _attention(state)
    mask = masks.causal() if state.causal else None
    q, k, v = (part.transpose(-3, -2) for part in layer.project(tokens, tokens, tokens))  # (heads, 5, head_dim)
    pooled, weights = layer.attend(q, k, v, scaled_dot(), mask)
    joined = pooled.transpose(-3, -2)
    attention = layer.join(joined)
    sum_1 = tokens + attention
    norm_1 = _norm(sum_1)
    inner = torch.relu(norm_1 @ w_1)
    sum_2 = norm_1 + inner @ w_2
    output = _norm(sum_2)
    logits = output @ tokens.mT
    return {
        "sizes": {"tokens": TOKENS, "width": WIDTH, "heads": HEADS, "head_dim": WIDTH // HEADS, "hidden": HIDDEN},
        **{name: part.transpose(0, 1).flatten(1) for name, part in (("query", q), ("key", k), ("value", v))},
        "scores": _scores(q, k, mask),
        "weights": weights.dense(),
        "pooled": pooled,
        "joined": joined.flatten(-2),
        "attention": attention,
        "sum_1": sum_1, "mean_1": sum_1.mean(-1), "deviation_1": _deviation(sum_1), "norm_1": norm_1,
        "inner": inner,
        "feed_forward": inner @ w_2,
        "sum_2": sum_2, "mean_2": sum_2.mean(-1), "deviation_2": _deviation(sum_2), "output": output,
        "logits": logits,
        "probabilities": logits.softmax(-1),
    }  # fmt: skip


def _double(rows: Rows) -> Float[Tensor, "rows columns"]:
    return torch.tensor(rows, dtype=torch.float64)


@torch.no_grad()
def _attention(state: State) -> MultiheadAttention:
    """The layer with the state's weights. A linear layer multiplies by its weight transposed."""
    layer = MultiheadAttention(WIDTH, HEADS, bias=False, dtype=torch.float64).requires_grad_(requires_grad=False)
    layer.in_proj_weight.copy_(torch.cat([_double(rows).mT for rows in (state.w_q, state.w_k, state.w_v)]))
    layer.out_proj.weight.copy_(_double(state.w_o).mT)
    return layer.eval()


def _scores(
    q: Float[Tensor, "heads tokens dim"], k: Float[Tensor, "heads tokens dim"], mask: Mask | None
) -> Float[Tensor, "heads tokens tokens"]:
    """The scores of every head; NaN, which becomes null, where the key is hidden."""
    scores = torch.stack([score_matrix(scaled_dot(), *head) for head in zip(q, k, strict=True)])
    visible = Weights(q, k, score=uniform(), mask=mask).dense() > 0
    return scores.where(visible, torch.nan)


def _norm(rows: Float[Tensor, "tokens width"]) -> Float[Tensor, "tokens width"]:
    return LayerNorm(WIDTH, elementwise_affine=False, dtype=rows.dtype)(rows)


def _deviation(rows: Float[Tensor, "tokens width"]) -> Float[Tensor, " tokens"]:
    return (rows.var(-1, correction=0) + LayerNorm(WIDTH).eps).sqrt()


# SmolLM2

SMOLLM2 = BackgroundLoad(lambda: models.load("smollm2", causal=True), "regard-smollm2")


def _model(state: State) -> dict[str, Any]:
    loaded = SMOLLM2.get(PATIENCE)
    if loaded is None:
        return {"loading": True}
    with MODEL_LOCK:
        stream = _stream(state.text)
        at = _followed(state, len(stream.tokens))
        asked = _lens(state.text, at)
    parts = stream.parts[state.layer]
    lengths = stream.sizes(at)
    return {
        "loading": False,
        "model": _sizes(stream.model.config),
        "pieces": stream.tokens,
        "at": at,
        "layer": state.layer,
        "weights": stream.weights(state.layer, at).double().round(decimals=6),
        "vectors": {name: parts[name][at].double().round(decimals=4) for name in PARTS},
        "output": parts["after"][at],
        "lengths": {name: [block[name] for block in lengths] for name in PARTS},
        **asked,
    }


@lru_cache(maxsize=4)  # the vectors of a text take up to 31 MB
def _stream(text: str) -> ResidualStream:
    loaded = SMOLLM2.get()
    prepared = models.tokenize("smollm2", text, loaded=loaded)
    if prepared.length > MAX_TOKENS:
        raise ShapeError(f"text must have at most {MAX_TOKENS} tokens to be drawn, {prepared.length} came")
    return read(prepared)


@lru_cache(maxsize=64)
def _lens(text: str, at: int) -> dict[str, Any]:
    stream = _stream(text)
    rows = stream.lens(at)
    best = int(rows[-1].argmax())
    return plain({
        "lens": [
            {**candidates(stream, row, 3)._asdict(), "last": row[best], "rank": (row > row[best]).sum() + 1}
            for row in rows
        ],
        "candidates": candidates(stream, rows[-1], LIKELIEST)._asdict(),
    })  # fmt: skip


def _followed(state: State, count: int) -> int:
    if state.position is None:
        return count - 1
    if state.position >= count:
        raise ShapeError(f"position must be from 0 to {count - 1}, the last token of the text, {state.position} came")
    return state.position


def _sizes(config: Any) -> dict[str, int]:
    return {
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "key_heads": config.num_key_value_heads,
        "head_dim": config.hidden_size // config.num_attention_heads,
        "width": config.hidden_size,
        "hidden": config.intermediate_size,
        "vocabulary": config.vocab_size,
    }


def code(state: State) -> str:
    """Python code that computes `weights`, `output` and `probabilities`; for SmolLM2 those of the chosen token."""
    if state.part == "model":
        return _block_code.language_model(state.text, -1 if state.position is None else state.position, state.layer)
    grids = {name: getattr(state, name) for name in ("tokens", "w_q", "w_k", "w_v", "w_o", "w_1", "w_2")}
    return _block_code.block(grids, HEADS, causal=state.causal)
