"""Analyses of a recording, compared with the same computed from dense weights."""

import math

import pytest
import tiny_models
import torch
from torch import nn

import regard as rg
from regard import analysis, masks, scores
from regard.errors import ChoiceError
from regard.recording import Call, Recording
from regard.spec import Spec

BATCH, HEADS, TOKENS, DIM = 2, 3, 11, 16
REAL = torch.tensor([[False] * 4 + [True] * 7, [True] * 11])
MASKS = {
    "everything": None,
    "causal": masks.causal(),
    "padded at the left": masks.causal() & masks.allow(REAL[:, None, None]),
    "padded at the right": masks.allow(REAL.flip(1)[:, None, None]),
    "window": masks.window(3, 2),
}


def recording(mask=None, count=2, tokens=TOKENS, keys=None, dtype=torch.float32, seed=5):
    """Sharp random heads, two layers of them."""
    make = torch.Generator().manual_seed(seed)
    shapes = (BATCH, HEADS, tokens, DIM), (BATCH, HEADS, keys or tokens, DIM)
    spec = Spec(scores.scaled_dot(), mask, rg.normalisers.softmax())
    calls = []
    for layer in range(count):
        q, k = (2 * torch.randn(shape, generator=make) for shape in shapes)
        calls.append(Call(f"layer.{layer}", 0, q.to(dtype), k.to(dtype), spec, cross=keys is not None))
    ids = torch.arange(tokens) + torch.tensor([[100], [200]])
    return Recording(calls, {0: {"input_ids": ids}})


def real_rows(mask):
    if mask == "padded at the left":
        return REAL
    return REAL.flip(1) if mask == "padded at the right" else torch.ones(BATCH, TOKENS, dtype=torch.bool)


def dense_profile(p, real):
    """(heads, measures) from the matrix p (batch, heads, n, n)."""
    at = torch.arange(TOKENS)
    first = real.int().argmax(-1)
    previous = torch.zeros(p.shape[:-1])
    for b in range(BATCH):
        for i in range(int(first[b]) + 1, TOKENS):
            previous[b, :, i] = p[b, :, i, i - 1]
    rows = {
        "entropy": torch.special.entr(p).sum(-1),
        "saturation": p.square().sum(-1),
        "distance": (p * (at - at[:, None]).abs()).sum(-1),
        "first": torch.stack([p[b, :, :, first[b]] for b in range(BATCH)]),
        "previous": previous,
        "itself": p.diagonal(dim1=-2, dim2=-1),
    }
    counted = real[:, None].expand(-1, HEADS, -1)
    return {name: [float(t[:, h][counted[:, h]].mean()) for h in range(HEADS)] for name, t in rows.items()}


@pytest.mark.parametrize("mask", MASKS)
def test_profiles_are_those_of_the_dense_matrix(mask):
    made = recording(MASKS[mask])
    table = analysis.profiles(made)
    assert len(table) == 2 * HEADS
    for layer in table.layers:
        wanted = dense_profile(made[layer].dense(), real_rows(mask))
        found = [row for row in table if row.layer == layer]
        for name, numbers in wanted.items():
            assert [getattr(row, name) for row in found] == pytest.approx(numbers, abs=1e-5), name


@pytest.mark.parametrize("separators", [[103, 205], torch.arange(TOKENS) == 4])
def test_separators_are_ids_or_places(separators):
    made = recording(masks.causal())
    marks = torch.zeros(BATCH, TOKENS, dtype=torch.bool)
    if isinstance(separators, list):
        marks[0, 3] = marks[1, 5] = True
    else:
        marks[:, 4] = True
    found = analysis.profiles(made, layers="layer.1", separators=separators).column("separators")
    wanted = (made["layer.1"].dense() * marks[:, None, None]).sum(-1).mean((0, 2))
    assert found == pytest.approx(wanted.tolist(), abs=1e-6)


class Letters:
    """Every third id is a full stop."""

    def decode(self, ids):
        return "." if ids[0] % 3 == 0 else f"word {ids[0]}"


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_tokens_may_be_texts(kept, tmp_path):
    held = recording()
    made = Recording(held.calls, held.inputs, tokenizer=Letters())
    if kept == "in a file":
        made.save(tmp_path / "run.regard")
        made = rg.open(tmp_path / "run.regard")
    found = analysis.profiles(made, separators=["."]).column("separators")
    marks = held.inputs[0]["input_ids"] % 3 == 0
    wanted = torch.cat([(made[f"layer.{i}"].dense() * marks[:, None, None]).sum(-1).mean((0, 2)) for i in (0, 1)])
    assert found == pytest.approx(wanted.tolist(), abs=1e-6)
    for table in (analysis.receivers(made, sequence=1), analysis.rollout(made, token=0, sequence=1)):
        ids = [200 + position for position in table.column("position")]
        assert list(table.column("token")) == [Letters().decode([number]) for number in ids]


@pytest.mark.parametrize("separators", [["."], [7]])
def test_separators_that_cannot_be_found_are_an_error(separators):
    made = recording()
    made.inputs.clear()
    with pytest.raises(ChoiceError, match="bool tensor"):
        analysis.profiles(made, separators=separators)


