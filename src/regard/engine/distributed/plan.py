"""Who computes what: which keys each rank needs of which other, and the rectangles of the matrix that it computes.

All of it follows from the layouts and the mask, which every rank knows, so no rank has to ask another one. Rows that no
query of the receiver sees are not sent, and a rectangle that the mask hides is not computed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.engine.distributed.layout import Layout
from regard.engine.mask_cache import remembered
from regard.engine.plan import Executor, Plan
from regard.masks import ALL, NONE, Whole
from regard.operands import Size, Span
from regard.spec import Spec

SENT_BLOCKS = 64  # blocks of a run of keys for which it is decided whether they are sent
MIN_SENT_ROWS = 64  # keys of such a block
MAX_PLANS = 256  # remembered for calls without a mask


@dataclass(frozen=True, slots=True, eq=False)
class Rectangle:
    """A run of queries beside a run of keys: where they lie in shard and block, and in the whole sequence."""

    rows: Span  # in this rank's queries
    cols: Span  # in the block of keys
    at_rows: Span  # positions
    at_cols: Span
    masked: bool  # True if the mask may hide some of it


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One block of keys on its way: from `source` to this rank, while `outgoing` rows of its own go to `receiver`."""

    source: int
    receiver: int
    n_keys: int  # rows of the block
    rectangles: tuple[Rectangle, ...]
    outgoing: tuple[Span, ...]  # in this rank's shard


@dataclass(frozen=True, slots=True, eq=False)
class RingPlan:
    """The steps of one rank in a trip of the keys: first its own keys, then those of the others."""

    rank: int
    steps: tuple[Step, ...]

    @property
    def scores(self) -> int:
        """The number of scores of one head in all rectangles."""
        return sum(len(r.rows) * len(r.cols) for step in self.steps for r in step.rectangles)

    @property
    def rows_received(self) -> int:
        """The number of keys that arrive from other ranks in one trip."""
        return sum(step.n_keys for step in self.steps if step.source != self.rank)


_plans: dict[Hashable, RingPlan] = {}


def ring_plan(whole: Whole | None, size: Size, rows: Layout | None, cols: Layout | None, rank: int) -> RingPlan:
    """The plan of a rank. A layout of None means that every rank has all queries, or all keys."""
    kind = ("ring", size, rows, cols, rank)
    if whole is not None:
        kind = (*kind, whole.lead, whole.mask.signature)
        return remembered(kind, whole.mask, lambda: _make(whole, size, rows, cols, rank))
    if kind not in _plans:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        _plans[kind] = _make(None, size, rows, cols, rank)
    return _plans[kind]


def _make(whole: Whole | None, size: Size, rows: Layout | None, cols: Layout | None, rank: int) -> RingPlan:
    """The plan of a rank, computed anew."""
    queries = spans_of(rows, size.n, rank)
    keys = spans_of(cols, size.m, rank)
    steps = [Step(rank, rank, sum(len(own) for own, _ in keys), _rectangles(whole, queries, keys), ())]
    for hop in range(1, 1 if rows is None or cols is None else cols.world):
        source, receiver = (rank + hop) % cols.world, (rank - hop) % cols.world  # pyright: ignore[reportOptionalMemberAccess]
        arriving = list(_sent(whole, queries, spans_of(cols, size.m, source)))
        outgoing = [own for own, _ in _sent(whole, spans_of(rows, size.n, receiver), keys)]
        packed = list(_packed([at for _, at in arriving]))
        rectangles = _rectangles(whole, queries, packed)
        if packed or outgoing:
            n_keys = sum(len(at) for _, at in packed)
            steps.append(Step(source, receiver, n_keys, rectangles, tuple(outgoing)))
    return RingPlan(rank, tuple(steps))


def spans_of(layout: Layout | None, length: int, rank: int) -> list[tuple[Span, Span]]:
    """A rank's runs as (rows in its shard, positions); without a layout it has everything."""
    if layout is None:
        return [(Span(0, length), Span(0, length))] if length else []
    return layout.spans(rank)


