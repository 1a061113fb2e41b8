"""Masks that fall into runs of rows: the same answers as one dense tile, forward and backward."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_qkv import qkv
from torch import Tensor

import regard as rg
from regard import masks, scores
from regard.engine import mask_cache
from regard.engine.fused import row_runs
from regard.operands import Size, Tile

CPU = torch.device("cpu")


def ids(*lengths: int, first: int = 0) -> Tensor:
    return torch.cat([torch.full((length,), first + i) for i, length in enumerate(lengths)])


PACKED = masks.segments(ids(7, 20, 1, 12))
PER_SEQUENCE = masks.segments(torch.stack([ids(7, 20, 1, 12), ids(40)]))
MASKS = {
    "packed": PACKED,
    "packed, causal": PACKED & masks.causal(),
    "packed, ids fall": masks.segments(-ids(7, 20, 13)) & masks.causal(),
    "packed, padding at the end": masks.segments(torch.where(ids(30, 10) == 1, -1, 5)),
    "packed, ids for each sequence": PER_SEQUENCE,
    "packed, ids for each sequence, causal": PER_SEQUENCE & masks.causal(),
    "queries and keys of other lengths": masks.segments(ids(7, 20, 13), ids(20, 5, 15)),
    "some queries see no key": masks.segments(ids(7, 20, 13), ids(20, 20, first=1)),
    "some keys are seen by none": masks.segments(ids(20, 20, first=1), ids(7, 20, 13)),
    "padding": masks.padding(torch.tensor([40, 17])),
    "padding of everything": masks.padding(torch.tensor([0, 3])),
    "padding, causal": masks.padding(torch.tensor([23, 40])) & masks.causal(),
    "padding of heads": masks.padding(torch.tensor([[40, 17, 2], [1, 0, 39]])),
    "padding of packed documents": masks.padding(torch.tensor([35, 12])) & PACKED & masks.causal(),
    "prefix": masks.prefix(11),
    "ranges": masks.ranges(torch.arange(40) // 10 * 5, torch.arange(40) // 10 * 5 + 9),
}
OTHERS = {
    "an id that comes back": masks.segments(ids(7, 20, 13) % 2),
    "unsorted ids": masks.segments(torch.arange(40) % 3) & masks.causal(),
    "a window": masks.segments(ids(20, 20)) & masks.window(3, 0),
    "documents that begin late": masks.segments(ids(7, 33), ids(20, 20)) & masks.causal(),
    "two masks": PACKED | masks.prefix(3),
    "the complement": ~PACKED,
}
COMPILED = (
    "packed, causal",
    "padding, causal",
    "packed, ids for each sequence, causal",
    "queries and keys of other lengths",
    "unsorted ids",
    "an id that comes back",
)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tile, ...] | None]:
    """Take runs at any size; a list of those that were found."""
    found: list[tuple[Tile, ...] | None] = []
    original = row_runs.row_runs

    def spy(mask: masks.Mask, lead: tuple[int, ...], size: Size) -> tuple[Tile, ...] | None:
        found.append(original(mask, lead, size))
        return found[-1]

    monkeypatch.setattr(mask_cache, "_values", {})
    monkeypatch.setattr(row_runs, "TILE_OVERHEAD", 1)
    monkeypatch.setattr(row_runs, "MIN_RUN_ROWS", 1)
    monkeypatch.setattr("regard.engine.fused.query_blocks.row_runs", spy)
    monkeypatch.setattr("regard.engine.fused.forms.TILE_OVERHEAD", 1)
    monkeypatch.setattr("regard.engine.fused.forms.SMALL_SCORES", 0)
    return found


def results(mask: masks.Mask, plan: str, **more: object) -> list[Tensor]:
    x = [t.requires_grad_() for t in qkv(40, 40, lead=(2, 3), dtype=torch.float64)]
    output, weights = rg.attend(*x, mask=mask, plan=plan, **more)  # pyright: ignore[reportArgumentType]
    grads = torch.autograd.grad(output.pow(2).sum(), x)
    return [output, *grads, weights.logsumexp()]


def assert_equal_to_dense(mask: masks.Mask, **more: object) -> None:
    for ours, dense in zip(results(mask, "fused", **more), results(mask, "dense", **more), strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("name", MASKS)
def test_runs_give_what_a_dense_tile_gives(name: str, always: list[tuple[Tile, ...] | None]) -> None:
    assert_equal_to_dense(MASKS[name])
    assert always, "the kernel was called in another way"
    assert all(runs is not None for runs in always)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.usefixtures("always")
def test_masks_without_runs_or_with_single_rows_are_right(name: str) -> None:
    assert_equal_to_dense(OTHERS[name])


@pytest.mark.parametrize("name", ["packed, causal", "padding, causal", "padding of packed documents"])
def test_runs_with_a_bias_of_the_keys(name: str, always: list[tuple[Tile, ...] | None]) -> None:
    bias = torch.linspace(-2, 2, 40, dtype=torch.float64)
    bias[8:10] = -math.inf  # the first keys of a document
    assert_equal_to_dense(MASKS[name], score=scores.scaled_dot() + scores.bias(bias[None]))
    assert always[0]


@given(st.data())
def test_runs_cover_what_the_mask_shows_and_nothing_else(data: st.DataObject) -> None:
    n, m = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    some = st.lists(st.integers(-2, 14), min_size=n, max_size=n).map(torch.tensor)
    labels = [st.lists(st.integers(0, 3), min_size=k, max_size=k).map(sorted).map(torch.tensor) for k in (n, m)]
    kinds = {
        "ranges": lambda: masks.ranges(data.draw(some), data.draw(some)),
        "segments": lambda: masks.segments(*(data.draw(label) for label in labels)),
        "padding": lambda: masks.padding(torch.tensor(data.draw(st.integers(0, 14)))),
        "causal": lambda: masks.causal(data.draw(st.sampled_from(["top-left", "bottom-right"]))),
    }
    chosen = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=3))
    mask = kinds[chosen[0]]()
    for name in chosen[1:]:
        mask = mask & kinds[name]()
    size = Size(n, m, CPU)
    runs = _free_runs(mask, size)
    if runs is None:
        return
    seen = torch.zeros(n, m, dtype=torch.bool)
    for tile in runs:
        part = torch.ones(len(tile.rows), len(tile.cols), dtype=torch.bool)
        seen[tile.rows.place, tile.cols.place] = part.tril() if tile.masked else part
    output = rg.attend(torch.zeros(n, 1), torch.zeros(m, 1), torch.eye(m), mask=mask, plan="dense").output
    assert torch.equal(seen, output > 0)
    rows = sorted((tile.rows.start, tile.rows.stop) for tile in runs)
    assert all(before[1] <= after[0] for before, after in pairwise(rows))


def _free_runs(mask: masks.Mask, size: Size) -> tuple[Tile, ...] | None:
    """The runs at any cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_runs, "TILE_OVERHEAD", 1)
        patch.setattr(row_runs, "MIN_RUN_ROWS", 1)
        return row_runs.row_runs(mask, (), size)


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.usefixtures("always")
def test_numbers_of_padding_that_are_not_finite_do_no_harm(where: str, grad: bool, number: float) -> None:
    x = dict(zip(("query", "key", "value"), qkv(40, 40, lead=(2, 3), dtype=torch.float64), strict=True))
    mask = masks.segments(ids(30, 10)) & masks.causal()
    clean = rg.attend(**x, mask=mask, plan="dense").output
    x[where][..., 30:, :] = number
    inputs = [t.requires_grad_(grad) for t in x.values()]
    output = rg.attend(*inputs, mask=mask).output
    torch.testing.assert_close(output[..., :30, :], clean[..., :30, :])
    assert not output[..., 35:, :].isfinite().any()
    if grad:
        grads = torch.autograd.grad(output[..., :30, :].sum(), inputs)
        assert all(bool(part[..., :30, :].isfinite().all()) for part in grads)