def test_cross_attention_has_no_distance():
    row = next(iter(analysis.profiles(recording(keys=7))))
    assert math.isnan(row.distance) and math.isnan(row.previous) and math.isnan(row.itself)
    assert 0 < row.first < 1 and row.entropy > 0


def test_rows_of_a_cache_stand_behind_it():
    """The last queries of a long causal matrix have the profile of those rows."""
    whole = recording(masks.causal(), count=1)
    (call,) = whole.calls
    last = Call("last", 0, call.query[..., -3:, :], call.key, Spec(
        scores.scaled_dot(), masks.causal("bottom-right"), call.spec.normaliser))  # fmt: skip
    p = whole["layer.0"].dense()[..., -3:, :]
    found = analysis.profiles(Recording([last]))
    assert found.column("itself") == pytest.approx(
        p.diagonal(TOKENS - 3, -2, -1).mean((0, 2)).tolist(), abs=1e-6)  # fmt: skip
    gap = torch.arange(TOKENS - 3, TOKENS)[:, None] - torch.arange(TOKENS)
    assert found.column("distance") == pytest.approx((p * gap).sum(-1).mean((0, 2)).tolist(), abs=1e-5)


@pytest.mark.parametrize("mask", MASKS)
def test_similarity_is_the_mean_cosine_of_rows(mask, monkeypatch):
    monkeypatch.setattr("regard.analysis._similarity.WEIGHTS_AT_ONCE", 4 * 2 * BATCH * HEADS * TOKENS)  # several blocks
    made = recording(MASKS[mask])
    table = analysis.similar(made)
    p = torch.cat([made[name].dense().transpose(0, 1) for name in ("layer.0", "layer.1")]).double()
    unit = torch.nn.functional.normalize(p, dim=-1)
    cosines = torch.einsum("abij,cbij->acbi", unit, unit)
    wanted = cosines[:, :, real_rows(mask)].mean(-1)
    torch.testing.assert_close(table.matrix, wanted, atol=1e-5, rtol=0)
    best = table.rows[0]
    heads = [(name, head) for name in ("layer.0", "layer.1") for head in range(HEADS)]
    a, b = heads.index((best.layer, best.head)), heads.index((best.other_layer, best.other_head))
    assert best.similarity == pytest.approx(float(wanted.triu(1).max())) == pytest.approx(float(wanted[a, b]))


def test_a_head_that_is_there_twice_is_redundant():
    made = recording(count=1)
    (call,) = made.calls
    twin = Call("twin", 0, call.query, call.key, call.spec)
    table = analysis.similar(Recording([call, twin])).redundant()
    assert [(row.layer, row.head, row.other_layer, row.other_head) for row in table] == [
        ("twin", head, "layer.0", head) for head in range(HEADS)
    ]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("residual", [0.5, 0.2])
def test_rollout_and_flow_are_rows_and_columns_of_the_product(mask, residual):
    made = recording(MASKS[mask], count=3)
    product = torch.eye(TOKENS, dtype=torch.float64).expand(BATCH, -1, -1)
    for layer in range(3):
        weights = made[f"layer.{layer}"]
        p = weights.dense().double()
        p = p + torch.diag_embed(weights.empty_rows().double())
        product = (residual * torch.eye(TOKENS) + (1 - residual) * p.mean(1)) @ product
    for sequence, token in ((0, 5), (1, -1)):
        options = {"sequence": sequence, "residual": residual}
        row = analysis.rollout(made, token, **options)
        assert row.column("share") == pytest.approx(product[sequence, token].tolist(), abs=1e-5)
        assert sum(row.column("share")) == pytest.approx(1, abs=1e-5)
        column = analysis.flow(made, token, **options)
        assert column.column("share") == pytest.approx(product[sequence, :, token].tolist(), abs=1e-5)
        assert column.column("token")[2] == str(102 + 100 * sequence)
        assert tuple(column.depths.shape) == (3, TOKENS)


def test_rollout_of_half_precision_keeps_its_digits():
    made = recording(masks.causal(), count=5, dtype=torch.bfloat16)
    assert sum(analysis.rollout(made, -1).column("share")) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("mask", MASKS)
def test_receivers_are_the_largest_columns(mask):
    made, real = recording(MASKS[mask]), real_rows(mask)
    p = torch.cat([made[f"layer.{i}"].dense().transpose(0, 1) for i in (0, 1)])  # (heads, batch, n, m)
    for sequence in range(BATCH):
        shares = p[:, sequence][:, real[sequence]].mean(1)
        found = analysis.receivers(made, 3, per="head", sequence=sequence)
        assert found.column("share") == pytest.approx(shares.topk(3).values.flatten().tolist(), abs=1e-6)
        assert found.column("position") == tuple(shares.topk(3).indices.flatten().tolist())
        (best,) = analysis.receivers(made, 1, sequence=sequence)
        assert best.share == pytest.approx(float(shares.mean(0).max()), abs=1e-6)
    assert len(analysis.receivers(made, 3, per="layer")) == 6


