"""Masks: what each query may see, their algebra, an empty row, and a famous wrong recipe.

`show` returns, for n queries and m keys:

    formula         the mask in words, as regard prints it: "causal & ~window(1, 1)"
    expression      the mask in Python: "masks.causal() & ~masks.window(1, 1)"
    visible         (n, m) of bool
    weights         (n, m) rows sum to 1, those of `empty` queries are 0
    empty           the queries that see no key
    seen            (n,)   how many keys each query sees
    recipe          what `mask = triu(ones(n, m), 1)` with "mask == 0 is hidden" does: {visible (n, m): what it lets
                    queries see; torch (n, m): softmax of the filled scores, null where it is NaN; regard (n, m): the
                    same mask as `allow`, an empty row is 0; empty: queries that see nothing; causal (n, m): what was
                    meant, null if n > m}
    message         what `attend` says to a bare boolean tensor, whose polarity nobody knows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import masks, scores
from regard.attention import attend
from regard.errors import MaskError
from regard.lab.examples import attention
from regard.lab.pages._numbers import literal, score_matrix
from regard.lab.pages._state import Choice, Flag, Many, Maybe, Part, Real, Whole, setting
from regard.lab.strict_json import plain
from regard.masks import Align
from regard.weights import Weights

ALIGN = Maybe(Choice(("top-left", "bottom-right")))
RULES = ("causal", "window", "prefix", "padding", "segments", "random")
SIDE = (4, 16)  # fewest and most queries or keys: more would not fit the picture
COUNT = Whole(0, SIDE[1])  # of keys or queries that a rule names
Queries = Float[Tensor, "1 queries dim"]
Keys = Float[Tensor, "1 keys dim"]
WIDTH = 4  # of the queries and keys that are drawn
SEED = Whole(0, 2**31 - 1)


@dataclass(frozen=True)
class Rule:
    """One mask of the expression; fields that its kind does not need are ignored."""

    kind: str = setting("causal", Choice(RULES))
    join: str = setting("and", Choice(("and", "or")))  # with the rules before it
    negate: bool = setting(False, Flag())
    left: int = setting(2, COUNT)  # window
    right: int = setting(0, COUNT)
    length: int = setting(2, COUNT)  # prefix, padding: the keys that are seen; segments: the tokens of one
    share: float = setting(0.5, Real(0, 1))  # random: about this fraction of the cells is visible
    seed: int = setting(0, SEED)


@dataclass(frozen=True)
class State:
    n: int = setting(8, Whole(*SIDE))
    m: int = setting(8, Whole(*SIDE))
    align: str | None = setting(None, ALIGN)  # needed by causal and window where n is not m
    rules: tuple[Rule, ...] = setting((Rule(),), Many(Part(Rule), 0, 4))
    seed: int = setting(1, SEED)


def show(state: State) -> dict[str, Any]:
    """The mask, the weights under it, and the wrong recipe beside it."""
    query, key = _draw(state)
    mask = _mask(state)
    weights = attend(query, key, key, mask=mask).weights
    visible = Weights(query, key, score=scores.uniform(), mask=mask).dense()[0] > 0
    return plain({
        "formula": "everything" if mask is None else str(mask),
        "expression": _expression(state) or "None",
        "visible": visible,
        "weights": weights.dense()[0],
        "empty": weights.empty_rows()[0].nonzero().flatten(),
        "seen": visible.sum(-1),
        "recipe": _recipe(state, query, key),
        "message": _refusal(query, key, visible),
    })  # fmt: skip


def _draw(state: State) -> tuple[Queries, Keys]:
    generator = torch.Generator().manual_seed(state.seed)
    query, key = torch.randn(2, 1, max(SIDE), WIDTH, generator=generator)
    return query[:, : state.n], key[:, : state.m]


def _mask(state: State) -> masks.Mask | None:
    mask = None
    for rule in state.rules:
        term = _mask_of_rule(rule, state)
        term = ~term if rule.negate else term
        mask = term if mask is None else mask & term if rule.join == "and" else mask | term
    return mask


def _mask_of_rule(rule: Rule, state: State) -> masks.Mask:
    align = cast("Align | None", state.align)
    match rule.kind:
        case "causal":
            return masks.causal(align)
        case "window":
            return masks.window(rule.left, rule.right, align)
        case "prefix":
            return masks.prefix(rule.length)
        case "padding":
            return masks.padding(torch.tensor([rule.length]))
        case "segments":
            size = max(rule.length, 1)
            return masks.segments(torch.arange(state.n) // size, torch.arange(state.m) // size)
    drawn = torch.rand(state.n, state.m, generator=torch.Generator().manual_seed(rule.seed))
    return masks.allow(drawn < rule.share)


def _recipe(state: State, query: Queries, key: Keys) -> dict[str, Any]:
    sees = attention.future_only_mask(state.n, state.m)
    filled = score_matrix(scores.scaled_dot(), query[0], key[0]).masked_fill(~sees, -torch.inf)
    weights = Weights(query, key, mask=masks.allow(sees))
    intended = masks.causal(None if state.n == state.m else "bottom-right")
    return {
        "visible": sees,
        "torch": torch.softmax(filled, -1),  # as the recipe has it
        "regard": weights.dense()[0],
        "empty": weights.empty_rows()[0].nonzero().flatten(),
        "causal": Weights(query, key, mask=intended).dense()[0] if state.n <= state.m else None,
    }


def _refusal(query: Queries, key: Keys, visible: Bool[Tensor, "queries keys"]) -> str:
    try:
        attend(query, key, key, mask=visible)  # pyright: ignore[reportArgumentType]  that is the point
    except MaskError as error:
        return str(error)
    return ""


def code(state: State) -> str:
    """Python code that computes `weights`."""
    mask = _expression(state)
    lines = [
        "import torch",
        "import regard as rg",
        "from regard import masks",
        "",
        f"generator = torch.Generator().manual_seed({state.seed})",
        f"query, key = torch.randn(2, 1, {max(SIDE)}, {WIDTH}, generator=generator)",
        f"query, key = query[:, :{state.n}], key[:, :{state.m}]",
        f"mask = {mask or None}",
        "output, weights = rg.attend(query, key, key, mask=mask)",
        "print(weights.dense())",
    ]
    return "\n".join(lines) + "\n"


def _expression(state: State) -> str:
    text, last = "", ""
    for rule in state.rules:
        one = f"{'~' * rule.negate}masks.{_rule_code(rule, state)}"
        sign = "&" if rule.join == "and" else "|"
        if last not in ("", sign):  # rules apply from left to right, but & binds tighter than | in Python
            text = f"({text})"
        text, last = (f"{text} {sign} {one}", sign) if text else (one, "")
    return text


def _rule_code(rule: Rule, state: State) -> str:
    align = "" if state.align is None else f'"{state.align}"'
    match rule.kind:
        case "causal":
            return f"causal({align})"
        case "window":
            return f"window({rule.left}, {rule.right}{align and f', {align}'})"
        case "prefix":
            return f"prefix({rule.length})"
        case "padding":
            return f"padding(torch.tensor([{rule.length}]))"
        case "segments":
            size = max(rule.length, 1)
            return f"segments(torch.arange({state.n}) // {size}, torch.arange({state.m}) // {size})"
    generator = f"torch.Generator().manual_seed({rule.seed})"
    return f"allow(torch.rand({state.n}, {state.m}, generator={generator}) < {literal(rule.share)})"