def _packed(spans: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    """The spans one behind the other, as they arrive: (rows in the block, positions)."""
    low = 0
    for span in spans:
        yield Span(low, low + len(span)), span
        low += len(span)


def _sent(
    whole: Whole | None, queries: Sequence[tuple[Span, Span]], keys: Sequence[tuple[Span, Span]]
) -> Iterator[tuple[Span, Span]]:
    """The parts of these keys that one of these queries may see: (rows in the shard, positions)."""
    if not queries:
        return
    for own, at in keys:
        ranges = [(at.start, at.stop)] if whole is None else _seen(whole, [rows for _, rows in queries], at)
        for low, high in ranges:
            yield Span(own.start + low - at.start, own.start + high - at.start), Span(low, high)


def _seen(whole: Whole, queries: Sequence[Span], keys: Span) -> list[tuple[int, int]]:
    """The ranges of keys, within a run of them, that some query may see."""
    found: list[tuple[int, int]] = []
    for rows in queries:
        for low, high in whole.mask.reach(rows, whole.size):
            first, last = max(low, keys.start), min(high, keys.stop)
            if first >= last:
                continue
            width = max(MIN_SENT_ROWS, -(-(last - first) // SENT_BLOCKS))
            edges = [*range(first, last, width), last]
            states = whole.states(rows, edges)
            found += [edge for edge, state in zip(pairwise(edges), states, strict=True) if state != NONE]
    return _union(found)


def _union(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in ascending order, with those joined that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _rectangles(
    whole: Whole | None, queries: Sequence[tuple[Span, Span]], keys: Sequence[tuple[Span, Span]]
) -> tuple[Rectangle, ...]:
    """The rectangles of which some pair may be visible."""
    found: list[Rectangle] = []
    for rows, at_rows in queries:
        for cols, at_cols in keys:
            state = ALL if whole is None else whole.states(at_rows, [at_cols.start, at_cols.stop])[0]
            if state != NONE:
                found.append(Rectangle(rows, cols, at_rows, at_cols, state != ALL))
    return tuple(found)


def choose(spec: Spec, forced: str, heads: tuple[int, int], world: int, *, dropout: bool) -> tuple[str, str]:
    """The executor, "ring" or "heads", and the reason in words: from shapes and terms alone.

    `heads` are the numbers of query heads and of key heads, 0 where there is no axis of heads.
    """
    obstacle = heads_obstacle(heads, world, dropout=dropout)
    if forced == "ring" or (forced == "heads" and obstacle is None):
        return forced, "asked for"
    if forced == "heads":
        return "", obstacle or ""
    whole_rows = not spec.normaliser.mergeable
    if whole_rows and obstacle is None:
        return "heads", f"{spec.normaliser} needs whole rows, and the heads divide among {world} ranks"
    if whole_rows:
        return "ring", f"{spec.normaliser} takes several trips for its row statistic; heads stay, because {obstacle}"
    return "ring", f"{spec.normaliser} merges from blocks of keys"


def heads_obstacle(heads: tuple[int, int], world: int, *, dropout: bool) -> str | None:
    """Why heads cannot be exchanged between ranks, or None if they can."""
    if not heads[0] or not heads[1]:
        return "there is no axis of heads"
    if heads[0] % world or heads[1] % world:
        return f"{heads[0]} query heads and {heads[1]} key heads do not divide among {world} ranks"
    if dropout:
        return "dropout goes by position in the whole matrix"
    return None


def describe(executor: str, reason: str, plan: RingPlan, size: Size, world: int, kernel: Executor) -> Plan:
    """The plan in one printable line."""
    sizes = f"{size.n} x {size.m} over {world} ranks"
    if executor == "ring":
        share = plan.scores / max(1, size.n * size.m)
        sizes += f"; rank {plan.rank} computes {share:.0%} of the matrix and receives {plan.rows_received} keys"
    return Plan(kernel, 1, f"{executor} over {sizes}, because {reason}")
