"""The lazy matrix of weights that spans the processes: each question is one trip of the keys round the ring.

An answer with one entry for each query is sharded as the queries are; every other answer is whole on every rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.distributed.tensor import DTensor

from regard.engine import index, inputs, questions, versions
from regard.engine.distributed import ring
from regard.engine.distributed.agreement import agree
from regard.engine.distributed.call import Call, checked
from regard.engine.distributed.layout import Layout
from regard.engine.distributed.plan import Step
from regard.engine.distributed.rectangle import Formula, Operands, TiledRectangle, learned_tensors, weights_of
from regard.engine.distributed.row_questions import RowQuestion, ask
from regard.engine.distributed.sharded import from_local, gather, layout_of, local_rows, shard
from regard.engine.fold import Buffers
from regard.engine.lazy_matrix import FLOAT64_FROM_SCORE, LazyMatrix
from regard.engine.plan import TILE_SCORES
from regard.engine.plan_cache import PlannedCall
from regard.engine.reducers import (
    Block,
    Entropy,
    Heatmap,
    MeanDistance,
    MeanScore,
    Received,
    Reducer,
    SquaredWeight,
    VisibleKeys,
)
from regard.engine.tiles import Problem
from regard.errors import DistributedError, ShapeError, TooLargeError
from regard.normalisers import Softmax
from regard.operands import NEVER, Operand, Span, Tile
from regard.spec import Spec
from regard.tracing import without_autocast

MAX_BLOCK = 1 << 31  # bytes of the box of weights from which listed pairs are picked


@dataclass(slots=True, eq=False)
class ShardedMatrix(LazyMatrix):
    """Weights over several processes: this rank's queries and keys, and the row statistic of its queries."""

    shards: Call = None  # pyright: ignore[reportAssignmentType]  always given
    statistic: Float[Tensor, "*batch rows"] | None = None
    row_draws: Float[Tensor, "*batch rows"] | None = None  # random numbers of a normaliser that draws
    answers: dict[str, Any] | None = None  # of `overview`, once somebody has asked
    large: bool | None = None  # True if float32 would leave too few digits, once it is known

    @classmethod
    def make(
        cls,
        query: Tensor,
        key: Tensor,
        planned: PlannedCall,
        shards: Call,
        statistic: Tensor | None,
        draws: Tensor | None,
    ) -> ShardedMatrix:
        """The matrix of a call that has been checked."""
        named = {"query": shards.q.local, "key": shards.k.local, **planned.spec.tensors()}
        seen = versions.versions_of(named)
        held = None if statistic is None else statistic.detach()
        return cls(query, key, planned, seen, None, None, None, shards, held, draws)

    # Parts of it

    def _twin(self, query: Tensor, key: Tensor, spec: Spec, change: Callable[[Tensor], Tensor]) -> ShardedMatrix:
        """The matrix of other tensors, whose row statistic is a part of this one's, or a copy."""
        shards = checked(
            self.shards.mesh, self.shards.transport, {"query": query, "key": key}, spec, 0.0, "auto", self.call.budget
        )
        planned = PlannedCall(spec, shards.shape, self.call.plan, self.call.budget)
        statistic, draws = (None if t is None else change(t) for t in (self.statistic, self.row_draws))
        return ShardedMatrix.make(query, key, planned, shards, statistic, draws)

    def snapshot(self) -> ShardedMatrix:
        self.check_fresh()
        spec = versions.copy_tensors(self.spec, {})
        twin = self._twin(self.query.detach().clone(), self.key.detach().clone(), spec, lambda t: t)
        twin.answers = self.answers
        return twin

    def moved(self, change: Callable[[Tensor], Tensor]) -> ShardedMatrix:
        self.check_fresh()
        query, key, spec = (versions.map_tensors(part, change) for part in (self.query, self.key, self.spec))
        return self._twin(query, key, spec, change)

    def at(self, axis: int, index: int) -> ShardedMatrix:
        self.check_fresh()
        lead, group, key = len(self.lead), self.call.shape.group, self.key
        if group > 1 and axis == lead - 1:
            key = inputs.select_lead(key, axis, index // group, lead)
        elif group > 1 and lead + 1 < inputs.GROUPED_FROM:
            raise DistributedError("one sequence of a batch with shared key heads needs select(batch=, head=)")
        else:
            key = inputs.select_lead(key, axis, index, lead)
        query = inputs.select_lead(self.query, axis, index, lead)
        return self._twin(query, key, self.spec.at(axis, index, lead), lambda t: t.select(axis, index))

    def state(self) -> tuple[Any, ...]:
        raise DistributedError("weights over several processes cannot be pickled: gather queries and keys first")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise DistributedError for what needs the whole matrix on one rank."""
        raise DistributedError(
            "this needs the whole of the queries and keys on one rank: "
            "make the weights anew from regard.distributed.gather(query) and gather(key)"
        )

    problem: ClassVar[Any] = _refuse
    dense_with_graph: ClassVar[Any] = _refuse
    operands: ClassVar[Any] = _refuse
    precise_operands: ClassVar[Any] = _refuse

    # Trips

    def _agree(self, step: str) -> None:
        """Compare with the other ranks what is asked: a rank that asks for something else is noticed."""
        self.check_fresh()
        agree(self.shards.transport, {"question": step}, step=step)

    def _refuse_gradient(self, what: str) -> None:
        """Refuse a question whose answer would lack the gradient that one process would give."""
        if self.wants_gradient():
            raise DistributedError(
                f"{what} has no gradient over several processes: ask weights.detach() or under torch.no_grad() for "
                "the numbers; weights @ x and questions with one number for each query are differentiable"
            )

    def _job(self, spec: Spec | None = None) -> ring.Job:
        """The job of a question, without gradients and dropout."""
        with torch.no_grad():
            job = replace(self.shards, dropout_p=0.0).job()
        return replace(job, formula=replace(job.formula, spec=spec or self.spec, learned=False))

    def _precise(self) -> tuple[Tensor, Tensor]:
        """This rank's queries and keys, in float64 where float32 would leave too few digits, on all ranks alike."""
        q, k = (inputs.upcast(t.local.detach()) for t in (self.shards.q, self.shards.k))
        if q.dtype == torch.float32 and self._is_large():
            return q.double(), k.double()
        return q, k

    @torch.no_grad()
    def _is_large(self) -> bool:
        """True if a score may be so large that float32 leaves too few digits of a weight.

        The longest query and the longest key of each rank stand for all of its own.
        """
        if self.large is None:
            transport = self.shards.transport
            ends = [_longest(inputs.upcast(t.local.detach())) for t in (self.shards.q, self.shards.k)]
            q, k = (torch.cat(transport.all_gather(t, [t.shape] * transport.world, "size of scores")) for t in ends)
            score, size = self.spec.score, self.size
            rows, cols = q.new_zeros(1).expand(size.n, 1), q.new_zeros(1).expand(size.m, 1)
            sizes = [leaf.magnitude(*((rows, cols) if leaf.positional else (q, k))) for leaf in score.leaves()]
            self.large = not bool(sum(sizes, q.new_zeros(())) <= FLOAT64_FROM_SCORE)
        return self.large

    def _row_statistic(self, q: Tensor, k: Tensor) -> Float[Tensor, "*batch rows"]:
        """The row statistic of this rank's queries, found in a trip where it is not known with these digits."""
        exact = self.statistic is not None and (
            self.statistic.dtype in (q.dtype, torch.float64) or not isinstance(self.spec.normaliser, Softmax)
        )
        if not exact:
            self.statistic = ring.row_statistic(self._job(), q, k, self.row_draws, "row statistic")
        assert self.statistic is not None  # noqa: S101  it was found above
        return self.statistic

    def _whole_rows(self, local: Shaped[Tensor, "..."]) -> Tensor:
        """An answer with one entry for each query of this rank, sharded as the queries are."""
        layout = self.shards.q.layout
        return local if layout is None else from_local(local, self.shards.mesh, len(self.lead), layout)

    @torch.no_grad()
    def fold(self, reducers: Sequence[Reducer[Any]]) -> list[Any]:
        """The answers of several reducers from one trip of the keys; one more finds a row statistic that is missing."""
        self._agree("fold " + ", ".join(type(reducer).__name__ for reducer in reducers))
        with without_autocast():
            q, k = self._precise()
            statistic = self._row_statistic(q, k)
            job = self._job()
            formula = replace(job.formula, tile_scores=max(1, min(TILE_SCORES, self.call.budget // (3 * q.itemsize))))
            job = replace(job, formula=formula)
            buffers = Buffers(Problem(self.spec, self.lead, formula.size, q.dtype, nan_safe=False, operands=()))
            states = [r.empty(self.lead, q.shape[-2], formula.size, q.dtype) for r in reducers]

            def visit(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
                del tensors
                first, second = buffers.take(tuple(scores.shape))
                own = scores.data_ptr() == first.data_ptr()  # a score of positions alone has no heads
                out = second if own else None
                block = _block(rectangle, tile, scores, ring.rows_of(statistic, rectangle, tile), out)
                rows = rectangle.at.rows.pick(tile.rows)
                for number, reducer in enumerate(reducers):
                    states[number] = _updated(reducer, states[number], block, rows, tile)

            ring.visit_tiles(job, q, k, "questions", visit, buffers=buffers)
            return [self._finished(r, state) for r, state in zip(reducers, states, strict=True)]

    def _finished(self, reducer: Reducer[Any], state: Any) -> Any:
        """The answer from the states of all ranks."""
        if reducer.by_row and self.shards.q.layout is not None:
            answer = reducer.finish(state)
            return tuple(map(self._whole_rows, answer)) if isinstance(answer, tuple) else self._whole_rows(answer)
        transport = self.shards.transport
        parts = state if isinstance(state, tuple) else (state,)
        gathered = [transport.all_gather(part, [part.shape] * transport.world, "questions: answers") for part in parts]
        merged: Any = None
        for states in zip(*gathered, strict=True):
            own = states if isinstance(state, tuple) else states[0]
            merged = own if merged is None else reducer.merge(merged, own)
        return reducer.finish(merged)

    @torch.no_grad()
    def overview(self, question: str) -> Any:
        """The answer to one question of the shared pass, which answers them all, and is remembered."""
        self.check_fresh()
        if self.answers is None:
            self.answers = self._overview()
        answer = self.answers[question]
        return answer.to(self.answer_dtype, copy=True) if isinstance(answer, Tensor) else answer

    def _overview(self) -> dict[str, Any]:
        """Top keys, heatmap, received weight and row statistics, from one trip."""
        normaliser, size = self.spec.normaliser, self.size
        reducers: dict[str, Reducer[Any]] = {
            "top": questions.top_reducer(normaliser, questions.TOP),
            "heatmap": Heatmap(questions.BINS, "sum", size),
            "received": Received(),
        }
        if normaliser.normalised:
            softmax = isinstance(normaliser, Softmax)
            reducers |= {"saturation": SquaredWeight(), "entropy": MeanScore() if softmax else Entropy()}
        answers = dict(zip(reducers, self.fold(list(reducers.values())), strict=True))
        if isinstance(normaliser, Softmax):
            answers["entropy"] = self._entropy(answers["entropy"])
            answers["logsumexp"] = self._whole_rows(self.statistic)  # pyright: ignore[reportArgumentType]
        return answers

    def _entropy(self, mean: Tensor) -> Tensor:
        """Entropy as log-sum-exp less the mean score; where that cancels on some rank, all ranks compute it anew."""
        lse = self.statistic
        assert lse is not None  # noqa: S101  it was needed for the mean
        difference = lse - (local_rows(mean) if isinstance(mean, DTensor) else mean)
        cancelled = (lse.abs() * torch.finfo(lse.dtype).eps > questions.ENTROPY_ERROR) & (lse != NEVER)
        flag = torch.tensor([int(bool(cancelled.any()))], device=lse.device)
        if int(self.shards.transport.all_reduce(flag, "questions: digits", "max")):
            return self.fold([Entropy()])[0]
        return self._whole_rows(torch.where(lse == NEVER, 0.0, difference.clamp_min(0)))

    def logsumexp_of_kernel(self) -> Tensor | None:
        return None

    def row_question(self, question: str, extra: tuple[Operand, ...] = ()) -> Tensor:
        wanted = self.wants_gradient()
        with torch.no_grad():
            if question == "distance":
                answer = self.fold([MeanDistance(extra[0].tensor.squeeze(-1))])[0].to(self.answer_dtype)
            else:
                answer = self.overview(question)
        if not wanted:
            return answer
        shards, statistic = self.shards, self.statistic
        assert statistic is not None  # noqa: S101  it was needed for the answer
        params = learned_tensors(self.spec)
        job = self._job()
        job = replace(job, formula=replace(job.formula, learned=bool(params)))
        asked = RowQuestion(question, job, statistic, extra[0] if extra else None)
        local = local_rows(answer) if isinstance(answer, DTensor) else answer
        return self._whole_rows(ask(asked, local, shards.q.local, shards.k.local, params))

    def whole(self, answer: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        return gather(answer, None) if isinstance(answer, DTensor) else answer

    def empty_rows(self) -> Bool[Tensor, "*batch queries"]:
        """True for queries that see no key."""
        self.check_fresh()
        return self.fold([VisibleKeys()])[0] == 0

    def chosen_keys(self) -> None:
        return None

    # Products

    def pool(self, x: Tensor) -> Tensor:
        return self._product_of(x)

    def pool_precisely(self, x: Tensor) -> Tensor:
        return self._product_of(x.to(self.answer_dtype))

    def _product_of(self, x: Tensor) -> Tensor:
        """weights @ x for x whole on every rank or sharded as the keys are; sharded as the queries. Differentiable."""
        self._agree(f"weights @ x of {tuple(x.shape)}")
        v = self._rows(x, self.shards.k.layout, "keys")
        if inputs.has_extra_lead(replace(self.call.shape, group=1), v):
            heads = self.key.shape[-3] if self.key.dim() > 2 else 0
            if not (self.call.shape.group > 1 and v.dim() > 2 and v.shape[-3] == heads):
                raise ShapeError(
                    f"x {tuple(x.shape)} has leading dimensions that the weights {tuple(self.lead)} lack: over several "
                    "processes it needs those of the weights, or 1"
                )
        grouped = self.call.shape.group > 1 and v.dim() > 2 and v.shape[-3] == self.key.shape[-3]
        job = replace(self.shards, v=None, dropout_p=0.0).job()
        learned = torch.is_grad_enabled() and bool(learned_tensors(self.spec))
        formula: Formula = replace(job.formula, learned=learned)
        job = replace(job, formula=formula, value_group=self.call.shape.group if grouped else 1)
        out, statistic = ring.attend(job, self.shards.q.local, self.shards.k.local, v, self.row_draws)
        if self.statistic is None:
            self.statistic = statistic.detach()
        return self._whole_rows(out)

    @torch.no_grad()
    def spread(self, x: Tensor) -> Tensor:
        """weights.mT @ x for x whole on every rank or sharded as the queries are; sharded as the keys."""
        self._refuse_gradient("weights.mT @ x")
        self._agree(f"weights.mT @ x of {tuple(x.shape)}")
        rows = self._rows(x, self.shards.q.layout, "queries")
        q, k = self._precise()
        statistic, job, rows = self._row_statistic(q, k), self._job(), rows.to(q.dtype)
        home = [q.new_zeros(*self.lead, k.shape[-2], rows.shape[-1])]

        def visit(step: Step, block: list[Tensor]) -> list[Tensor]:
            keys = ring.prepared_keys(block[0], job.group).to(q.dtype)
            total = q.new_zeros(*self.lead, keys.shape[-2], rows.shape[-1])
            for at in step.rectangles:
                part = Operands.cut(at, q, keys, keys)
                rectangle = TiledRectangle.of(job.formula, job.formula.part(job.whole, at), at, part)
                for tile in rectangle.tiles():
                    scores = rectangle.scores(rectangle.cut(tile), tile)
                    made = _block(rectangle, tile, scores, ring.rows_of(statistic, rectangle, tile)).weights
                    added = made.mT @ ring.rows_of(rows, rectangle, tile, 2)
                    at.cols.pick(tile.cols).add(tile.heads(total), -2, added)
            return [total]

        job.trip([k], "weights.mT @ x", visit, home)
        out = self.shards.transport.all_reduce(home[0], "weights.mT @ x") if job.keys_shared else home[0]
        layout = self.shards.k.layout
        out = out.to(x.dtype)
        return out if layout is None else from_local(out, self.shards.mesh, len(self.lead), layout)

    def _rows(self, x: Tensor, layout: Layout | None, what: str) -> Tensor:
        """This rank's rows of x, which is whole on every rank or in the layout of the queries or keys."""
        if not isinstance(x, DTensor):
            if layout is None:
                return x
            return local_rows(shard(x, -2, layout, None, self.shards.mesh))
        found = layout_of(x, x.dim() - 2, "x")
        if found is None and layout is not None:
            return layout.take(x.to_local(), -2, self.shards.transport.rank)
        if found != layout:
            name = "whole" if found is None else repr(found.name)
            raise DistributedError(f"x must be sharded as the {what} are, or whole on every rank, but it is {name}")
        return local_rows(x)

    # Blocks

    @torch.no_grad()
    def block(self, picked: index.ParsedIndex, *, transposed: bool = False) -> Float[Tensor, "..."]:
        """The weights that an index picks, whole on every rank: the rows and keys that it names are gathered."""
        self._agree(f"block {[_told(entry) for entry in picked.entries]}")
        *lead, first, second = picked.entries
        rows, cols = (second, first) if transposed else (first, second)
        device = self.size.device
        row_span, col_span = (_positions(entry, device) for entry in (rows, cols))
        box = math.prod(self.lead) * len(row_span) * len(col_span) * self.answer_dtype.itemsize
        if box > MAX_BLOCK:
            raise TooLargeError(f"the rows and columns of this index span {box:,} bytes of weights: ask for fewer")
        q, k = self._precise()
        statistic = self._row_statistic(q, k)
        q = self._gathered(q, self.shards.q.layout, row_span, -2)
        statistic = self._gathered(statistic, self.shards.q.layout, row_span, -1)
        k = ring.prepared_keys(self._gathered(k, self.shards.k.layout, col_span, -2), self.call.shape.group)
        weights = self._weights_at(q, k, statistic, Span(0, 0, row_span), Span(0, 0, col_span))
        entries = [*lead, _relative(rows), _relative(cols)]
        if transposed:
            weights, entries = weights.mT, [*lead, entries[-1], entries[-2]]
        return weights[tuple(entries)]

    def _gathered(self, local: Tensor, layout: Layout | None, positions: Tensor, dim: int) -> Tensor:
        """The rows at some positions, of whichever rank has them, on every rank."""
        if layout is None:
            return local.index_select(dim, positions)
        own = layout.positions(self.shards.transport.rank, local.device)
        at = torch.searchsorted(own, positions)
        mine = at < len(own)
        mine = mine & (own[at.clamp_max(max(0, len(own) - 1))] == positions) if len(own) else torch.zeros_like(mine)
        shape = list(local.shape)
        shape[dim] = len(positions)
        found = local.new_zeros(shape)
        if bool(mine.any()):
            found.index_copy_(dim % local.dim(), mine.nonzero().squeeze(-1), local.index_select(dim, at[mine]))
        return self.shards.transport.all_reduce(found, "block: rows")

    def _weights_at(
        self, q: Tensor, k: Tensor, statistic: Tensor, rows: Span, cols: Span
    ) -> Float[Tensor, "*batch rows cols"]:
        """The weights of these rows and columns, given whole."""
        job = self._job()
        formula = job.formula
        out = q.new_zeros(*self.lead, len(rows), len(cols))
        if not out.numel():
            return out
        step = max(1, formula.tile_scores // max(1, math.prod(self.lead) * len(cols)))
        heads = tuple(slice(0, length) for length in self.lead)
        for low in range(0, len(rows), step):
            part = Span(low, min(low + step, len(rows)))
            at = rows.pick(part)
            spec = self.spec.part(job.whole, at, cols, formula.size)
            problem = Problem.build(spec, part.take(q, -2), k, self.lead, draws=())
            gaps = () if spec.mask is None else ((0, len(cols)),)
            tile = Tile(heads, Span(0, len(part)), Span(0, len(cols)), gaps)
            scores = problem.scores([tile.cut(o) for o in problem.operands], tile)
            scores = scores.expand(*self.lead, len(part), len(cols))
            part.take(out, -2).copy_(weights_of(spec.normaliser, scores, part.take(statistic, -1), cols))
        return out


def _told(entry: index.Entry) -> str:
    """An entry of an index, in words that differ where the entries do."""
    return str(entry.tolist() if isinstance(entry, Tensor) else entry)


def _positions(entry: index.Entry, device: torch.device) -> Tensor:
    """The positions of an entry, each once and in order."""
    if isinstance(entry, int):
        return torch.tensor([entry], device=device)
    return (
        torch.arange(entry.start, entry.stop, entry.step, device=device) if isinstance(entry, slice) else entry.unique()
    )


def _relative(entry: index.Entry) -> index.Entry:
    """The entry, relative to the positions that it names."""
    if isinstance(entry, int):
        return 0
    return slice(None) if isinstance(entry, slice) else entry.unique(return_inverse=True)[1]


def _longest(tensor: Float[Tensor, "*batch rows dim"]) -> Float[Tensor, "1 dim"]:
    """The longest row; zeros where there is none."""
    flat = tensor.reshape(-1, tensor.shape[-1])
    if not flat.shape[0]:
        return tensor.new_zeros(1, tensor.shape[-1])
    at = int(flat.norm(dim=-1).argmax())
    return flat[at : at + 1]


def _block(
    rectangle: TiledRectangle,
    tile: Tile,
    scores: Float[Tensor, "... rows cols"],
    statistic: Tensor,
    out: Float[Tensor, "... rows cols"] | None = None,
) -> Block:
    """The scores and weights of a tile, where it lies in the whole matrix; `out` may take the weights."""
    at, spec = rectangle.at, rectangle.problem.spec
    return Block(
        scores,
        weights_of(spec.normaliser, scores, statistic, rectangle.places(tile), out),
        at.at_rows.pick(tile.rows),
        rectangle.places(tile),
        rectangle.formula.size,
        gaps=((0, len(tile.cols)),) if at.masked or spec.score.hides_keys else (),
        partial=True,
        writable=out is not None,
        lead=tile.lead,
    )


def _updated(reducer: Reducer[Any], state: Any, block: Block, rows: Span, tile: Tile) -> Any:
    """The state of a reducer after a tile, updated in place."""
    if not reducer.by_row:
        reducer.step(_heads(state, tile), block)
        return state
    views = tuple(_rows_of_state(part, rows, tile) for part in (state if isinstance(state, tuple) else (state,)))
    made = reducer.step(views if isinstance(state, tuple) else views[0], block)
    for view, part in zip(views, made if isinstance(made, tuple) else (made,), strict=True):
        view.copy_(part)
    return state


def _heads(state: Tensor, tile: Tile) -> Tensor:
    """The heads of a tile in a state, as a view."""
    return tile.heads(state, trailing=state.dim() - len(tile.lead))


def _rows_of_state(state: Tensor, rows: Span, tile: Tile) -> Tensor:
    """The heads and rows of a tile in a state with one entry for each query, as a view."""
    return rows.take(_heads(state, tile), len(tile.lead))
