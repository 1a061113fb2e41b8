"""The numbers of a fit as a table: bandwidths with their meaning, leave-one-out R², effective degrees of freedom."""

from __future__ import annotations

import math
from html import escape
from typing import Any, NamedTuple

import numpy as np

from regard.display.html_table import html_table
from regard.display.text_table import aligned_lines
from regard.regression.encoding import largest_lambda

DEGREES = {0: "0, local constant", 1: "1, local linear"}
INFINITE_BANDWIDTH = {0: "inf = does not matter", 1: "inf = a straight line"}  # by degree
MAX_ROWS = 50  # features that are shown; the others are in `features`


class FeatureBandwidth(NamedTuple):
    """Bandwidth of one feature, lambda for categories, and what it means where that is worth a word."""

    feature: str
    bandwidth: float
    meaning: str


class Summary(NamedTuple):
    """The numbers of a fit, to read on, and as a table in text or HTML to look at."""

    target: str
    features: tuple[FeatureBandwidth, ...]
    rows: int
    kernel: str
    degree: int
    loo_score: float | None  # None: not every row is predicted by the others
    effective_df: float | None  # None: the data is not in memory
    plan: str

    @property
    def title(self) -> str:
        """The target and the features."""
        more = f" and {len(self.features) - MAX_ROWS} more" if len(self.features) > MAX_ROWS else ""
        return f"{self.target} from {', '.join(row.feature for row in self.features[:MAX_ROWS])}{more}"

    def facts(self) -> dict[str, str]:
        """Everything but the bandwidths, as texts by name."""
        r2 = "none: not every row is predicted by the others" if self.loo_score is None else f"{self.loo_score:.4f}"
        df = "none: the data is not in memory" if self.effective_df is None else f"{self.effective_df:.1f}"
        return {
            "points": f"{self.rows:,}",
            "kernel": self.kernel,
            "degree": DEGREES[self.degree],
            "R² by leave-one-out": r2,
            "effective degrees of freedom": df,
            "plan": self.plan,
        }

    def to_pandas(self) -> Any:
        """Bandwidths as a DataFrame, one row for each feature."""
        import pandas as pd

        return pd.DataFrame(self.features).set_index("feature")

    def _shown(self) -> list[tuple[str, str, str]]:
        """Bandwidths as texts, below the names of the columns."""
        rows = [(name, f"{width:.4g}", meaning) for name, width, meaning in self.features[:MAX_ROWS]]
        more = [("...", "", f"and {len(self.features) - MAX_ROWS} more")] if len(self.features) > MAX_ROWS else []
        return [("feature", "bandwidth", ""), *rows, *more]

    def __repr__(self) -> str:
        bandwidths = aligned_lines(self._shown(), is_text=(True, False, True))
        facts = aligned_lines(list(self.facts().items()), is_text=(True, True))
        return "\n".join(line.rstrip() for line in (self.title, "", *bandwidths, "", *facts))

    def _repr_html_(self) -> str:
        bandwidths = html_table(self._shown(), is_text=(True, False, True), heading=True)
        facts = html_table(list(self.facts().items()), is_text=(True, True))
        return f"<div><strong>{escape(self.title)}</strong>{bandwidths}{facts}</div>"


def summarise(model: Any) -> Summary:
    """Return the summary of a fitted estimator. Leave-one-out takes a while for many rows, if it is not done yet."""
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{i}" for i in range(model.n_features_in_)] if names is None else names
    widths = zip(names, model.bandwidth_.tolist(), strict=True)
    targets = [str(name) for name in model.target_names_ or () if name is not None]
    return Summary(
        ", ".join(targets) or "y",
        tuple(FeatureBandwidth(str(name), width, _meaning(model, i, width)) for i, (name, width) in enumerate(widths)),
        model.n_samples_fit_,
        model.kernel if isinstance(model.kernel, str) else model.kernel.name,
        model.degree,
        _loo_score(model),
        model.effective_df() if model.blocks_ is None else None,
        str(model.plan_),
    )


def _meaning(model: Any, column: int, bandwidth: float) -> str:
    categories = model.categories_.get(column)
    if categories is None:
        return "" if math.isfinite(bandwidth) else INFINITE_BANDWIDTH[model.degree]
    largest = largest_lambda(categories)
    meaning = " = does not matter" if bandwidth >= largest else " = only the same counts" if bandwidth == 0 else ""
    return f"lambda ({len(categories)} categories, up to {largest:.4g}){meaning}"


def _loo_score(model: Any) -> float | None:
    try:
        score = model.loo_score_
    except ValueError:  # a single row, or rows out of reach of all others
        return None
    return score if np.isfinite(score) else None
