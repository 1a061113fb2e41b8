"""Shapes that broadcast: the same answer as torch's, with our own message for those that do not."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from regard.errors import CallError
from regard.operands import broadcast_shapes

SHAPES = st.lists(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple), max_size=4)


@given(SHAPES)
@example([])
@example([(), (3, 1), (1, 2)])
@example([(0,), (3,)])
def test_shapes_broadcast_as_in_torch(shapes):
    try:
        expected = tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        with pytest.raises(CallError):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(CallError, match=r"equal or 1 to broadcast, but the shapes are \(2, 3\), \(5,\)"):
        broadcast_shapes(torch.Size([2, 3]), (5,))


@pytest.mark.plain
@pytest.mark.parametrize("dynamic", [False, True])
def test_shapes_broadcast_in_compiled_code(dynamic):
    def expanded(x, y):
        return x.expand(broadcast_shapes(x.shape, y.shape))

    compiled = torch.compile(expanded, fullgraph=True, dynamic=dynamic, backend="eager")
    for rows in (2, 5, 7):
        assert compiled(torch.zeros(rows, 1), torch.zeros(3)).shape == (rows, 3)
