"""A head as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from regard import plot

if TYPE_CHECKING:
    from regard.cli._export import Chosen

NAMED = 100  # tokens; in a longer text positions say more than every twentieth word
LABELS = {"en": ("Key", "Query", "head"), "zh": ("键", "查询", "头")}
SMALLEST, LARGEST = 5.6, 10.0  # inches
PER_TOKEN, BESIDE = 0.16, 3.2  # so that every token of a short text has its label


def write(chosen: Chosen, file: BinaryIO, kind: str, lang: str) -> str:
    xlabel, ylabel, head = LABELS[lang]
    longest = max(chosen.shape)
    side = min(max(SMALLEST, PER_TOKEN * longest + BESIDE), LARGEST)
    picture = plot.Picture(figsize=(side, 0.9 * side), layout="compressed")
    title = chosen.layer.name if chosen.head is None else f"{chosen.layer.name}, {head} {chosen.head}"
    tokens = [None, None] if longest > NAMED else [chosen.tokens(keys=keys) for keys in (True, False)]
    # In a long text a few dark bins would leave the rest blank.
    scale = {"clip": 0.999, "gamma": 0.5} if longest > NAMED else {}
    options: Any = {"title": title, "xlabel": xlabel, "ylabel": ylabel, **scale}
    plot.heatmap(chosen.weights, *tokens, head=chosen.at or None, ax=picture.add_subplot(), **options)
    picture.savefig(file, format=kind, dpi=150, bbox_inches="tight")
    return ""
