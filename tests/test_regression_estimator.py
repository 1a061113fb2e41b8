"""NadarayaWatson as a scikit-learn regressor, and as the attention that it is."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import regard as rg


@parametrize_with_checks([rg.NadarayaWatson()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
