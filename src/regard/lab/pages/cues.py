"""Cues: the same objects seen without a query and with one.

`show` returns, for m objects with d features (`en` and `zh` are the two languages):

    names           {en, zh}: (m,) texts        features    {en, zh}: (d,) texts
    query_text      {en, zh}: what the scene's own query says
    own_query       bool: whether `query` still is the scene's own, so that its text holds
    keys            (m, d) how much of each feature an object has
    values          (m, 3) the colour of each object, red, green, blue from 0 to 1
    query           (d,)  as used: the state's, else the scene's; `saliency` (d,) likewise
    scores          (m,)  what goes into the softmax; null for max pooling, which has no scores
    weights         (m,)  null for max pooling, which has none: each feature has a winner of its own
    output          (3,)  the pooled colour
    pooled          (d,)  the pooled features
    sources         (d,)  max pooling alone: the object that each pooled feature comes from; else null
    winner          the object with the largest weight; null for max pooling and for a tie
    leaders         objects that share the largest weight
    total           the sum of the weights, 1; entropy in nats; `effective` = exp(entropy), "how many objects"
    bottom_up       {weights (m,), winner}: by saliency, whatever `pooling` is: the involuntary cue
    top_down        {weights (m,), winner}: by the query: the voluntary cue
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard import datasets, nn, scores
from regard.attention import Attention, attend
from regard.lab.examples import attention
from regard.lab.pages._numbers import leaders, literal, score_matrix, shortest_decimals
from regard.lab.pages._state import Choice, Many, Maybe, Real, setting
from regard.lab.strict_json import plain

POOLINGS = ("average", "max", "learned", "query")
N_FEATURES = 4  # of every scene


@dataclass(frozen=True)
class State:
    scene: str = setting("desk", Choice(tuple(datasets.SCENES)))
    pooling: str = setting("query", Choice(POOLINGS))
    query: tuple[float, ...] | None = setting(None, Maybe(Many(Real(-10, 10), N_FEATURES, N_FEATURES)))
    saliency: tuple[float, ...] | None = setting(None, Maybe(Many(Real(-10, 10), N_FEATURES, N_FEATURES)))


def show(state: State) -> dict[str, Any]:
    """The pooled colour and features of the scene, and the weights."""
    scene = _scene(state)
    bottom_up, top_down = attention.look_without_a_query(scene), attention.look_with_a_query(scene)
    return plain({
        "names": {"en": scene.names, "zh": scene.names_zh},
        "features": {"en": scene.features, "zh": scene.features_zh},
        "query_text": {"en": scene.query_text, "zh": scene.query_text_zh},
        "own_query": bool((scene.query == datasets.scene(state.scene).query).all()),
        "keys": shortest_decimals(scene.keys),
        "values": shortest_decimals(scene.values),
        "query": shortest_decimals(scene.query[0]),
        "saliency": shortest_decimals(scene.saliency),
        **_pooled(state.pooling, scene, bottom_up, top_down),
        "bottom_up": _weights_and_winner(bottom_up),
        "top_down": _weights_and_winner(top_down),
    })  # fmt: skip


def _scene(state: State) -> datasets.Scene:
    scene = datasets.scene(state.scene)
    if state.query is not None:
        scene = scene._replace(query=torch.tensor([state.query]))
    if state.saliency is not None:
        scene = scene._replace(saliency=torch.tensor(state.saliency))
    return scene


def _pooled(pooling: str, scene: datasets.Scene, bottom_up: Attention, top_down: Attention) -> dict[str, Any]:
    if pooling == "max":
        return _max_pooled(scene)
    no_query = torch.zeros_like(scene.query)
    average = attend(no_query, scene.keys, scene.values, score=scores.uniform())
    output, weights = {"average": average, "learned": bottom_up, "query": top_down}[pooling]
    entropy = weights.entropy().item()
    row = weights.dense()
    return {
        "scores": score_matrix(weights.spec.score, weights.query, weights.key)[0],
        "weights": row[0],
        "output": output[0],
        "pooled": (weights @ scene.keys)[0],
        "sources": None,
        **_winner(row),
        "total": row.sum(),
        "entropy": entropy,
        "effective": math.exp(entropy),
    }


def _max_pooled(scene: datasets.Scene) -> dict[str, Any]:
    features, colour = nn.MaxPooling()(scene.keys), nn.MaxPooling()(scene.values)
    none = dict.fromkeys(("scores", "weights", "winner", "total", "entropy", "effective"))
    return {
        **none,
        "output": colour.output,
        "pooled": features.output,
        "sources": features.indices,
        "leaders": [],
    }


def _weights_and_winner(look: Attention) -> dict[str, Any]:
    row = look.weights.dense()
    return {"weights": row[0], "winner": _winner(row)["winner"]}


def _winner(row: Float[Tensor, "1 keys"]) -> dict[str, Any]:
    best = leaders(row)[0]
    return {"winner": best[0] if len(best) == 1 else None, "leaders": best}


def code(state: State) -> str:
    """Python code that computes `output`, and `weights` where the pooling has them."""
    scene = _scene(state)
    lines = [
        "import torch",
        "import regard as rg",
        "",
        f'scene = rg.datasets.scene("{state.scene}")',
        "keys, values = scene.keys, scene.values  # features, and the colours that are seen",
    ]
    return "\n".join([*lines, *_attend_code(state, scene)]) + "\n"


def _attend_code(state: State, scene: datasets.Scene) -> list[str]:
    query, saliency = literal(shortest_decimals(scene.query)), literal(shortest_decimals(scene.saliency))
    query = "scene.query" if state.query is None else f"torch.tensor({query}, dtype=torch.float32)"
    saliency = "scene.saliency" if state.saliency is None else f"torch.tensor({saliency}, dtype=torch.float32)"
    nobody = "nobody = torch.zeros(1, 4)  # a query that asks for nothing"
    glance = "output, weights = rg.attend(nobody, keys, values, score=score)"
    ask = "output, weights = rg.attend(query, keys, values, score=score)"
    tell = "print(dict(zip(scene.names, weights[0].tolist())))"
    return {
        "average": [nobody, "score = rg.scores.uniform()", glance, tell],
        "max": ["output = rg.nn.MaxPooling()(values).output", "sources = rg.nn.MaxPooling()(keys).indices"],
        "learned": [
            nobody,
            f"saliency = {saliency}  # what stands out",
            "score = rg.scores.uniform() + rg.scores.bias(keys @ saliency)",
            glance,
            tell,
        ],
        "query": [f"query = {query}", "score = rg.scores.dot()", ask, tell],
    }[state.pooling]
