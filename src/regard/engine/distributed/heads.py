"""Attention after an exchange of heads: each rank gets all rows of some heads, and gives back its rows of all heads."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine import inputs, pooling
from regard.engine.distributed.layout import Layout
from regard.engine.distributed.rectangle import learned_tensors
from regard.engine.distributed.ring import Job, refuse_second_derivative
from regard.engine.distributed.sharded import Shared
from regard.engine.distributed.transport import Transport
from regard.engine.lazy_matrix import LazyMatrix
from regard.engine.plan_cache import PlannedCall, plan_for
from regard.engine.versions import map_tensors
from regard.operands import Axis, Operand
from regard.spec import Spec


def to_heads(
    local: Float[Tensor, "... heads rows dim"], layout: Layout, transport: Transport, step: str
) -> Float[Tensor, "... own_heads length dim"]:
    """All rows, in the order of positions, of this rank's share of the heads. Without a graph."""
    shares = local.tensor_split(transport.world, -3)
    lengths = [layout.size(rank) for rank in range(transport.world)]
    own = shares[transport.rank]
    shapes = [(*own.shape[:-2], length, own.shape[-1]) for length in lengths]
    return layout.join(_exchange(list(shares), shapes, transport, step), -2)


def to_rows(
    whole: Float[Tensor, "... own_heads length dim"], layout: Layout, transport: Transport, step: str
) -> Float[Tensor, "... heads rows dim"]:
    """This rank's rows of all heads, the reverse of `to_heads`. Without a graph."""
    shares = [layout.take(whole, -2, rank) for rank in range(transport.world)]
    own = shares[transport.rank]
    return torch.cat(_exchange(shares, [own.shape] * transport.world, transport, step), -3)


def _exchange(
    shares: list[Tensor], shapes: list[tuple[int, ...]] | list[torch.Size], transport: Transport, step: str
) -> list[Tensor]:
    """Each rank's share for this rank, in the order of ranks."""
    arrived: list[Tensor] = [shares[transport.rank]] * transport.world
    like = arrived[0]
    messages, sent = [], []
    for hop in range(1, transport.world):
        after, before = (transport.rank + hop) % transport.world, (transport.rank - hop) % transport.world
        if shares[after].numel():
            sent.append(transport.send(shares[after], after, step))
        message = (
            transport.receive(shapes[before], like.dtype, like.device, before, step) if _count(shapes[before]) else None
        )
        messages.append((before, message, shapes[before]))
    for before, message, shape in messages:
        arrived[before] = like.new_empty(tuple(shape)) if message is None else message.wait()
    for message in sent:
        message.wait()
    return arrived


def _count(shape: tuple[int, ...] | torch.Size) -> int:
    """The number of entries of a shape."""
    return torch.Size(shape).numel()


class ExchangeHeads(torch.autograd.Function):
    """`to_heads`, or `to_rows` where `back` is True; the gradient goes the other way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layout: Layout, transport: Transport, back: bool) -> Tensor:
        ctx.layout, ctx.transport, ctx.back = layout, transport, back
        return (to_rows if back else to_heads)(x, layout, transport, "exchange of heads")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        refuse_second_derivative()
        way = to_heads if ctx.back else to_rows
        return way(grad.contiguous(), ctx.layout, ctx.transport, "backward: exchange of heads"), None, None, None


class SumGradient(torch.autograd.Function):
    """A tensor that every rank has; its gradient is summed over ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, transport: Transport) -> Tensor:
        ctx.transport = transport
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        refuse_second_derivative()
        return ctx.transport.all_reduce(grad, "backward: learned tensors"), None


def attend(
    job: Job, q: Shared, k: Shared, v: Shared, draws: Float[Tensor, "*batch queries 1"] | None
) -> Float[Tensor, "*batch rows dim_v"]:
    """The output for the queries of this rank: whole rows of its share of the heads, then its rows of all heads."""
    transport = job.transport
    lead = job.formula.lead
    rows, keys, values = (
        ExchangeHeads.apply(_with_heads(part.local, job.group if i else 1, lead), part.layout, transport, False)
        for i, part in enumerate((q, k, v))
    )
    count = lead[-1] // transport.world
    own = range(transport.rank * count, (transport.rank + 1) * count)
    spec = _spec_of_heads(job, own)
    query, key, value = (inputs.upcast(t) for t in (rows, keys, values))  # pyright: ignore[reportArgumentType]
    key, value = (inputs.repeat_key_heads(t, job.group) for t in (key, value))
    shape = inputs.check(query, key, value, spec)
    chosen = None
    if draws is not None:
        drawn = (Operand(draws.narrow(-3, own.start, count), Axis.QUERY),)
        call = PlannedCall(spec, shape, plan_for(query, key, spec, shape, "auto", inputs.BUDGET, value), inputs.BUDGET)
        chosen = LazyMatrix.of_call(query.detach(), key.detach(), call, None, drawn).draws
    plan = plan_for(query, key, spec, shape, "auto", inputs.BUDGET, value)
    out = pooling.pool(spec, query, key, value, shape.lead, plan, draws=chosen)[0]
    out = out.expand(*shape.lead, *out.shape[-2:]).to(q.local.dtype)
    return ExchangeHeads.apply(out, q.layout, transport, True)  # pyright: ignore[reportReturnType]


def _with_heads(x: Tensor, group: int, lead: tuple[int, ...]) -> Tensor:
    """The tensor with its axis of heads, which an input that broadcasts may lack."""
    heads = lead[-1] // group
    if x.dim() >= 3 and x.shape[-3] == heads:
        return x
    shape = (*(x.shape[:-3] if x.dim() > 3 else ()), heads, *x.shape[-2:])
    return x.expand(shape)


def _spec_of_heads(job: Job, heads: range) -> Spec:
    """The formula for some heads; the gradients of its learned tensors are summed over ranks."""
    spec = job.formula.spec
    if job.formula.learned:
        summed = {id(t): SumGradient.apply(t, job.transport) for t in learned_tensors(spec)}
        score = map_tensors(spec.score, lambda tensor: summed.get(id(tensor), tensor))
        spec = Spec(score, spec.mask, spec.normaliser)
    return spec.of_heads(list(heads))
