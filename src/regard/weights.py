"""The n x m matrix of weights as an object that is never built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from regard.engine import index as index_module
from regard.engine import inputs, pooling, questions, versions
from regard.engine.fold import survey
from regard.engine.fused import row_statistics
from regard.engine.plan import BUFFERS, TILE, Plan, tile_size
from regard.engine.plan import plan as choose
from regard.engine.reducers import Heatmap, MeanDistance, VisibleKeys
from regard.engine.tiles import Problem
from regard.errors import ChoiceError, DeviceError, DtypeError, NotNormalisedError, ShapeError, TooLargeError
from regard.masks import Mask
from regard.normalisers import Normaliser, Softmax
from regard.operands import Axis, Operand, Size
from regard.scores import Score
from regard.spec import Spec
from regard.term import came
from regard.tracing import plain_dtypes, traced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DENSE_LIMIT = 2**28
FEW_DIGITS = 48.0  # scores above this leave fewer than five digits of a weight in float32


class TopK(NamedTuple):
    """The largest weights of each row and the keys they are on; 0 and -1 where a query sees fewer keys."""

    values: Tensor
    indices: Tensor


class Weights:
    r"""The weights p_ij = normalise_j(score(q_i, k_j)), never built, yet exact.

    Shapes: query (..., n, d_q), key (..., m, d_k); the matrix is (..., n, m).

    >>> import torch, regard as rg
    >>> tokens = torch.eye(3)
    >>> weights = rg.Weights(tokens, tokens)
    >>> weights.shape
    torch.Size([3, 3])
    >>> weights[0].round(decimals=2)
    tensor([0.4700, 0.2600, 0.2600])
    """

    __slots__ = ("_budget", "_drawn", "_lse", "_memo", "_plan", "_shape", "_spec", "_versions", "key", "query")

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        score: Score | None = None,
        mask: Mask | None = None,
        normaliser: Normaliser | None = None,
        plan: str = "auto",
        budget: int | None = None,
    ) -> None:
        spec = inputs.make_spec(score, mask, normaliser)
        shape = inputs.check(query, key, None, spec)
        budget = inputs.check_options(0.0, plan, budget)
        chosen = choose(inputs.request(query, key, spec, shape, forced=plan, budget=budget))
        self._set(query, key, spec, shape, chosen, budget, None, None)

    def _set(
        self,
        query: Tensor,
        key: Tensor,
        spec: Spec,
        shape: inputs.Shape,
        plan: Plan,
        budget: int,
        lse: Tensor | None,
        draws: tuple[Operand, ...] | None,
    ) -> Weights:
        self.query, self.key = query, key
        self._spec, self._shape, self._plan, self._budget = spec, shape, plan, budget
        self._lse, self._memo = lse, None
        if draws is None and spec.normaliser.arity:
            draws = spec.normaliser.operands(shape.lead, shape.n, inputs.working(query))
        self._drawn = draws
        named = {"query": query, "key": key, **spec.tensors()}
        self._versions = None if torch.compiler.is_compiling() else versions.versions(named)
        return self

    # What it is

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self._shape.lead, self._shape.n, self._shape.m))

    @property
    def ndim(self) -> int:
        return len(self._shape.lead) + 2

    @property
    def dtype(self) -> torch.dtype:
        return self.query.dtype

    @property
    def device(self) -> torch.device:
        return self.query.device

    @property
    def plan(self) -> Plan:
        """Which executor, and why, in one printable line."""
        return self._plan

    @property
    def spec(self) -> Spec:
        """Score, mask and normaliser."""
        return self._spec

    @property
    def normalised(self) -> bool:
        """Whether a row that sees a key sums to 1."""
        return self._spec.normaliser.normalised

    def __repr__(self) -> str:
        sizes = " x ".join(str(length) for length in self.shape)
        sums = "" if self.normalised else "rows do not sum to 1, "
        return f"Weights({sizes}, {self._spec}, {self.dtype}, {sums}never built)"

    def __len__(self) -> int:
        return self.shape[0]

    # Products

    def __matmul__(self, x: Tensor) -> Tensor:
        """Pool: (..., n, m) @ (..., m, d) -> (..., n, d). Differentiable."""
        return self._product(x, self._shape.m, "keys", self._pool)

    @property
    def mT(self) -> Transposed:  # noqa: N802
        """The transposed matrix, a lazy view."""
        return Transposed(self)

    def _product(self, x: Tensor, length: int, what: str, run: Any) -> Tensor:
        self._check_fresh()
        if not isinstance(x, Tensor) or x.dtype != self.dtype:
            msg = f"weights @ x needs a tensor of {self.dtype}, but x is {came(x)}"
            raise DtypeError(msg)
        if x.device != self.device:
            msg = f"weights @ x needs x on the device of the weights, {self.device}, but it is on {x.device}"
            raise DeviceError(msg)
        matrix = x.unsqueeze(-1) if x.dim() == 1 else x
        if x.dim() == 0 or matrix.shape[-2] != length:
            msg = (
                f"weights @ x needs x with one row for each of {length} {what}: "
                f"weights {tuple(self.shape)}, x {tuple(x.shape)}"
            )
            raise ShapeError(msg)
        with plain_dtypes():
            out = run(inputs.working(matrix)).to(self.dtype)
        return out.squeeze(-1) if x.dim() == 1 else out

    def _pool(self, x: Tensor) -> Tensor:
        query, key = self._operands()
        if self._shape.group > 1 and x.dim() > 2 and x.shape[-3] == self.key.shape[-3]:
            x = inputs.ungrouped(x, self._shape.group)  # values as `attend` takes them, one head for a group
        return self._pooled(query, key, x)

    def _pooled(self, query: Tensor, key: Tensor, x: Tensor) -> Tensor:
        # Planned anew: there is no dropout here, gradients may be wanted or not, and numbers may be wider.
        request = inputs.request(query, key, self._spec, self._shape, forced=self._plan.forced, budget=self._budget)
        return pooling.pool(self._spec, query, key, x, self._shape.lead, choose(request), draws=self._draws)[0]

    def _spread(self, x: Tensor) -> Tensor:
        query, key = self._operands()
        return pooling.spread(self._spec, query, key, x, self._shape.lead, self._plan, self._draws)

    # Blocks

    def __getitem__(self, index: Any) -> Tensor:
        """A dense block: ints, slices and index tensors mean what they mean for a tensor. Not differentiable."""
        return self._block(index_module.parse(index, tuple(self.shape), self.device), "this block", DENSE_LIMIT)

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole matrix, refused above `limit` bytes. Not differentiable: pool with ``@`` for that."""
        return self._block(index_module.parse(..., tuple(self.shape), self.device), "the whole matrix", limit)

    def _block(self, picked: index_module.Picked, what: str, limit: int, *, turned: bool = False) -> Tensor:
        self._check_fresh()
        size = picked.numel() * self.query.element_size()
        if size > limit:
            msg = (
                f"{what} of {tuple(self.shape)} weights would take {size:,} bytes, above the limit of {limit:,}: "
                f"ask for fewer rows, or for weights.heatmap(); dense(limit={size}) would build it"
            )
            raise TooLargeError(msg)
        with plain_dtypes():
            problem, lse = self._problem(), self._lse
            known = lse is not None and lse.dtype == problem.dtype and isinstance(self._spec.normaliser, Softmax)
            if lse is not None and known:
                statistic = Operand(lse.detach().unsqueeze(-1), Axis.QUERY)
                problem = replace(problem, operands=(*problem.operands, statistic))
            return index_module.block(problem, picked, self._cap(problem), turned=turned, known=known).to(self.dtype)

    # Questions

    def logsumexp(self) -> Tensor:
        """log sum_j exp(s_ij), (..., n); softmax only. Differentiable."""
        if not isinstance(self._spec.normaliser, Softmax):
            msg = f"logsumexp is the row statistic of softmax, and these weights are {self._spec.normaliser}"
            raise NotNormalisedError(msg)
        if self._lse is not None and not self._wants_gradient() and not self._large(*self._operands()):
            self._check_fresh()
            return self._lse.detach().clone()  # the fused kernel gave it away
        return self._row_question("logsumexp")

    def entropy(self) -> Tensor:
        """-sum_j p_ij log p_ij in nats, (..., n). Differentiable."""
        return self._row_question("entropy")

    def saturation(self) -> Tensor:
        """sum_j p_ij²: 1 is one-hot, 1/m is uniform, (..., n). Differentiable."""
        return self._row_question("saturation")

    def distance(self, query_positions: Tensor | None = None) -> Tensor:
        """sum_j p_ij |i - j|, (..., n); with n != m say where the queries stand. Differentiable."""
        positions = questions.positions(query_positions, self._shape.lead, self._size)
        if self._wants_gradient() or traced():
            return self._row_question("distance", (Operand(positions.unsqueeze(-1), Axis.QUERY),))
        self._needs_distribution("distance")
        return self._ask(MeanDistance(positions)).to(self._out())

    def received(self) -> Tensor:
        """sum_i p_ij: what each key gets from all queries, (..., m). Not differentiable: use ``weights.mT @ ones``."""
        return self._known("received")

    def mass(self, groups: Tensor) -> Tensor:
        """The weight on each group of keys, (..., n, groups): ids are (m,) or (B, m), -1 is none. Differentiable."""
        self._check_fresh()
        marks = questions.membership(groups, self._shape.lead, self._size)
        query, key = self._precise()
        with plain_dtypes():
            return self._pooled(query, key, marks.to(query.dtype)).to(self._out())

    def top(self, k: int) -> TopK:
        """The k largest weights of each row, and where they are: (..., n, k) both. Not differentiable."""
        if not isinstance(k, int) or k < 1:
            msg = f"top(k) needs a whole number of keys, 1 or more, not {k!r}"
            raise ChoiceError(msg)
        few = k <= questions.TOP
        values, indices = self._known("top") if few else self._ask(questions.top(self._spec.normaliser, k))
        return TopK(values[..., :k].to(self._out(), copy=True), indices[..., :k].to(torch.int64, copy=True))

    def heatmap(self, bins: int = 256, pool: str = "mean") -> Tensor:
        """The matrix in bins x bins cells (fewer where it is smaller), pooled by "mean", "max" or "sum".

        Bin b holds rows floor(b n / bins) to floor((b + 1) n / bins), columns likewise; hidden cells count as 0.
        Not differentiable.
        """
        if not isinstance(bins, int) or bins < 1:
            msg = f"heatmap(bins) needs a whole number of bins, 1 or more, not {bins!r}"
            raise ChoiceError(msg)
        reducer = Heatmap(bins, pool, self._size)
        if bins == questions.BINS and pool != "max":
            return reducer.finish(self._known("heatmap")).to(self._out())
        return self._ask(reducer).to(self._out())

    def empty_rows(self) -> Tensor:
        """True for queries that see no key, (..., n)."""
        self._check_fresh()
        if not self._spec.gaps and self._shape.m:
            return torch.zeros(self.shape[:-1], dtype=torch.bool, device=self.device)
        if not self._spec.score.compact and not traced():
            return questions.unseen(self._problem())
        return self._ask(VisibleKeys()) == 0

    def snapshot(self) -> Weights:
        """A detached copy that no longer depends on the caller's tensors."""
        self._check_fresh()
        copies: dict[int, Tensor] = {}
        spec = versions.copied(self._spec, copies)
        query, key = (versions.copy(t, copies) for t in (self.query, self.key))
        draws = self._draws
        if draws is not None:
            draws = tuple(Operand(versions.copy(o.tensor, copies), o.axis) for o in draws)
        twin = object.__new__(Weights)
        twin._set(query, key, spec, self._shape, self._plan, self._budget, self._lse, draws)
        twin._memo = self._memo
        return twin

    # Pictures

    def plot(self, tokens: Sequence[object] | None = None, **options: Any) -> Axes:
        """A heatmap as matplotlib Axes, empty rows hatched; see `regard.plot.heatmap`."""
        from regard.plot import heatmap

        return heatmap(self, tokens, **options)

    def view(self, tokens: Sequence[object] | None = None, query_tokens: Sequence[object] | None = None) -> Any:
        """A widget of a notebook, to look at them in any depth; tokens: a label for each key, as for `plot`."""
        from regard.web.notebook.display import view_weights

        return view_weights(self, tokens, query_tokens)

    # Inside

    def _check_fresh(self) -> None:
        if not traced():
            versions.check(self._versions)

    @property
    def _size(self) -> Size:
        return Size(self._shape.n, self._shape.m, self.device)

    def _out(self) -> torch.dtype:
        return inputs.working(self.query).dtype

    def _operands(self) -> tuple[Tensor, Tensor]:
        return inputs.working(self.query), inputs.ungrouped(inputs.working(self.key), self._shape.group)

    def _problem(self, *, careful: bool = False) -> Problem:
        """For questions: in float64 where float32 would leave too few digits."""
        query, key = self._precise()
        return Problem.build(self._spec, query, key, self._shape.lead, careful=careful, draws=self._draws)

    @property
    def _draws(self) -> tuple[Operand, ...] | None:
        """What the normaliser has drawn; keys that it chose stay chosen, in whatever digits one asks later."""
        raw = self._spec.normaliser.arity if self._drawn is None else len(self._drawn)
        if self._spec.normaliser.chooses and raw == self._spec.normaliser.arity and not traced():
            with torch.inference_mode(False), torch.no_grad(), plain_dtypes():  # whoever asks later may want gradients
                problem = Problem.build(self._spec, *self._operands(), self._shape.lead, draws=self._drawn)
                self._drawn = questions.chosen(problem, self._cap(problem))
        return self._drawn

    def _precise(self) -> tuple[Tensor, Tensor]:
        query, key = self._operands()
        if query.dtype == torch.float32 and not traced() and self._large(query, key):
            return query.double(), key.double()
        return query, key

    @torch.no_grad()
    def _large(self, query: Tensor, key: Tensor) -> bool:
        return not bool(self._spec.score.magnitude(query, key) <= FEW_DIGITS)

    def _cap(self, problem: Problem) -> int:
        """How many scores a pass of questions may hold at a time, in all its workers together."""
        if self._plan.executor == "dense":
            return self._plan.tile
        # For every worker 256 queries, 64 where rows are long: with fewer, a product waits for its keys. Not more than
        # a small part of the matrix, though, unless that is so small that the fixed cost of a tile counts.
        n, m = self._shape.n, self._shape.m
        scores = torch.get_num_threads() * max(TILE // 2, min(256 * m, 2 * TILE, n * m // 24), 64 * m)
        return max(1, min(scores, self._budget // (BUFFERS * problem.dtype.itemsize)))

    def _wants_gradient(self) -> bool:
        tensors = (self.query, self.key, *self._spec.tensors().values())
        return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)

    def _dense_with_graph(self) -> Tensor:
        """The whole matrix with a gradient, for layers that return it as torch's do."""
        self._check_fresh()
        careful = pooling.must_be_careful(self._spec, self.query, self.key, self.key)
        with plain_dtypes():
            problem = self._problem(careful=careful)
            cap = tile_size(self._budget, problem.dtype.itemsize, grad=True)
            return questions.dense(problem, cap).to(self.dtype)

    def _needs_distribution(self, question: str) -> None:
        if not self._spec.normaliser.normalised:
            msg = f"{question} needs rows that sum to 1, and rows of {self._spec.normaliser} do not"
            raise NotNormalisedError(msg)

    def _row_question(self, question: str, extra: tuple[Operand, ...] = ()) -> Tensor:
        self._needs_distribution(question)
        if not self._wants_gradient() and not traced():
            return self._known(question).to(self._out())
        self._check_fresh()
        careful = pooling.must_be_careful(self._spec, self.query, self.key, self.key)
        query, key = self._precise()
        cap = tile_size(self._budget, query.dtype.itemsize, grad=True)
        answer = None
        with plain_dtypes():
            if self._plan.executor == "fused" and not careful and not traced():
                answer = row_statistics.differentiable(
                    self._spec, query, key, self._shape.lead, question, self._plan.tile, cap
                )
            if answer is None:
                problem = self._problem(careful=careful)
                answer = questions.differentiable(problem, question, cap, extra)
        return answer.to(self._out())

    @torch.no_grad()
    def _known(self, question: str) -> Any:
        self._check_fresh()
        if self._memo is None:
            with plain_dtypes():
                problem = self._problem()
                self._memo = questions.overview(problem, self._cap(problem))
        answer = self._memo[question]
        # Copied on the way out (`top` does it itself): what is remembered must not change under an in-place operation.
        return answer.to(self._out(), copy=True) if isinstance(answer, Tensor) else answer

    @torch.no_grad()
    def _ask(self, reducer: Any) -> Any:
        return self._ask_all([reducer])[0]

    @torch.no_grad()
    def _ask_all(self, reducers: Sequence[Any]) -> list[Any]:
        """Several questions in one pass."""
        self._check_fresh()
        with plain_dtypes():
            problem = self._problem()
            return survey(problem, reducers, self._cap(problem))


class Transposed:
    """The transpose of a lazy matrix: a lazy view."""

    __slots__ = ("mT",)

    def __init__(self, weights: Weights) -> None:
        self.mT = weights

    @property
    def shape(self) -> torch.Size:
        return torch.Size((*self.mT.shape[:-2], self.mT.shape[-1], self.mT.shape[-2]))

    def __matmul__(self, x: Tensor) -> Tensor:
        """(..., m, n) @ (..., n, d) -> (..., m, d). Differentiable."""
        return self.mT._product(x, self.mT._shape.n, "queries", self.mT._spread)

    def __getitem__(self, index: Any) -> Tensor:
        picked = index_module.parse(index, tuple(self.shape), self.mT.device)
        return self.mT._block(picked, "this block", DENSE_LIMIT, turned=True)  # noqa: SLF001

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole transposed matrix, refused above `limit` bytes."""
        return self.mT.dense(limit).mT

    def __repr__(self) -> str:
        return f"{self.mT!r}.mT"
