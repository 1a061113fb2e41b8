"""A head as a page in one file, which asks nobody for anything and stays small at any length."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from rich.filesize import decimal

if TYPE_CHECKING:
    from torch import Tensor

    from regard.cli._export import Chosen

EXACT = 512  # up to this many tokens every weight is in the page, beyond them maps of as many bins
PAIRS = 2**17  # strongest weights that are in the page, of all queries together
MOST = 12  # of one query
TEXTS = 2**20  # bytes of tokens; a text beyond them is told by positions
PLACE = "{{data}}"


def write(chosen: Chosen, file: BinaryIO, lang: str) -> str:
    before, _, after = files("regard.cli").joinpath("export.html").read_text(encoding="utf-8").partition(PLACE)
    size = file.write(f"{before}{embedded(data(chosen, lang))}{after}".encode())
    n, m = chosen.shape
    kept = "every weight" if max(n, m) <= EXACT else f"{EXACT} x {EXACT} bins and the strongest weights of each query"
    return f": {n:,} x {m:,}, {kept}, {decimal(size)}"


def embedded(value: Any) -> str:
    r"""JSON in which no browser finds the end of the script, or any other tag.

    >>> print(embedded(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def data(chosen: Chosen, lang: str) -> dict[str, Any]:
    n, m = chosen.shape
    keys, queries = (_fitting(chosen.tokens(keys=which)) for which in (True, False))
    return {
        "lang": lang,
        "about": chosen.recording.about,
        "layer": chosen.layer.name,
        "head": chosen.head,
        "step": chosen.step if len(chosen.layer.steps) > 1 else None,
        "mask": chosen.layer.mask,
        "cross": chosen.layer.cross,
        "n": n,
        "m": m,
        "keys": keys,
        "queries": "as keys" if queries == keys else queries,
        **(_exact(chosen) if max(n, m) <= EXACT else _pooled(chosen)),
    }


def _exact(chosen: Chosen) -> dict[str, Any]:
    cells = chosen.weights[(*chosen.at, slice(None), slice(None))]
    return {"shape": list(cells.shape), "maps": {"exact": _halves(cells)}, "top": None}


def _pooled(chosen: Chosen) -> dict[str, Any]:
    weights, at = chosen.weights, chosen.at
    maps = {pool: weights.heatmap(EXACT, pool)[at] for pool in ("mean", "max")}
    count = min(MOST, PAIRS // chosen.shape[0], chosen.shape[1])
    top = None
    if count:
        values, indices = weights.top(count)
        places = indices[at].cpu().numpy().astype("<i4")
        top = {"count": count, "values": _halves(values[at]), "keys": _text(places)}
    return {"shape": list(maps["mean"].shape), "maps": {pool: _halves(map_) for pool, map_ in maps.items()}, "top": top}


def _fitting(tokens: list[str] | None) -> list[str] | None:
    return tokens if tokens is not None and len(embedded(tokens)) <= TEXTS else None


def _halves(cells: Tensor) -> str:
    """Three digits of each weight, in two bytes."""
    return _text(cells.float().cpu().numpy().astype("<f2"))


def _text(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()
