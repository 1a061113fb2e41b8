"""An ordinary prediction visits few files: special cases are decided once, before the numbers are computed."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import regard as rg

PACKAGE = Path(rg.__file__).parent
MOST_FILES = 12


def files_visited(call):
    """Files of the package, below its folder, in which a function runs during `call()`, in any thread."""
    visited = set()

    def record(frame, event, _argument):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                visited.add(str(path.relative_to(PACKAGE)))

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return visited


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 2))
    model = rg.NadarayaWatson().fit(X, np.sin(X[:, 0]) + random.normal(size=4000))
    model.predict(X)  # what is computed once, such as caches, is no part of the path
    return model, X


def test_a_second_predict_runs_in_few_files(fitted):
    model, X = fitted
    visited = files_visited(lambda: model.predict(X))
    assert "regression/estimator.py" in visited  # the count can see what runs
    assert len(visited) <= MOST_FILES, sorted(visited)


@pytest.mark.parametrize("special", ["validation", "encoding", "out_of_core", "clamp", "persistence", "pandas_output"])
def test_special_cases_are_not_visited(fitted, special):
    model, X = fitted
    assert not [path for path in files_visited(lambda: model.predict(X)) if special in path]


def test_a_far_query_is_noticed(fitted):
    model, X = fitted
    far = np.concatenate([X[:3], [[1e200, 0.0]]])
    assert "regression/kernel_sums/clamp.py" in files_visited(lambda: model.predict(far))
