"""The matrix of attention weights as the engine keeps it: inputs, formula and plan, from which any part is computed.

`Weights` is its public face. Other packages reach it with `regard.weights.matrix_of(weights)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.engine import (
    compiled_causal,  # noqa: F401  registers the operator that `pooling` calls in compiled code
    index,
    inputs,
    plan_cache,
    pooling,
    questions,
    versions,
)
from regard.engine.fold import fold
from regard.engine.fused import row_statistics
from regard.engine.plan import BUFFERS, TILE_SCORES, Plan, scores_per_tile
from regard.engine.plan_cache import PlannedCall
from regard.engine.reducers import Reducer, VisibleKeys
from regard.engine.tiles import Problem
from regard.normalisers import Softmax
from regard.operands import Axis, Operand, Size
from regard.spec import Spec
from regard.tracing import is_tracing, without_autocast

FLOAT64_FROM_SCORE = 48.0  # scores above this leave fewer than five digits of a weight in float32


# The first arguments of LazyMatrix, as a tuple, which costs less than the object.
MatrixParts = tuple[Tensor, Tensor, PlannedCall, versions.Versions | None, Tensor | None]


@dataclass(slots=True, eq=False)
class LazyMatrix:
    """Weights p_ij = normalise_j(score(q_i, k_j)) of shape (*lead, n, m), of which nothing is stored but the inputs.

    Calling the class only stores what it is given. `build` checks the inputs and plans; `of_call` starts from a plan.
    """

    query: Float[Tensor, "... queries dim_q"]
    key: Float[Tensor, "... keys dim_k"]
    call: PlannedCall  # formula, shape, plan and budget
    versions: versions.Versions | None  # of the caller's tensors, to notice a change in place; None while compiling
    lse: Float[Tensor, "*batch queries"] | None = None  # log-sum-exp of each row, if the fused kernel returned it
    drawn: tuple[Operand, ...] | None = None  # random numbers of the normaliser, later the keys that it chose
    answers: dict[str, Any] | None = None  # of `questions.overview`, once somebody has asked

    @classmethod
    def of_call(
        cls,
        query: Float[Tensor, "... queries dim_q"],
        key: Float[Tensor, "... keys dim_k"],
        call: PlannedCall,
        lse: Float[Tensor, "*batch queries"] | None = None,
        drawn: tuple[Operand, ...] | None = None,
    ) -> LazyMatrix:
        """The matrix of a call that has been checked and planned. Without `drawn`, the normaliser draws now.

        Tensors of inference mode are copied: see `versions`.
        """
        if not is_tracing():
            query, key, spec = versions.copy_uncounted(query, key, call.spec)
            call = call if spec is call.spec else call._replace(spec=spec)
        normaliser, shape = call.spec.normaliser, call.shape
        if drawn is None and normaliser.arity:
            drawn = normaliser.operands(shape.lead, shape.n, inputs.upcast(query))
        named = {"query": query, "key": key, **call.spec.tensors()}
        seen = None if torch.compiler.is_compiling() else versions.versions_of(named)
        return cls(query, key, call, seen, lse, drawn)

    @classmethod
    def build(
        cls,
        query: Tensor,
        key: Tensor,
        spec: Spec,
        plan: str = "auto",
        budget: int | None = None,
        *,
        lse: Float[Tensor, "*batch queries"] | None = None,
        chosen: Int[Tensor, "*batch queries 1"] | None = None,
    ) -> LazyMatrix:
        """The matrix of inputs that are checked and planned here.

        `lse` is the log-sum-exp of each row, `chosen` the key that each row took, if that is known from before.
        """
        call = plan_cache.find(query, key, None, spec, 0.0, plan, budget)
        drawn = None if chosen is None else questions.chosen_operands(chosen, key.shape[-2])
        return cls.of_call(query, key, call, lse, drawn)

    def snapshot(self) -> LazyMatrix:
        """A detached copy that no longer depends on the caller's tensors."""
        self.check_fresh()
        copies: dict[int, Tensor] = {}
        spec = versions.copy_tensors(self.spec, copies)
        query, key = (versions.copy_once(t, copies) for t in (self.query, self.key))
        draws = self.draws
        if draws is not None:
            draws = tuple(Operand(versions.copy_once(o.tensor, copies), o.axis) for o in draws)
        twin = LazyMatrix.of_call(query, key, self.call._replace(spec=spec), self.lse, draws)
        twin.answers = self.answers
        return twin

    def moved(self, change: Callable[[Tensor], Tensor]) -> LazyMatrix:
        """The matrix of the same numbers in other tensors, such as detached ones, or ones on another device."""
        self.check_fresh()
        query, key, spec = (versions.map_tensors(part, change) for part in (self.query, self.key, self.spec))
        draws = None if self.draws is None else tuple(Operand(change(o.tensor), o.axis) for o in self.draws)
        call = plan_cache.find(query, key, None, spec, 0.0, self.plan.forced, self.call.budget)
        return LazyMatrix.of_call(query, key, call, None if self.lse is None else change(self.lse), draws)

    def at(self, axis: int, index: int) -> LazyMatrix:
        """The matrix at one index of a leading axis, which is dropped: views of the same tensors, no copies.

        Only keys that grouped heads share are repeated, where fewer than four dimensions would remain.
        """
        self.check_fresh()
        lead, group = self.lead, self.call.shape.group
        key = self.key
        if group > 1 and axis == len(lead) - 1:
            key = inputs.select_lead(key, axis, index // group, len(lead))
        else:
            repeated = group if len(lead) + 1 < inputs.GROUPED_FROM else 1
            key = inputs.repeat_key_heads(inputs.select_lead(key, axis, index, len(lead)), repeated)
        query = inputs.select_lead(self.query, axis, index, len(lead))
        spec = self.spec.at(axis, index, len(lead))
        call = plan_cache.find(query, key, None, spec, 0.0, self.plan.forced, self.call.budget)
        draws = self.drawn  # as drawn so far: keys that were not chosen yet are chosen for this part alone
        if draws is not None:
            draws = tuple(Operand(inputs.select_lead(o.tensor, axis, index, len(lead)), o.axis) for o in draws)
        lse = None if self.lse is None else self.lse.select(axis, index)
        twin = LazyMatrix.of_call(query, key, call, lse, draws)
        if self.answers is not None:
            twin.answers = {question: _at(answer, axis, index) for question, answer in self.answers.items()}
        return twin

    def state(self) -> tuple[Any, ...]:
        """The arguments of `of_call` that make this matrix again, in another process too."""
        return self.query, self.key, self.call, self.lse, self.draws

    # Sizes and formula

    @property
    def spec(self) -> Spec:
        """Score, mask and normaliser."""
        return self.call.spec

    @property
    def plan(self) -> Plan:
        """Which executor serves products, and why."""
        return self.call.plan

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading dimensions: batch, heads."""
        return self.call.shape.lead

    @property
    def size(self) -> Size:
        """The number of queries and of keys, and the device."""
        return Size(self.call.shape.n, self.call.shape.m, self.query.device)

    @property
    def answer_dtype(self) -> torch.dtype:
        """The dtype of answers: that of the inputs, float32 at least."""
        return inputs.upcast(self.query).dtype

    def check_fresh(self) -> None:
        """Raise StaleWeightsError if a tensor behind the weights has been changed in place."""
        if not is_tracing():
            versions.check_unchanged(self.versions)

    def wants_gradient(self) -> bool:
        """True if autograd is recording and a tensor behind the weights requires a gradient."""
        tensors = (self.query, self.key, *self.spec.tensors().values())
        return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)

    # Tiles

    def operands(self) -> tuple[Float[Tensor, "... queries dim_q"], Float[Tensor, "... keys dim_k"]]:
        """Query and key as they are computed with: float32 at least, one key head for each query head."""
        return inputs.upcast(self.query), inputs.repeat_key_heads(inputs.upcast(self.key), self.call.shape.group)

    def precise_operands(self) -> tuple[Float[Tensor, "... queries dim_q"], Float[Tensor, "... keys dim_k"]]:
        """Query and key, in float64 where float32 would leave too few digits of a weight."""
        query, key = self.operands()
        if query.dtype == torch.float32 and not is_tracing() and self._has_large_scores(query, key):
            return query.double(), key.double()
        return query, key

    @torch.no_grad()
    def _has_large_scores(
        self, query: Float[Tensor, "... queries dim_q"], key: Float[Tensor, "... keys dim_k"]
    ) -> bool:
        """True if scores may be so large that float32 leaves too few digits of a weight."""
        return not bool(self.spec.score.magnitude(query, key) <= FLOAT64_FROM_SCORE)

    def problem(self, *, nan_safe: bool = False) -> Problem:
        """The operands from which tiles are computed, with the digits that questions need."""
        query, key = self.precise_operands()
        return Problem.build(self.spec, query, key, self.lead, nan_safe=nan_safe, draws=self.draws)

    def scores_at_once(self, problem: Problem) -> int:
        """The number of scores that a pass of questions may hold at a time, in all its workers together."""
        if self.plan.executor == "dense":
            return self.plan.tile_scores
        # For every worker 256 queries, 64 where rows are long: with fewer, a product waits for its keys. Not more than
        # a small part of the matrix, though, unless that is so small that the fixed cost of a tile counts.
        n, m = self.call.shape.n, self.call.shape.m
        scores = torch.get_num_threads() * max(TILE_SCORES // 2, min(256 * m, 2 * TILE_SCORES, n * m // 24), 64 * m)
        return max(1, min(scores, self.call.budget // (BUFFERS * problem.dtype.itemsize)))

    @property
    def draws(self) -> tuple[Operand, ...] | None:
        """The random operands of the normaliser. If it chooses keys, they are chosen once, for all later questions."""
        raw = self.spec.normaliser.arity if self.drawn is None else len(self.drawn)
        if self.spec.normaliser.chooses and raw == self.spec.normaliser.arity and not is_tracing():
            # Not in inference mode: a later question may want gradients.
            with torch.inference_mode(False), torch.no_grad(), without_autocast():
                problem = Problem.build(self.spec, *self.operands(), self.lead, draws=self.drawn)
                self.drawn = questions.choose_keys(problem, self.scores_at_once(problem))
        return self.drawn

    def chosen_keys(self) -> Int[Tensor, "*batch queries 1"] | None:
        """The key that each row took, or None if the normaliser does not choose keys."""
        draws = self.draws if self.spec.normaliser.chooses else None
        return draws[0].tensor if draws and len(draws) == 2 else None

    # Products

    def pool(self, x: Float[Tensor, "... keys dim"]) -> Float[Tensor, "... queries dim"]:
        """weights @ x. Differentiable."""
        query, key = self.operands()
        group = self.call.shape.group
        if group > 1 and x.dim() > 2 and x.shape[-3] == self.key.shape[-3]:
            x = inputs.repeat_key_heads(x, group)  # values as `attend` takes them, one head for a group
        return self._pool(query, key, x)

    def pool_precisely(self, x: Shaped[Tensor, "... keys dim"]) -> Float[Tensor, "... queries dim"]:
        """weights @ x, in float64 where float32 would leave too few digits. Differentiable."""
        query, key = self.precise_operands()
        return self._pool(query, key, x.to(query.dtype))

    def _pool(
        self,
        query: Float[Tensor, "... queries dim_q"],
        key: Float[Tensor, "... keys dim_k"],
        x: Float[Tensor, "... keys dim"],
    ) -> Float[Tensor, "... queries dim"]:
        """weights @ x for given operands."""
        # Planned anew: there is no dropout here, gradients may be wanted or not, and numbers may be wider.
        plan = plan_cache.plan_for(query, key, self.spec, self.call.shape, self.plan.forced, self.call.budget)
        return pooling.pool(self.spec, query, key, x, self.lead, plan, draws=self.draws)[0]

    def spread(self, x: Float[Tensor, "... queries dim"]) -> Float[Tensor, "... keys dim"]:
        """weights.mT @ x. Differentiable."""
        query, key = self.operands()
        return pooling.spread(self.spec, query, key, x, self.lead, self.plan, self.draws)

    # Parts of the matrix

    def block(self, picked: index.ParsedIndex, *, transposed: bool = False) -> Float[Tensor, "..."]:
        """The weights that an index picks; `transposed` if it is an index into the transposed matrix."""
        problem, lse = self.problem(), self.lse
        has_statistic = lse is not None and lse.dtype == problem.dtype and isinstance(self.spec.normaliser, Softmax)
        if lse is not None and has_statistic:
            statistic = Operand(lse.detach().unsqueeze(-1), Axis.QUERY)
            problem = replace(problem, operands=(*problem.operands, statistic))
        return index.block(
            problem, picked, self.scores_at_once(problem), transposed=transposed, has_statistic=has_statistic
        )

    def dense_with_graph(self) -> Float[Tensor, "*batch queries keys"]:
        """The whole matrix, differentiable, for layers that return it as torch's layers do."""
        self.check_fresh()
        nan_safe = pooling.needs_nan_safety(self.spec, self.query, self.key, self.key)
        with without_autocast():
            problem = self.problem(nan_safe=nan_safe)
            tile_scores = scores_per_tile(self.call.budget, problem.dtype.itemsize, grad=True)
            return questions.dense_with_graph(problem, tile_scores).to(self.query.dtype)

    # Questions

    @torch.no_grad()
    def fold(self, reducers: Sequence[Reducer[Any]]) -> list[Any]:
        """The answers of several reducers from one pass over the tiles."""
        self.check_fresh()
        with without_autocast():
            problem = self.problem()
            return fold(problem, reducers, self.scores_at_once(problem))

    @torch.no_grad()
    def overview(self, question: str) -> Any:
        """The answer to one question of `questions.overview`. One pass answers them all, and is remembered."""
        self.check_fresh()
        if self.answers is None:
            with without_autocast():
                problem = self.problem()
                self.answers = questions.overview(problem, self.scores_at_once(problem))
        answer = self.answers[question]
        # Copied on the way out (`top` does it itself): what is remembered must not change under an in-place operation.
        return answer.to(self.answer_dtype, copy=True) if isinstance(answer, Tensor) else answer

    def whole(self, answer: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """An answer with one entry for each query, of all queries: itself, where one process has them all."""
        return answer

    def empty_rows(self) -> Bool[Tensor, "*batch queries"]:
        """True for queries that see no key."""
        self.check_fresh()
        if not self.spec.hides_keys and self.size.m:
            return torch.zeros((*self.lead, self.size.n), dtype=torch.bool, device=self.size.device)
        if not self.spec.score.hides_keys and not is_tracing():
            return questions.rows_without_keys(self.problem())
        return self.fold([VisibleKeys()])[0] == 0

    def logsumexp_of_kernel(self) -> Float[Tensor, "*batch queries"] | None:
        """A copy of the log-sum-exp that the fused kernel returned, or None if it is missing or not good enough.

        It has no gradient, and few digits where scores are large.
        """
        if self.lse is None or self.wants_gradient() or self._has_large_scores(*self.operands()):
            return None
        self.check_fresh()
        return self.lse.detach().clone()

    def row_question(self, question: str, extra: tuple[Operand, ...] = ()) -> Float[Tensor, "*batch queries"]:
        """The answer to one of `questions.ROW_QUESTIONS`, differentiable where a gradient is wanted."""
        if not self.wants_gradient() and not is_tracing():
            return self.overview(question).to(self.answer_dtype)
        self.check_fresh()
        nan_safe = pooling.needs_nan_safety(self.spec, self.query, self.key, self.key)
        query, key = self.precise_operands()
        tile_scores = scores_per_tile(self.call.budget, query.dtype.itemsize, grad=True)
        answer = None
        with without_autocast():
            if self.plan.executor == "fused" and not nan_safe and not is_tracing():
                answer = row_statistics.row_question_with_graph(
                    self.spec, query, key, self.lead, question, self.plan.tile_scores, tile_scores
                )
            if answer is None:
                problem = self.problem(nan_safe=nan_safe)
                answer = questions.row_question_with_graph(problem, question, tile_scores, extra)
        return answer.to(self.answer_dtype)


def _at(answer: Any, axis: int, index: int) -> Any:
    """An answer of the shared pass at one index of a leading axis; `top` has two tensors."""
    if isinstance(answer, Tensor):
        return answer.select(axis, index)
    return tuple(part.select(axis, index) for part in answer)
