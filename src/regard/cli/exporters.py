"""File formats of `regard export`: a page (.html), arrays for numpy (.npz) and pictures (.png, .svg) of one head.

Each writer returns the end of the line that the command prints.
"""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from rich.filesize import decimal

if TYPE_CHECKING:
    from torch import Tensor

    from regard.cli.selectors import SelectedHead

# The page stays a few MB at any length.
PAGE_BINS = 512  # up to this many tokens the page holds every weight; beyond, maps of this many bins a side
PAGE_PAIRS = 2**17  # strongest weights in the page, of all queries together
PAGE_TOP = 12  # strongest weights of one query
PAGE_TOKEN_BYTES = 2**20  # a page with more text than this shows positions instead
PLACEHOLDER = "{{data}}"

NPZ_BYTES = 2**26  # all weights in float32 up to this size, else a map of them
NPZ_BINS, NPZ_TOP = 1024, 8  # bins along each side of that map; strongest keys of each query beside it

NAMED_TOKENS = 100  # with more tokens the axes show positions: every twentieth word would say less
LABELS = {"en": ("Key", "Query", "head"), "zh": ("键", "查询", "头")}
MIN_INCHES, MAX_INCHES = 5.6, 10.0  # side of a picture
INCHES_PER_TOKEN, MARGIN_INCHES = 0.16, 3.2  # every token of a short text has its label


def write_page(head: SelectedHead, file: BinaryIO, lang: str) -> str:
    """Write a page to zoom into, in one file that loads nothing from elsewhere."""
    before, _, after = files("regard.cli").joinpath("export.html").read_text(encoding="utf-8").partition(PLACEHOLDER)
    size = file.write(f"{before}{script_json(page_data(head, lang))}{after}".encode())
    n, m = head.shape
    is_exact = max(n, m) <= PAGE_BINS
    kept = "every weight" if is_exact else f"{PAGE_BINS} x {PAGE_BINS} bins and the strongest weights of each query"
    return f": {n:,} x {m:,}, {kept}, {decimal(size)}"


def script_json(value: Any) -> str:
    r"""Write JSON that is safe inside a <script>: it contains no tag that a browser could see.

    >>> print(script_json(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(head: SelectedHead, lang: str) -> dict[str, Any]:
    """Return everything that the page shows, ready for JSON."""
    n, m = head.shape
    keys, queries = (_page_tokens(head.tokens(keys=which)) for which in (True, False))
    return {
        "lang": lang,
        "about": head.recording.about,
        "layer": head.layer.name,
        "head": head.head,
        "step": head.step if len(head.layer.steps) > 1 else None,
        "mask": head.layer.mask,
        "cross": head.layer.cross,
        "n": n,
        "m": m,
        "keys": keys,
        "queries": "as keys" if queries == keys else queries,
        **(_page_weights(head) if max(n, m) <= PAGE_BINS else _page_maps(head)),
    }


def _page_tokens(tokens: list[str] | None) -> list[str] | None:
    return tokens if tokens is not None and len(script_json(tokens)) <= PAGE_TOKEN_BYTES else None


def _page_weights(head: SelectedHead) -> dict[str, Any]:
    cells = _all_weights(head)
    return {"shape": list(cells.shape), "maps": {"exact": _float16_base64(cells)}, "top": None}


def _page_maps(head: SelectedHead) -> dict[str, Any]:
    weights, at = head.weights, head.batch_index
    maps = {pool: weights.heatmap(PAGE_BINS, pool)[at] for pool in ("mean", "max")}
    count = min(PAGE_TOP, PAGE_PAIRS // head.shape[0], head.shape[1])
    top = None
    if count:
        values, indices = weights.top(count)
        keys = indices[at].cpu().numpy().astype("<i4")
        top = {"count": count, "values": _float16_base64(values[at]), "keys": _base64(keys)}
    encoded = {pool: _float16_base64(cells) for pool, cells in maps.items()}
    return {"shape": list(maps["mean"].shape), "maps": encoded, "top": top}


def _float16_base64(cells: Tensor) -> str:
    """Encode weights in two bytes each, which keeps three digits."""
    return _base64(_float_array(cells).astype("<f2"))


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def write_arrays(head: SelectedHead, file: BinaryIO) -> str:
    """Write arrays for numpy.

    They are `weights` (n, m); if those are too many, `heatmap` and `heatmap_max` with the edges of their bins,
    and the strongest keys of each query.
    """
    n, m = head.shape
    arrays = _described(head)
    if 4 * n * m <= NPZ_BYTES:
        arrays["weights"] = _float_array(_all_weights(head))
        note = f": all {n:,} x {m:,} weights"
    else:
        arrays |= _array_maps(head)
        rows, columns = arrays["heatmap"].shape
        note = (
            f": {n:,} x {m:,} weights are more than {NPZ_BYTES // 2**20} MiB, so they are pooled to {rows} x {columns} "
            "(heatmap, heatmap_max; bins between query_edges and key_edges); "
            f"with the {NPZ_TOP} strongest keys of a query"
        )
    np.savez_compressed(file, **arrays)
    return note


def _described(head: SelectedHead) -> dict[str, Any]:
    """Return layer, step, head and tokens as JSON: a numpy array would give every text the longest one's length."""
    place = {"layer": head.layer.name, "step": head.step, "head": head.head, "sequence": head.sequence}
    tokens = {name: head.tokens(keys=name == "keys") for name in ("queries", "keys")}
    return {"about": np.array(json.dumps({**head.recording.about, **place})), "tokens": np.array(json.dumps(tokens))}