def test_many_short_runs_are_not_worth_a_call_each() -> None:
    single = masks.segments(torch.arange(512))  # every token its own document
    assert row_runs.row_runs(single, (8,), Size(512, 512, CPU)) is None
    long = Size(1 << 15, 1 << 15, CPU)
    assert row_runs.row_runs(masks.window(9, 0), (8,), long) is None  # a run for each row
    documents = masks.segments(torch.arange(4096) // 512)
    runs = row_runs.row_runs(documents, (8,), Size(4096, 4096, CPU))
    assert runs is not None
    assert len(runs) == 8


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.plain
def test_compiled_calls_are_right(name: str) -> None:
    mask = (MASKS | OTHERS)[name]
    x = qkv(40, 40, lead=(2, 3))
    compiled = torch.compile(lambda *x: rg.attend(*x, mask=mask).output, backend="aot_eager")
    torch.testing.assert_close(compiled(*x), rg.attend(*x, mask=mask, plan="dense").output)


def test_boundaries_follow_a_change_of_the_ids() -> None:
    """Nothing is remembered of the numbers in a mask, in inference mode either."""
    x = qkv(600, 600, lead=(2, 8))
    document = ids(200, 400)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            rg.attend(*x, mask=masks.segments(document))
            document.copy_(ids(300, 300) + 5)
            after = rg.attend(*x, mask=masks.segments(document)).output
            torch.testing.assert_close(after, rg.attend(*x, mask=masks.segments(document), plan="dense").output)
            document.copy_(ids(200, 400))
