"""`attend` on sharded tensors."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.engine.lazy_matrix import LazyMatrix
from regard.spec import Spec


def attend(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    spec: Spec,
    dropout_p: float,
    plan: str,
    budget: int | None,
) -> tuple[Float[Tensor, "... queries dim_v"], LazyMatrix]:
    """The output, sharded as the query is, and the lazy matrix, which spans the processes."""
    raise NotImplementedError