def _array_maps(head: SelectedHead) -> dict[str, np.ndarray]:
    weights, at = head.weights, head.batch_index
    top = weights.top(NPZ_TOP)
    n, m = head.shape
    return {
        "heatmap": _float_array(weights.heatmap(NPZ_BINS)[at]),
        "heatmap_max": _float_array(weights.heatmap(NPZ_BINS, "max")[at]),
        "query_edges": _bin_edges(n),
        "key_edges": _bin_edges(m),
        "top_weights": _float_array(top.values[at]),
        "top_keys": top.indices[at].cpu().numpy(),
    }


def _bin_edges(count: int) -> np.ndarray:
    """Return the edges of the bins: bin b holds positions edges[b] to edges[b + 1] - 1."""
    bins = min(NPZ_BINS, count)
    return np.arange(bins + 1) * count // bins


def _all_weights(head: SelectedHead) -> Tensor:
    return head.weights[(*head.batch_index, slice(None), slice(None))]


def _float_array(tensor: Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()


def write_picture(head: SelectedHead, file: BinaryIO, format_: str, lang: str) -> str:
    """Draw the head as a heatmap."""
    from regard import plot

    xlabel, ylabel, head_label = LABELS[lang]
    longest = max(head.shape)
    side = min(max(MIN_INCHES, INCHES_PER_TOKEN * longest + MARGIN_INCHES), MAX_INCHES)
    picture = plot.Picture(figsize=(side, 0.9 * side), layout="compressed")
    title = head.layer.name if head.head is None else f"{head.layer.name}, {head_label} {head.head}"
    tokens = [None, None] if longest > NAMED_TOKENS else [head.tokens(keys=keys) for keys in (True, False)]
    # In a long text a few dark bins would leave the rest blank.
    scale = {"clip": 0.999, "gamma": 0.5} if longest > NAMED_TOKENS else {}
    options: Any = {"title": title, "xlabel": xlabel, "ylabel": ylabel, **scale}
    plot.heatmap(head.weights, *tokens, head=head.batch_index or None, ax=picture.add_subplot(), **options)
    picture.savefig(file, format=format_, dpi=150, bbox_inches="tight")
    return ""
