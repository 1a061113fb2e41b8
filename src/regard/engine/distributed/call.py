"""A call on sharded tensors: the parts of this rank, checks, and the agreement of all ranks on what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from regard.engine import inputs, pooling
from regard.engine.distributed import plan, ring
from regard.engine.distributed.agreement import agree, describe_spec
from regard.engine.distributed.layout import Layout
from regard.engine.distributed.rectangle import Formula, learned_tensors
from regard.engine.distributed.sharded import Shared, shared_of
from regard.engine.distributed.transport import Transport
from regard.engine.inputs import MatrixShape
from regard.engine.plan import scores_per_tile
from regard.errors import DistributedError, PlanError, RegardError
from regard.operands import Size, is_sharded
from regard.spec import Spec

PLANS = ("auto", "ring", "heads")


@dataclass(slots=True, eq=False)
class Call:
    """A call whose inputs have been checked: this rank's parts, their layouts, and the shape of the whole matrix."""

    mesh: DeviceMesh
    transport: Transport
    spec: Spec
    shape: MatrixShape
    q: Shared
    k: Shared
    v: Shared | None
    budget: int
    dropout_p: float

    @property
    def grad(self) -> bool:
        """True if a gradient is wanted."""
        tensors = [self.q.local, self.k.local, *self.spec.tensors().values()]
        tensors += [] if self.v is None else [self.v.local]
        return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)

    def job(self, seed: int | None = None) -> ring.Job:
        """The job of this rank for the ring."""
        shape, local = self.shape, inputs.upcast(self.q.local)
        size = Size(shape.n, shape.m, local.device)
        tile_scores = scores_per_tile(self.budget, local.element_size(), grad=self.grad)
        learned = torch.is_grad_enabled() and bool(learned_tensors(self.spec))
        seeds = None if seed is None else torch.tensor([seed], device=local.device)
        formula = Formula(self.spec, shape.lead, size, tile_scores, learned, self.dropout_p, seeds)
        whole, rows, cols = formula.whole(), self.q.layout, self.k.layout
        steps = plan.ring_plan(whole, size, rows, cols, self.transport.rank)
        return ring.Job(formula, steps, self.transport, shape.group, local.shape[-2], rows is None, cols is None, whole)

    def describe(self) -> dict[str, str]:
        """A description of what this rank asks for, to be compared with the others."""
        told = {
            "shape": f"{(*self.shape.lead, self.shape.n, self.shape.m)}",
            "dtype": f"{self.q.local.dtype}",
            "gradient": f"{self.grad}",
            "dropout_p": f"{self.dropout_p}",
            "budget": f"{self.budget}",
        }
        for name, part in (("query", self.q), ("key", self.k), ("value", self.v)):
            if part is not None:
                layout = "whole on every rank" if part.layout is None else f"{part.layout.name} {part.layout.runs}"
                sizes = [*part.local.shape[:-2], part.local.shape[-1]]
                told[name] = f"{sizes} in the layout {layout}"
        return told | describe_spec(self.spec)


def prepare(
    named: Mapping[str, Tensor], spec: Spec, dropout_p: float, forced: str, budget: int | None
) -> tuple[Call, str, str, int | None]:
    """The checked call, its executor with the reason, and the seed of dropout: the same on every rank.

    A rank whose call is refused tells the others, so that none of them waits for it.
    """
    meshes = {t.device_mesh for t in named.values() if isinstance(t, DTensor)}
    if len(meshes) != 1:
        raise DistributedError("query, key and value must be sharded over one mesh, but they are on several")
    (mesh,) = meshes
    transport = Transport.of_mesh(mesh)
    seed = int(pooling.dropout_seed(torch.device("cpu"))) if dropout_p else 0
    try:
        call = checked(mesh, transport, named, spec, dropout_p, forced, budget)
        counts = (call.shape.lead[-1], call.shape.lead[-1] // call.shape.group) if call.shape.lead else (0, 0)
        shared = None in (call.q.layout, call.k.layout)
        executor, reason = plan.choose(
            spec, forced, (0, 0) if shared else counts, transport.world, dropout=dropout_p > 0
        )
        if not executor:
            raise PlanError(f"plan='heads' cannot serve {spec}: {reason}; plan='auto' would")
    except RegardError as error:
        try:
            agree(transport, {"error": f"{type(error).__name__}: {error}".replace("\n", " ")})
        except DistributedError:
            raise error from None
        raise
    agreed = agree(transport, call.describe() | {"plan": executor}, seed)
    return call, executor, reason, agreed if dropout_p else None


def checked(
    mesh: DeviceMesh,
    transport: Transport,
    named: Mapping[str, Tensor],
    spec: Spec,
    dropout_p: float,
    forced: str,
    budget: int | None,
) -> Call:
    """The call after all checks that one rank can make."""
    query, key, value = named["query"], named["key"], named.get("value")
    shape = inputs.check(query, key, value, spec)
    if value is not None and inputs.has_extra_lead(shape, value):
        raise DistributedError(
            f"values {tuple(value.shape)} have leading dimensions that the weights {shape.lead} lack: over several "
            "processes they need those of the weights, or 1"
        )
    limit = inputs.check_options(dropout_p, "auto" if forced in PLANS else forced, budget)
    if forced not in PLANS:
        raise PlanError(f"plan={forced!r} is for one process; over several it is 'auto', 'ring' or 'heads'")
    if any(is_sharded(tensor) for tensor in spec.all_tensors()):
        raise DistributedError("tensors of masks and scores are whole on every rank: gather those that are sharded")
    q, k = shared_of(query, -2, "query"), shared_of(key, -2, "key")
    v = None if value is None else shared_of(value, -2, "value")
    if v is not None and v.layout != k.layout:
        raise DistributedError(
            f"keys and values must share one layout, but that of key is {_name(k.layout)} and that of value "
            f"{_name(v.layout)}"
        )
    for name, part, length in (("query", q, shape.n), ("key", k, shape.m), ("value", v, shape.m)):
        if part is not None:
            expected = length if part.layout is None else part.layout.size(transport.rank)
            if part.local.shape[-2] != expected:
                raise DistributedError(
                    f"{name} has {part.local.shape[-2]} rows on rank {transport.rank}, but its layout gives it "
                    f"{expected} of {length}"
                )
    return Call(mesh, transport, spec, shape, q, k, v, limit, dropout_p)


def _name(layout: Layout | None) -> str:
    """A layout in the words of an error."""
    return "the whole on every rank" if layout is None else repr(layout.name)
