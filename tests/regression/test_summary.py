"""`model.summary()`: the numbers of a fit, as text, as HTML and as pandas."""

import numpy as np
import pandas as pd

import regard as rg

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"面积": RNG.normal(size=60), "luck": RNG.normal(size=60), "town": RNG.choice(["a", "b"], 60)})
PRICE = (TABLE["面积"] + RNG.normal(0, 0.1, 60)).rename("price")


def fitted(**options):
    model = rg.NadarayaWatson(bandwidth=[0.5, np.inf, 0.5], categorical=["town"], **options)
    return model.fit(TABLE, PRICE)


def test_a_summary_collects_what_is_there():
    model = fitted()
    summary = model.summary()
    assert [row.bandwidth for row in summary.features] == [0.5, np.inf, 0.5]
    assert summary.loo_score == model.loo_score_ and summary.effective_df == model.effective_df()
    assert (summary.target, summary.rows, summary.kernel, summary.degree) == ("price", 60, "gaussian", 0)
    assert summary.to_pandas().loc["luck", "bandwidth"] == np.inf


def test_its_text_is_what_a_terminal_shows():
    lines = repr(fitted().summary()).splitlines()
    assert lines[:6] == [
        "price from 面积, luck, town",
        "",
        "feature  bandwidth",
        "面积           0.5",
        "luck           inf  inf = does not matter",
        "town           0.5  lambda (2 categories, up to 0.5) = does not matter",
    ]
    assert lines[7:10] == [
        "points                        60",
        "kernel                        gaussian",
        "degree                        0, local constant",
    ]
    assert "inf = a straight line" in repr(fitted(degree=1).summary())


def test_html_is_escaped_and_many_features_are_cut():
    names = [f"<b>{i}" for i in range(200)]
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 200)), columns=names)
    summary = rg.NadarayaWatson(bandwidth=9.0).fit(wide, wide["<b>0"]).summary()
    assert "<b>" not in summary._repr_html_() and "&lt;b&gt;0" in summary._repr_html_()
    for shown in (repr(summary), summary._repr_html_()):
        assert "and 150 more" in shown and len(shown) < 10_000
    assert len(summary.features) == 200


def test_what_is_not_known_is_said(tmp_path):
    alone = rg.NadarayaWatson(bandwidth=1.0).fit([[1.0]], [2.0]).summary()
    assert alone.loo_score is None and "none: not every row is predicted by the others" in repr(alone)
    TABLE[["luck"]].assign(price=PRICE).to_parquet(tmp_path / "t.parquet")
    summary = rg.NadarayaWatson(bandwidth=1.0).fit(str(tmp_path / "t.parquet"), "price").summary()
    assert summary.effective_df is None and "none: the data is not in memory" in repr(summary)
    assert np.isfinite(summary.loo_score)
