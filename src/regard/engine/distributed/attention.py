"""`attend` on sharded tensors: the executor, and the output and the weights as tensors that are sharded too."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.engine import inputs
from regard.engine.distributed import heads, plan, ring
from regard.engine.distributed.call import Call, prepare
from regard.engine.distributed.matrix import ShardedMatrix
from regard.engine.distributed.sharded import from_local
from regard.engine.lazy_matrix import LazyMatrix
from regard.engine.plan_cache import PlannedCall
from regard.errors import DistributedError
from regard.spec import Spec


def attend(
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    spec: Spec,
    dropout_p: float,
    forced: str,
    budget: int | None,
) -> tuple[Float[Tensor, "... queries dim_v"], LazyMatrix]:
    """The output, sharded as the query is, and the lazy matrix, which spans the processes. Differentiable once."""
    named = {"query": query, "key": key, "value": value}
    call, executor, reason, seed = prepare(named, spec, dropout_p, forced, budget)
    if call.v is None:
        raise DistributedError("attention over several processes needs values")
    job = call.job(seed)
    draws = ring.row_draws(spec.normaliser, call.shape.lead, job.formula.size, inputs.upcast(call.q.local))
    kernel = "fused" if spec.score.obstacle(grad=call.grad) is None and not dropout_p else "tiled"
    printed = plan.describe(executor, reason, job.plan, job.formula.size, call.transport.world, kernel)
    own = None if draws is None else _own_rows(draws, call)
    if executor == "heads":
        output, statistic = heads.attend(job, call.q, call.k, call.v, draws), None
    else:
        output, statistic = ring.attend(job, call.q.local, call.k.local, call.v.local, own)
    planned = PlannedCall(spec, call.shape, printed, call.budget)
    matrix = ShardedMatrix.make(query, key, planned, call, statistic, own)
    if call.q.layout is not None:
        output = from_local(output, call.mesh, output.dim() - 2, call.q.layout)
    return output, matrix


def weights(query: Tensor, key: Tensor, spec: Spec, forced: str, budget: int | None) -> LazyMatrix:
    """The lazy matrix of sharded queries and keys, without values."""
    call, executor, reason, _ = prepare({"query": query, "key": key}, spec, 0.0, forced, budget)
    job = call.job()
    draws = ring.row_draws(spec.normaliser, call.shape.lead, job.formula.size, inputs.upcast(call.q.local))
    printed = plan.describe(executor, reason, job.plan, job.formula.size, call.transport.world, "tiled")
    own = None if draws is None else _own_rows(draws, call)
    return ShardedMatrix.make(query, key, PlannedCall(spec, call.shape, printed, call.budget), call, None, own)


def _own_rows(draws: Float[Tensor, "*batch queries 1"], call: Call) -> Float[Tensor, "*batch rows"]:
    """This rank's rows of the random numbers of all rows."""
    rows = draws if call.q.layout is None else call.q.layout.take(draws, -2, call.transport.rank)
    return rows.squeeze(-1)
