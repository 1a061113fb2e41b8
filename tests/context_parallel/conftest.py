"""Two gloo processes for the tests of this folder."""

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def two_ranks():
    with Ranks(2) as ranks:
        yield ranks


@pytest.fixture(scope="session", params=[1, 3, 4])
def more_ranks(request):
    with Ranks(request.param) as ranks:
        yield ranks
