"""Two gloo processes for the tests of this folder."""

import pytest

from benchmarks.ranks import Ranks


@pytest.fixture(scope="session")
def two_ranks(tmp_path_factory):
    ranks = Ranks(2, tmp_path_factory.mktemp("two_ranks"))
    yield ranks
    ranks.close()


@pytest.fixture(scope="session", params=[1, 3, 4])
def more_ranks(request, tmp_path_factory):
    ranks = Ranks(request.param, tmp_path_factory.mktemp("more_ranks"))
    yield ranks
    ranks.close()
