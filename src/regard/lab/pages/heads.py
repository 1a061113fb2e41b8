"""Heads: where the heads of a real model attend in one sentence.

The model is MiniLM (6 layers x 12 heads), recorded while it reads. `show` returns, for n tokens and one layer:

    tokens          (n,) texts, [CLS] first and [SEP] last
    layers          (6,) the names of the model's attention layers; `layer` is the state's, counted from 0
    head            the state's, counted from 0
    sizes           {heads, head_dim, width}: head_i = attention(Q W_i^Q, K W_i^K, V W_i^V), width = heads * head_dim
    weights         (heads, n, n) to six decimals; rows sum to 1
    heads           one a head: {kind, share, text {en, zh}, pair, entropy, saturation, distance, first, previous, next,
                    itself, separators, verdict}. `first` is the share on [CLS], `separators` on [SEP]. `kind` is where
                    more than half of the weight goes: "first", "previous", "next", "itself" or "separators"; else
                    "broad" if the entropy is above 0.9 log n, else "mixed"; `share` is that share, null for the last
                    two. `pair`: {query, key, weight}, the places of two different words of the sentence of which
                    one looks at the other most; null if it has one word. `verdict`: "saturated" if saturation >= 0.8,
                    else "fine"
    unknown         words of the sentence that the model does not know
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard import analysis
from regard.capture import record
from regard.errors import ShapeError
from regard.lab.pages._caching_encoder import MODEL_LOCK, encoder_for
from regard.lab.pages._state import Text, Whole, setting
from regard.lab.strict_json import plain
from regard.recording import Recording
from regard.relation import check_known

LOADS_MODEL = True  # MiniLM
LAYERS, HEADS = 6, 12  # of MiniLM
MAX_TOKENS = 64  # more would not fit the picture of a head
SHARES = ("first", "previous", "next", "itself", "separators")
FAVOURITE_SHARE = 0.5  # of the weight: a head with more on one target is named for it
TEXTS = {
    "first": ("{:.0%} of the weight on [CLS], the first token", "{:.0%} 的权重在第一个词元 [CLS] 上"),
    "previous": ("{:.0%} of the weight on the token before", "{:.0%} 的权重在前一个词元上"),
    "next": ("{:.0%} of the weight on the token after", "{:.0%} 的权重在后一个词元上"),
    "itself": ("{:.0%} of the weight on the token itself", "{:.0%} 的权重在词元自己身上"),
    "separators": ("{:.0%} of the weight on [SEP], the end of the sentence", "{:.0%} 的权重在句末标记 [SEP] 上"),
    "broad": ("nearly the same on every token", "几乎平均地看所有词元"),
    "mixed": ("nowhere more than half", "没有哪一处超过一半"),
}


@dataclass(frozen=True)
class State:
    sentence: str = setting("The animal did not cross the street because it was too tired.", Text(400))
    layer: int = setting(3, Whole(0, LAYERS - 1))
    head: int = setting(1, Whole(0, HEADS - 1))  # of layer 3: the one in which "it" looks at "animal"


def show(state: State) -> dict[str, Any]:
    """The weights of every head of one layer, and where each head attends."""
    recording, unknown = _recorded(state.sentence)
    layer = recording.layers[state.layer].name
    weights = recording[layer].dense()[0]
    profiles = analysis.profiles(recording, layers=layer, separators=[recording.tokenizer.sep_token_id])
    call = recording.entries[state.layer].load()
    return plain({
        "tokens": recording.tokens[0]["input_ids"][0],
        "layers": [layer.name for layer in recording.layers],
        "layer": state.layer,
        "head": state.head,
        "sizes": {"heads": HEADS, "head_dim": call.query.shape[-1], "width": HEADS * call.query.shape[-1]},
        "weights": weights.double().round(decimals=6),
        "heads": [_head(row, matrix) for row, matrix in zip(profiles.rows, weights, strict=True)],
        "unknown": unknown,
    })  # fmt: skip


@lru_cache(maxsize=16)
def _recorded(sentence: str) -> tuple[Recording, tuple[str, ...]]:
    encoder = encoder_for("minilm", [sentence])
    read = encoder.encode([sentence])
    check_known(encoder, read, [sentence])
    tokenizer, model = encoder.encoder.tokenizer, encoder.encoder.model  # pyright: ignore[reportAttributeAccessIssue]
    tokens = tokenizer(sentence, return_tensors="pt")
    if tokens["input_ids"].shape[-1] > MAX_TOKENS:
        count = tokens["input_ids"].shape[-1]
        raise ShapeError(f"sentence must have at most {MAX_TOKENS} tokens to be looked at head by head, {count} came")
    with MODEL_LOCK, torch.no_grad(), record(model, tokenizer=tokenizer) as recording:
        model(**tokens)
    return recording, read.unknown[0]


def _head(row: analysis.ProfileRow, weights: Float[Tensor, "tokens tokens"]) -> dict[str, Any]:
    numbers = {name: getattr(row, name) for name in analysis.MEASURES}
    numbers["next"] = weights.diagonal(1).sum().item() / len(weights)
    best = max(SHARES, key=numbers.__getitem__)
    kind = best if numbers[best] > FAVOURITE_SHARE else _broad_or_mixed(row.entropy, len(weights))
    share = numbers[kind] if kind in SHARES else None
    en, zh = (text.format(share) for text in TEXTS[kind])
    verdict = "saturated" if row.saturation >= analysis.SATURATED else "fine"
    summary = {"kind": kind, "share": share, "text": {"en": en, "zh": zh}, "pair": _pair(weights)}
    return {**summary, **numbers, "verdict": verdict}


def _pair(weights: Float[Tensor, "tokens tokens"]) -> dict[str, Any] | None:
    """The largest weight between two different words, without [CLS] and [SEP]."""
    words = weights[1:-1, 1:-1].clone().fill_diagonal_(0)
    if len(words) < 2:
        return None
    query, key = divmod(int(words.argmax()), len(words))
    return {"query": query + 1, "key": key + 1, "weight": words[query, key]}


def _broad_or_mixed(entropy: float, n: int) -> str:
    return "broad" if entropy > 0.9 * math.log(n) else "mixed"


def code(state: State) -> str:
    """Python code that computes `weights` and a table of the heads' profiles."""
    return f"""import torch
import regard as rg

tokenizer, model = rg.models.load("minilm")
sentence = {json.dumps(state.sentence, ensure_ascii=False)}
with torch.no_grad(), rg.record(model, tokenizer=tokenizer) as recording:
    model(**tokenizer(sentence, return_tensors="pt"))
name = recording.layers[{state.layer}].name
weights = recording[name]  # (1, heads, tokens, tokens)
print(rg.analysis.profiles(recording, layers=name, separators=[tokenizer.sep_token_id]))
"""
