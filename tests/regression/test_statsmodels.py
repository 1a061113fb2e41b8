"""statsmodels' KernelReg is the judge: the same curve at the same bandwidth."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_diabetes
from statsmodels.nonparametric.kernel_regression import KernelReg

import regard as rg


def series(values):
    return np.arange(len(values), dtype=float)[:, None], np.asarray(values, dtype=float)


def load(name):
    if name == "diabetes":
        x, y = load_diabetes(return_X_y=True)
        return x[:, [2, 3, 8]], y
    frame = getattr(sm.datasets, name).load_pandas().data.dropna()
    if name == "engel":
        return frame[["income"]].to_numpy(), frame["foodexp"].to_numpy()
    return series(frame[{"co2": "co2", "nile": "volume", "sunspots": "SUNACTIVITY"}[name]])


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", ["engel", "co2", "nile", "sunspots", "diabetes"])
@pytest.mark.parametrize(("degree", "kind"), [(0, "lc"), (1, "ll")])
@pytest.mark.parametrize("narrow", [1.0, 0.5])
def test_predictions_equal_those_of_statsmodels(name, degree, kind, narrow):
    x, y = load(name)
    width = x.std(0) * len(x) ** (-1 / (4 + x.shape[1])) * narrow
    judge = KernelReg(y, x, "c" * x.shape[1], reg_type=kind, bw=width)
    query = np.concatenate([x[::7], x[:-1:11] + np.diff(x, axis=0)[::11] / 2])
    expected = judge.fit(query)[0]
    model = rg.NadarayaWatson(bandwidth=width, degree=degree).fit(x, y)
    np.testing.assert_allclose(model.predict(query), expected, rtol=1e-10, atol=0)
