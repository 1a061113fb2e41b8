"""Scores: one query and a few keys in the plane, under eight scoring functions.

`show` returns, for m keys, in double precision (the values are the keys themselves):

    query           (2,)                        keys    (m, 2)
    rows            one a score, in the order of `SCORES`: {name, formula, scores (m,), weights (m,), output (2,),
                    leaders: keys that share the largest weight, entropy}
    scores, weights (m,)    of the score that is `chosen`
    output          (2,)    likewise
    local           Luong's local attention around a predicted position, with dot scores: {place: that position, keys
                    counted from 0; window; weights (m,): softmax within the window, then times a Gaussian around the
                    place, so that they sum to `total` < 1; output (2,)}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard import nn, scores
from regard.attention import attend
from regard.lab.pages._numbers import leaders, literal, score_matrix
from regard.lab.pages._state import Choice, Grid, Many, Real, Whole, setting
from regard.lab.strict_json import plain

SCORES = ("dot", "scaled_dot", "general", "additive", "concat", "location", "gaussian", "cosine")
KEYS = (2, 8)  # fewest and most keys: more would overlap in the plane
COORDINATE = Real(-10, 10)  # of a point that can be dragged in the plane


def _matrix(*rows: tuple[float, ...]) -> Any:
    height, width = len(rows), len(rows[0])
    return setting(rows, Grid((height, height), (width, width), COORDINATE))


@dataclass(frozen=True)
class State:
    chosen: str = setting("scaled_dot", Choice(SCORES))
    query: tuple[float, ...] = setting((1.5, 1.0), Many(COORDINATE, 2, 2))
    keys: tuple[tuple[float, ...], ...] = setting(
        ((2.0, 0.5), (0.5, 2.0), (-1.5, 1.0), (-1.0, -1.5), (1.5, -1.0)), Grid(KEYS, (2, 2), COORDINATE)
    )
    w: tuple[tuple[float, ...], ...] = _matrix((0.0, 1.0), (-1.0, 0.0))  # general: turned by a quarter
    w_q: tuple[tuple[float, ...], ...] = _matrix((1.0, 0.0), (0.0, 1.0))  # additive
    w_k: tuple[tuple[float, ...], ...] = _matrix((1.0, 0.0), (0.0, 1.0))
    v: tuple[float, ...] = setting((1.0, 1.0), Many(COORDINATE, 2, 2))  # additive and concat
    w_qk: tuple[tuple[float, ...], ...] = _matrix((1.0, 0.0, 0.5, 0.0), (0.0, 1.0, 0.0, -0.5))  # concat
    w_places: tuple[tuple[float, ...], ...] = _matrix(  # location: a row for each key there may be
        (1.0, 0.0), (0.5, 0.5), (0.0, 1.0), (-0.5, 0.5), (-1.0, 0.0), (-0.5, -0.5), (0.0, -1.0), (0.5, -0.5)
    )
    width: float = setting(1.0, Real(0.05, 20))  # gaussian
    temperature: float = setting(1.0, Real(0.05, 20))  # cosine
    window: int = setting(1, Whole(1, 8))  # local
    v_place: tuple[float, ...] = setting((1.0, 0.0), Many(COORDINATE, 2, 2))  # local


def show(state: State) -> dict[str, Any]:
    """All eight scores of the same query and keys."""
    query, keys = _tensor([state.query]), _tensor(state.keys)
    rows = [_row(name, make(state), query, keys) for name, make in SCORE_OF_STATE.items()]
    chosen = rows[SCORES.index(state.chosen)]
    return plain({
        "query": state.query,
        "keys": state.keys,
        "rows": rows,
        **{name: chosen[name] for name in ("scores", "weights", "output")},
        "local": _local(state, query, keys),
    })  # fmt: skip


def _row(name: str, score: scores.Score, query: Float[Tensor, "1 2"], keys: Float[Tensor, "keys 2"]) -> dict[str, Any]:
    output, weights = attend(query, keys, keys, score=score)
    row = weights.dense()
    return {
        "name": name,
        "formula": str(score),
        "scores": score_matrix(score, query, keys)[0],
        "weights": row[0],
        "output": output[0],
        "leaders": leaders(row)[0],
        "entropy": weights.entropy()[0],
    }


@torch.no_grad()
def _local(state: State, query: Float[Tensor, "1 2"], keys: Float[Tensor, "keys 2"]) -> dict[str, Any]:
    layer = nn.LocalAttention(2, 2, window=state.window, method="p", hidden=2, dtype=torch.float64)
    layer.w_p.copy_(torch.eye(2))
    layer.v_p.copy_(_tensor(state.v_place))
    output, weights = layer(query, keys, keys)
    row = weights.dense()[0]
    place = weights.spec.normaliser.centres[0]  # pyright: ignore[reportAttributeAccessIssue]
    return {"place": place, "window": state.window, "weights": row, "total": row.sum(), "output": output[0]}


def _tensor(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


SCORE_OF_STATE: dict[str, Callable[[State], scores.Score]] = {
    "dot": lambda _: scores.dot(),
    "scaled_dot": lambda _: scores.scaled_dot(),
    "general": lambda s: scores.general(_tensor(s.w)),
    "additive": lambda s: scores.additive(_tensor(s.w_q), _tensor(s.w_k), _tensor(s.v)),
    "concat": lambda s: scores.concat(_tensor(s.w_qk), _tensor(s.v)),
    "location": lambda s: scores.location(_tensor(s.w_places[: len(s.keys)])),
    "gaussian": lambda s: scores.gaussian(s.width),
    "cosine": lambda s: scores.cosine(s.temperature),
}


def code(state: State) -> str:
    """Python code for the chosen score; it computes `weights` and `output`."""
    tensor_args = {
        "general": {"w": state.w},
        "additive": {"w_q": state.w_q, "w_k": state.w_k, "v": state.v},
        "concat": {"w": state.w_qk, "v": state.v},
        "location": {"w": state.w_places[: len(state.keys)]},
    }.get(state.chosen, {})
    number_arg = {"gaussian": literal(state.width), "cosine": literal(state.temperature)}.get(state.chosen, "")
    tensors = {"query": [state.query], "keys": state.keys, **tensor_args}
    lines = [
        "import torch",
        "import regard as rg",
        "",
        *(f"{name} = torch.tensor({literal(rows)}, dtype=torch.float64)" for name, rows in tensors.items()),
        f"score = rg.scores.{state.chosen}({number_arg or ', '.join(tensor_args)})",
        "output, weights = rg.attend(query, keys, keys, score=score)",
        "print(weights.dense())",
    ]
    return "\n".join(lines) + "\n"
