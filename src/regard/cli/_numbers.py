"""A head as arrays for numpy: all its weights where they fit, else a map of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from regard.cli._export import Chosen

LIMIT = 2**26  # bytes of weights in float32
BINS, TOP = 1024, 8


def write(chosen: Chosen, file: BinaryIO) -> str:
    """`weights` (n, m); or `heatmap` and `heatmap_max` with their bins, and the strongest keys of each query."""
    n, m = chosen.shape
    arrays = _about(chosen)
    if 4 * n * m <= LIMIT:
        arrays["weights"] = _array(chosen.weights[(*chosen.at, slice(None), slice(None))])
        said = f": all {n:,} x {m:,} weights"
    else:
        arrays |= _pooled(chosen)
        rows, columns = arrays["heatmap"].shape
        said = (
            f": {n:,} x {m:,} weights are more than {LIMIT // 2**20} MiB, so they are pooled to {rows} x {columns} "
            f"(heatmap, heatmap_max; bins between query_edges and key_edges); with the {TOP} strongest keys of a query"
        )
    np.savez_compressed(file, **arrays)
    return said


def _pooled(chosen: Chosen) -> dict[str, np.ndarray]:
    weights, at = chosen.weights, chosen.at
    top = weights.top(TOP)
    n, m = chosen.shape
    return {
        "heatmap": _array(weights.heatmap(BINS)[at]),
        "heatmap_max": _array(weights.heatmap(BINS, "max")[at]),
        "query_edges": _edges(n),
        "key_edges": _edges(m),
        "top_weights": _array(top.values[at]),
        "top_keys": top.indices[at].cpu().numpy(),
    }


def _edges(count: int) -> np.ndarray:
    """Bin b holds what stands from edge b up to, but without, edge b + 1."""
    bins = min(BINS, count)
    return np.arange(bins + 1) * count // bins


def _about(chosen: Chosen) -> dict[str, Any]:
    """Texts as JSON: an array of texts would take the length of the longest for each."""
    says = {"layer": chosen.layer.name, "step": chosen.step, "head": chosen.head, "sequence": chosen.sequence}
    tokens = {name: chosen.tokens(keys=name == "keys") for name in ("queries", "keys")}
    return {"about": np.array(json.dumps({**chosen.recording.about, **says})), "tokens": np.array(json.dumps(tokens))}


def _array(tensor: Any) -> np.ndarray:
    return tensor.float().cpu().numpy()