def test_a_recording_compared_with_itself_has_not_changed():
    made = recording(masks.causal())
    table = analysis.compare(made, made)
    assert table.column("similarity") == pytest.approx([1.0] * 6)
    assert table.column("entropy") == (0.0,) * 6


def test_comparison_finds_the_head_that_changed():
    before, after = recording(masks.causal()), recording(masks.causal())
    after.calls[1].query[:, 2] *= 5  # sharper
    (row,) = analysis.compare(before, after).most(1)
    assert (row.layer, row.head) == ("layer.1", 2)
    assert row.entropy < -0.3 and row.saturation > 0.1
    p, q = (r["layer.1"].dense()[:, 2] for r in (before, after))
    assert row.similarity == pytest.approx(float(torch.cosine_similarity(p, q, dim=-1).mean()), abs=1e-5)


def test_prompts_of_other_lengths_compare_by_their_measures():
    table = analysis.compare(recording(tokens=7), recording())
    assert all(math.isnan(row.similarity) for row in table)
    assert all(not math.isnan(row.distance) for row in table)


def test_choices_that_do_not_exist_are_named():
    made = recording()
    for ask, message in (
        (lambda: analysis.profiles(made, layers="encoder.*"), r"layer\.0, layer\.1"),
        (lambda: analysis.profiles(made, step=3), "the steps are 0"),
        (lambda: analysis.rollout(made, 11), "sequence of 11"),
        (lambda: analysis.rollout(made, 0, sequence=2), "batch of 2"),
        (lambda: analysis.rollout(recording(keys=7), 0), "cross attention"),
        (lambda: analysis.receivers(made, per="token"), "recording, layer, head"),
        (lambda: analysis.compare(made, recording(count=3)), r"layer\.2"),
        (lambda: analysis.similar(Recording([*recording(tokens=7, count=1).calls, recording().calls[1]])), "layers="),
    ):
        with pytest.raises(ChoiceError, match=message):
            ask()


@torch.no_grad()
def test_the_questions_work_on_a_model_of_an_encoder_and_a_decoder():
    model, inputs = tiny_models.build("BART"), tiny_models.MODELS["BART"].inputs()
    with rg.record(model) as made:
        model(**inputs)
    assert len(analysis.profiles(made, separators=[5])) == 6 * 4
    assert len(analysis.rollout(made, 0, layers="encoder.*")) == 11
    tokens = analysis.receivers(made, 3, per="layer", layers="*encoder_attn").column("token")
    assert set(tokens) <= {str(number) for number in inputs["input_ids"][0].tolist()}


@torch.no_grad()
def test_a_layer_without_heads_has_one():
    layer = rg.nn.AdditiveAttention(12, 12, hidden=17)
    x = torch.randn(2, 7, 12)
    model = nn.Module()
    model.layer, model.forward = layer, lambda x: layer(x, x, x)
    with rg.record(model) as made:
        model(x)
    (row,) = analysis.profiles(made)
    assert row.entropy == pytest.approx(float(made["layer"].entropy().mean()), abs=1e-5)


def test_tables_print_themselves():
    made = recording()
    for table in (
        analysis.profiles(made), analysis.similar(made), analysis.rollout(made, 0),
        analysis.receivers(made), analysis.compare(made, made),
    ):  # fmt: skip
        lines = str(table).splitlines()
        assert len(lines) > 2
        assert set(table.to_dict()) == set(table.columns)


def test_separators_are_printed_only_where_some_were_named():
    made = recording()
    some = torch.arange(made.layers[0].shape[-1]) == 3
    for table in (analysis.profiles, lambda made, **named: analysis.compare(made, made, **named)):
        assert "separators" not in str(table(made)) and "nan" not in str(table(made))
        assert "separators" in str(table(made, separators=some))


def numbers(ax):
    return torch.from_numpy(ax.images[0].get_array().data)


class TestPictures:
    def test_profiles_have_one_cell_a_head(self):
        table = analysis.profiles(recording(masks.causal()))
        for column in ("entropy", "first"):
            image = numbers(rg.plot.profiles(table, column))
            assert image.flatten().tolist() == pytest.approx(table.column(column))
        with pytest.raises(ChoiceError, match="entropy"):
            rg.plot.profiles(table, "colour")

    def test_changes_are_drawn_about_zero(self):
        table = analysis.compare(recording(), recording(seed=7))
        ax = rg.plot.profiles(table, "entropy")
        low, high = ax.images[0].get_clim()
        assert low is not None and high is not None and low == -high
        assert numbers(ax).flatten().tolist() == pytest.approx(table.column("entropy"))

    def test_similar_heads_and_depths_are_drawn_as_they_are(self):
        made = recording(masks.causal())
        table, walk = analysis.similar(made), analysis.rollout(made, -1)
        assert torch.equal(numbers(rg.plot.similar(table)), table.matrix)
        ax = rg.plot.depths(walk, xlabel="词")
        assert torch.equal(numbers(ax), walk.depths)
        assert ax.get_xlabel() == "词"
