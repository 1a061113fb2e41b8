"""Which heads of a model are saturated: measured on the model as it runs, and the model is none the worse for it."""

import math
import warnings

import numpy as np
import pytest
import tiny_folder
import torch
from matplotlib.figure import Figure
from torch import nn

import regard as rg
from regard import analysis, masks, normalisers, plot
from regard.errors import ChoiceError, DtypeError, IncompleteRecordingWarning, ShapeError
from regard.nn import HardAttention
from regard.plot import _fonts

BATCH, HEADS, N, M, DIM = 3, 2, 5, 7, 8
PADDING = torch.arange(N) >= torch.tensor([5, 2, 3])[:, None]  # True hides


def encoder(layers=2, **options):
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 16, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=True)


def scale_queries(attention, head, factor):
    """The head's rows of W_q and its bias: 0 makes its scores equal, a large number makes them far apart."""
    width = attention.embed_dim // attention.num_heads
    with torch.no_grad():
        attention.in_proj_weight[head * width : (head + 1) * width] *= factor


def by_hand(weights, seen, real=None):
    """(entropy, relative, saturation) a head of dense weights (batch, heads, n, m), query by query."""
    rows = []
    for head in range(weights.shape[1]):
        found = []
        for b, i in np.ndindex(weights.shape[0], weights.shape[2]):
            keys = int(seen[b, i].sum())
            if keys < 2 or (real is not None and not real[b, i]):
                continue
            p = weights[b, head, i][seen[b, i]]
            entropy = -sum(x * math.log(x) for x in p.tolist() if x > 0)
            found.append((entropy, entropy / math.log(keys), float((p**2).sum())))
        rows.append(np.mean(found, 0))
    return np.array(rows)


def numbers_of(table):
    return np.array([row[2:5] for row in table])


# The numbers


@pytest.mark.parametrize("attn", [None, "bool", "float", "heads"])
@pytest.mark.parametrize("padded", [None, "bool", "float"])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 11, "vdim": 13}, {"add_bias_kv": True}], ids=str)
def test_numbers_are_those_of_torchs_own_weights(attn, padded, options):
    layer = nn.MultiheadAttention(DIM, HEADS, batch_first=True, **options).double()
    query = torch.randn(BATCH, N, DIM).double()
    key = torch.randn(BATCH, M, options.get("kdim", DIM)).double()
    value = torch.randn(BATCH, M, options.get("vdim", DIM)).double()
    hidden = torch.rand(N, M) < 0.3
    hidden[:, 0] = False
    seen = ~hidden.expand(BATCH, N, M) if attn else torch.ones(BATCH, N, M, dtype=torch.bool)
    given = {
        None: None,
        "bool": hidden,
        "float": torch.randn(N, M).double().masked_fill(hidden, -math.inf),
        "heads": hidden.expand(BATCH * HEADS, N, M),
    }[attn]
    padding = torch.arange(M) >= torch.tensor([7, 2, 4])[:, None]
    if padded:
        seen = seen & ~padding[:, None]
    padding = {None: None, "bool": padding, "float": torch.zeros(BATCH, M).double().masked_fill(padding, -math.inf)}[
        padded
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather have both masks of one type
        call = (query, key, value, padding, True, given)
        weights = layer(*call, average_attn_weights=False)[1].detach()
        table = analysis.heads(layer, *call)
    if "add_bias_kv" in options:
        seen = torch.cat([seen, torch.ones(BATCH, N, 1, dtype=torch.bool)], -1)
    np.testing.assert_allclose(numbers_of(table), by_hand(weights, seen), rtol=1e-5)
    np.testing.assert_allclose(table.column("visible"), [seen.double().mean()] * HEADS)
    assert table.column("layer") == ("MultiheadAttention",) * HEADS
    assert table.column("head") == (0, 1)


@pytest.mark.parametrize("layout", ["batch_first", "batch_second", "unbatched"])
@pytest.mark.parametrize(
    "options", [{}, {"add_zero_attn": True}, {"add_zero_attn": True, "add_bias_kv": True}], ids=str
)
def test_every_layout_of_torch_is_understood(layout, options):
    layer = nn.MultiheadAttention(DIM, HEADS, batch_first=layout == "batch_first", **options).double()
    shapes = {"batch_first": (BATCH, N), "batch_second": (N, BATCH), "unbatched": (N,)}
    query, key = torch.randn(*shapes[layout], DIM).double(), torch.randn(*shapes[layout], DIM).double()
    weights = layer(query, key, key, average_attn_weights=False)[1].detach()
    weights = weights.unsqueeze(0) if layout == "unbatched" else weights
    table = analysis.heads(layer, query, key=key, value=key, need_weights=False)
    seen = torch.ones(weights.shape[0], *weights.shape[2:], dtype=torch.bool)
    np.testing.assert_allclose(numbers_of(table), by_hand(weights, seen), rtol=1e-5)


def test_padding_counts_visible_keys_and_real_queries_only():
    layer = nn.MultiheadAttention(DIM, HEADS, batch_first=True).double()
    x = torch.randn(BATCH, N, DIM).double()
    weights = layer(x, x, x, PADDING, average_attn_weights=False)[1].detach()
    table = analysis.heads(layer, x, x, x, key_padding_mask=PADDING)
    seen = (~PADDING)[:, None].expand(BATCH, N, N)
    np.testing.assert_allclose(numbers_of(table), by_hand(weights, seen, ~PADDING), rtol=1e-5)
    assert not np.allclose(numbers_of(table), by_hand(weights, seen))
    noise = torch.where(PADDING[..., None], 100 * torch.randn(BATCH, N, DIM).double(), x)
    np.testing.assert_allclose(numbers_of(analysis.heads(layer, noise, noise, noise, PADDING)), numbers_of(table))
    np.testing.assert_allclose(table.column("visible"), [(5 * 5 + 2 * 2 + 3 * 3) / (N * 10)] * HEADS)


def test_a_query_with_one_key_has_no_choice_and_no_vote():
    layer = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    scale_queries(layer, 0, 0)
    scale_queries(layer, 1, 1e4)
    x = torch.randn(BATCH, 2, DIM)
    causal = ~torch.ones(2, 2, dtype=torch.bool).tril()
    row, other = analysis.heads(layer, x, x, x, attn_mask=causal)
    assert (row.verdict, other.verdict) == ("uniform", "saturated")
    assert row.relative == pytest.approx(1) and row.saturation == pytest.approx(0.5)
    assert row.visible == 0.75
    (alone, _) = analysis.heads(layer, x[:, :1], x[:, :1], x[:, :1])
    assert alone.verdict == "undefined" and math.isnan(alone.entropy) and alone.visible == 1


# The verdicts


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_sharp_heads_are_saturated_and_flat_heads_uniform(training, padded):
    model = encoder().train(training)
    scale_queries(model.layers[0].self_attn, 1, 1e4)
    scale_queries(model.layers[1].self_attn, 0, 0)
    options = {"src_key_padding_mask": PADDING} if padded else {}
    with torch.no_grad():
        table = analysis.heads(model, torch.randn(BATCH, N, DIM), **options)
    assert [(row.layer, row.head, row.verdict) for row in table] == [
        ("layers.0.self_attn", 0, "fine"),
        ("layers.0.self_attn", 1, "saturated"),
        ("layers.1.self_attn", 0, "uniform"),
        ("layers.1.self_attn", 1, "fine"),
    ]
    assert table.rows[1].saturation > 0.95 and table.rows[2].relative == pytest.approx(1)
    assert table.layers == ("layers.0.self_attn", "layers.1.self_attn")
    assert [row.layer for row in table.saturated] == ["layers.0.self_attn"]
    assert [row.layer for row in table.uniform] == ["layers.1.self_attn"]


class Sharper(nn.MultiheadAttention):
    def forward(self, query, key, value, **options):
        return super().forward(1000 * query, key, value, **options)


def test_a_subclass_with_a_forward_of_its_own_is_not_taken_for_torchs():
    model, x = nn.ModuleList([nn.MultiheadAttention(8, 2), Sharper(8, 2)]), torch.randn(5, 3, 8)
    model.forward = lambda x: [layer(x, x, x) for layer in model]
    with pytest.warns(IncompleteRecordingWarning, match="1 is not measured: it is a Sharper with a forward of its own"):
        table = analysis.heads(model, x)
    assert set(table.column("layer")) == {"0"}


def test_a_layer_whose_own_forward_was_replaced_is_not_taken_for_torchs():
    layer, x = nn.MultiheadAttention(8, 2), torch.randn(5, 3, 8)
    plain = layer.forward
    layer.forward = lambda query, key, value, **options: plain(1000 * query, key, value, **options)
    warning = pytest.warns(IncompleteRecordingWarning, match="it is a MultiheadAttention with a forward of its own")
    with warning, pytest.raises(ChoiceError, match="it has MultiheadAttention, which did not run, or not by"):
        analysis.heads(layer, x, x, x)


def test_heads_inside_a_recording_are_those_outside():
    layer, x = nn.MultiheadAttention(8, 2), torch.randn(5, 3, 8)
    outside = analysis.heads(layer, x, x, x)
    with rg.record(layer):
        inside = analysis.heads(layer, x, x, x)
    assert inside.column("entropy") == outside.column("entropy")


def test_thresholds_are_where_they_are_said_to_be():
    class Given(nn.Module):
        def forward(self, p):
            bias = torch.log(torch.tensor([[p, 1 - p]], dtype=torch.float64))
            zero = torch.zeros(1, 1, dtype=torch.float64)
            return rg.Weights(zero, torch.zeros(2, 1, dtype=torch.float64), rg.scores.uniform() + rg.scores.bias(bias))

    def verdict(p):
        return analysis.heads(Given(), p).rows[0].verdict

    sharp = 0.5 + math.sqrt(2 * analysis.SATURATED - 1) / 2  # p² + (1 - p)² = SATURATED
    assert (verdict(sharp + 1e-6), verdict(sharp - 1e-6)) == ("saturated", "fine")
    assert (verdict(0.5), verdict(0.55), verdict(0.57)) == ("uniform", "uniform", "fine")  # relative 0.993, 0.986


def test_encoder_and_decoder_and_what_is_between():
    model = nn.Transformer(DIM, HEADS, 1, 1, 16, batch_first=True).eval()
    table = analysis.heads(model, torch.randn(BATCH, N, DIM), torch.randn(BATCH, M, DIM))
    assert table.layers == (
        "encoder.layers.0.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.0.multihead_attn",
    )


# regard's own layers


class Reader(nn.Module):
    """Hands on what its inner layer returned, in a dict."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *given):
        return {"attention": [self.inner(*given)], "other": None}


class Attend(nn.Module):
    def __init__(self, **words):
        super().__init__()
        self.words = words

    def forward(self, q, k, v):
        return rg.attend(q, k, v, **self.words)


def given(*lead, n=N, m=M):
    return torch.randn(*lead, n, DIM), torch.randn(*lead, m, DIM), torch.randn(*lead, m, DIM)


def test_weights_are_found_wherever_a_layer_returns_them_and_once():
    q, k, v = given(BATCH, HEADS)
    table = analysis.heads(Reader(Attend()), q.double(), k.double(), v.double())
    assert table.layers == ("inner",)
    dense = rg.Weights(q.double(), k.double()).dense()
    expected = by_hand(dense, torch.ones(BATCH, N, M, dtype=torch.bool))
    np.testing.assert_allclose(numbers_of(table), expected, rtol=1e-6)


def test_three_dimensions_are_a_batch_unless_the_layer_has_heads():
    layer = Attend()
    assert len(analysis.heads(layer, *given(HEADS))) == 1
    layer.num_heads = HEADS
    assert len(analysis.heads(layer, *given(HEADS))) == HEADS


def test_padding_of_a_regard_mask_counts():
    q, k, v = (x.double() for x in given(BATCH))
    (row,) = analysis.heads(Attend(mask=masks.padding(torch.tensor([7, 3, 0]))), q, k, v)
    dense = rg.Weights(q, k, mask=masks.padding(torch.tensor([7, 3, 0]))).dense()
    seen = (torch.arange(M) < torch.tensor([7, 3, 0])[:, None])[:, None].expand(BATCH, N, M)
    np.testing.assert_allclose([row[2:5]], by_hand(dense[:, None], seen), rtol=1e-6)
    assert row.visible == pytest.approx(10 / (3 * M))


@pytest.mark.parametrize("training", [True, False])
def test_hard_attention_is_judged_by_what_it_chooses_from(training):
    layer = HardAttention(DIM, DIM).train(training)
    q, k, v = given(BATCH)
    (row,) = analysis.heads(layer, q, k, v)
    soft = rg.Weights(q, k, rg.scores.general(layer.w))
    assert row.entropy == pytest.approx(soft.entropy().mean().item(), rel=1e-5)
    assert 0 < row.relative < 1


def test_rows_that_are_no_distribution_are_undefined():
    (row,) = analysis.heads(Attend(normaliser=normalisers.sigmoid()), *given())
    assert row.verdict == "undefined" and math.isnan(row.relative) and row.visible == 1


def test_broken_numbers_are_undefined_and_not_fine():
    q, k, v = given()
    (row,) = analysis.heads(Attend(), q * math.nan, k, v)
    assert row.verdict == "undefined"


def test_a_layer_that_runs_twice_has_two_rows():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

        def forward(self, x):
            x = self.attention(x, x, x)[0]
            return self.attention(x, x, x)[0]

    assert analysis.heads(Twice(), torch.randn(BATCH, N, DIM)).layers == ("attention", "attention (call 2)")


# The model is left as it was


def hooks_of(model):
    return [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]


@pytest.mark.parametrize("fast", [True, False])
def test_the_model_is_left_as_it_was(fast):
    model, x = encoder().eval(), torch.randn(BATCH, N, DIM)
    torch.backends.mha.set_fastpath_enabled(fast)
    try:
        with torch.no_grad():
            before = model(x, src_key_padding_mask=PADDING)
            state = torch.get_rng_state()
            analysis.heads(model, x, src_key_padding_mask=PADDING)
            assert torch.equal(torch.get_rng_state(), state)
            assert torch.backends.mha.get_fastpath_enabled() == fast
            after = model(x, src_key_padding_mask=PADDING)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert torch.equal(before, after)
    assert not any(hooks_of(model))
    assert not model.training


def test_looking_does_not_change_what_the_model_computes():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = encoder(dropout=0.5)

        def forward(self, x):
            seen.append(self.inner(x))
            return seen[-1]

    model, x = Spy(), torch.randn(BATCH, N, DIM)
    for look in (lambda: model(x), lambda: analysis.heads(model, x)):
        torch.manual_seed(0)
        look()
    assert torch.equal(*seen)
    assert seen[1].requires_grad  # gradients are left to the user
    assert all(p.grad is None for p in model.parameters())


def test_the_model_is_left_as_it_was_also_after_an_error():
    model = encoder().eval()
    with pytest.raises(AssertionError):
        analysis.heads(model, torch.randn(BATCH, N, DIM + 1))
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(hooks_of(model))


def test_hooks_of_the_user_stay():
    model, calls = nn.MultiheadAttention(DIM, HEADS, batch_first=True), []
    model.register_forward_hook(lambda *_: calls.append(1))
    x = torch.randn(BATCH, N, DIM)
    analysis.heads(model, x, x, x)
    assert calls == [1] and hooks_of(model)[0] == 1


def test_a_model_without_attention_is_refused_by_what_was_looked_for():
    with pytest.raises(
        ChoiceError,
        match=r"looks for torch.nn.MultiheadAttention and for layers that return regard.Weights, and of Linear "
        r"nothing can be measured: it has no such layer that ran",
    ):
        analysis.heads(nn.Linear(2, 3), torch.randn(2))


def test_a_layer_that_did_not_run_is_named():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(DIM, HEADS)

        def forward(self, x):
            return x

    with pytest.raises(ChoiceError, match="it has attention, which did not run"):
        analysis.heads(Idle(), torch.randn(2))


# Models of Hugging Face, and recordings


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    """A model and its tokenizer, as `from_pretrained` gives them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_folder.make(tmp_path_factory.mktemp("model"))
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


TEXTS = ["w1 w2 w3 w4 w5", "w7 w8 w9"]


def test_a_hugging_face_model_reads_what_its_tokenizer_returns(hugging_face):
    model, tokenizer = hugging_face
    table = analysis.heads(model, tokenizer(TEXTS, padding=True, return_tensors="pt"))
    assert table.layers == ("model.layers.0.self_attn", "model.layers.1.self_attn") and len(table) == 8
    with torch.no_grad(), rg.record(model) as recording:
        model(**tokenizer(TEXTS, padding=True, return_tensors="pt"))
    assert table == analysis.heads(recording)
    weights = recording["model.layers.1.self_attn"]
    seen, real = weights.dense() > 0, torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    np.testing.assert_allclose(numbers_of(table)[4:], by_hand(weights.dense(), seen[:, 0], real), rtol=1e-4)


@pytest.mark.parametrize("form", ["lists", "np", "dict", "keywords"])
def test_one_text_is_read_in_every_form(hugging_face, form):
    model, tokenizer = hugging_face
    tensors = tokenizer(TEXTS[0], return_tensors="pt")
    expected = analysis.heads(model, tensors)
    if form == "keywords":
        assert analysis.heads(model, **tensors) == expected
    else:
        forms = {"lists": lambda: tokenizer(TEXTS[0]), "np": lambda: tokenizer(TEXTS[0], return_tensors="np")}
        assert analysis.heads(model, forms.get(form, lambda: dict(tensors))()) == expected


def test_texts_of_different_length_name_the_padding(hugging_face):
    model, tokenizer = hugging_face
    with pytest.raises(ShapeError, match=r"input_ids holds texts of different length: ask for .*padding=True"):
        analysis.heads(model, tokenizer(TEXTS))


def test_a_dict_that_is_an_argument_itself_is_handed_on():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

        def forward(self, given):
            return self.attention(given["x"], given["x"], given["x"])

    assert len(analysis.heads(Reader(), {"x": torch.randn(BATCH, N, DIM)})) == HEADS


def test_a_recording_is_measured_as_its_model_is():
    model, x = encoder().eval(), torch.randn(BATCH, N, DIM)
    with torch.no_grad(), rg.record(model) as recording:
        model(x, src_key_padding_mask=PADDING)
    table = analysis.heads(model, x, src_key_padding_mask=PADDING)
    np.testing.assert_allclose(numbers_of(analysis.heads(recording)), numbers_of(table), rtol=1e-4)
    with torch.no_grad(), rg.record(model) as twice:
        model(x), model(x)
    assert analysis.heads(twice).layers[:2] == ("layers.0.self_attn (step 0)", "layers.1.self_attn (step 0)")


def test_what_is_no_model_and_no_recording_is_refused():
    with pytest.raises(DtypeError, match="heads takes a model or a recording of one, int came"):
        analysis.heads(3)
    layer = rg.nn.SelfAttention(8, 2)
    with rg.record(layer) as recording:
        layer(torch.randn(1, 5, 8))
    with pytest.raises(ChoiceError, match="takes no inputs"):
        analysis.heads(recording, torch.randn(1, 5, 8))


# The table and the picture


def mixed():
    rows = [
        analysis.HeadRow("encoder.layers.0.self_attn", 0, 1.0, 0.5, 0.3, 1.0, "fine"),
        analysis.HeadRow("encoder.layers.0.self_attn", 1, 0.1, 0.05, 0.9, 1.0, "saturated"),
        analysis.HeadRow("encoder.layers.0.self_attn", 2, math.nan, math.nan, math.nan, 1.0, "undefined"),
        analysis.HeadRow("encoder.layers.1.self_attn", 0, 2.0, 1.0, 0.1, 0.5, "uniform"),
    ]
    return analysis.HeadTable(tuple(rows))


def test_table_is_read_in_many_ways():
    table = mixed()
    assert len(table) == 4
    assert list(table.to_dict()) == ["layer", "head", "entropy", "relative", "saturation", "visible", "verdict"]
    assert table.column("verdict") == ("fine", "saturated", "undefined", "uniform")
    lines = str(table).splitlines()
    assert len(lines) == 5 and len({len(line) for line in lines}) == 1
    assert lines[0].split() == list(analysis.HeadRow._fields)
    assert lines[2].split() == ["encoder.layers.0.self_attn", "1", "0.1000", "0.0500", "0.9000", "1.0000", "saturated"]
    with pytest.raises(ChoiceError, match="no column 'size', its columns are layer, head, entropy"):
        table.column("size")


@pytest.mark.parametrize("column", ["saturation", "relative"])
def test_picture_has_a_cell_for_each_head(column):
    ax = plot.heads(mixed(), column=column)
    ax.get_figure().savefig("/dev/null", format="png")
    expected = {
        "relative": [[0.5, 0.05, np.nan], [1.0, np.nan, np.nan]],
        "saturation": [[0.3, 0.9, np.nan], [0.1, np.nan, np.nan]],
    }
    cells = ax.images[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(cells.astype(float), np.nan), expected[column])
    assert ax.images[0].get_clim() == (0, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Head", "Layer")
    assert [label.get_text() for label in ax.get_yticklabels()] == list(mixed().layers)


def test_picture_marks_the_verdicts():
    ax = plot.heads(mixed())
    marks = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert marks == {"saturated (1)": [[1, 0]], "uniform (1)": [[0, 1]], "undefined (1)": [[2, 0]]}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(marks)
    fine = analysis.HeadTable(mixed().rows[:1])
    assert plot.heads(fine).get_legend() is None


def test_the_end_of_a_long_name_is_kept():
    name = "model.very_long_name_of_a_branch.layers.{}.self_attention"
    rows = tuple(analysis.HeadRow(name.format(i), 0, 1.0, 0.5, 0.3, 1.0, "fine") for i in range(2))
    ax = plot.heads(analysis.HeadTable(rows))
    ax.get_figure().savefig("/dev/null", format="png")
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert [text[-17:] for text in shown] == [".0.self_attention", ".1.self_attention"]
    assert all(text.startswith("…") for text in shown)


@pytest.mark.skipif(_fonts.find_cjk_family() is None, reason="no Chinese font is installed")
def test_the_texts_of_the_picture_may_be_chinese():
    names = {"saturated": "饱和", "uniform": "均匀", "undefined": "无定义"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot.heads(
            mixed(), ax=Figure().subplots(), xlabel="头", ylabel="层", title="注意力头", label="相对熵", names=names
        )
        ax.get_figure().savefig("/dev/null", format="png")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["饱和 (1)", "均匀 (1)", "无定义 (1)"]
    bar = ax.get_figure().axes[1].yaxis.label
    assert (bar.get_text(), bar.get_rotation()) == ("相\n对\n熵", 0)  # in a column, not lying on its side
    assert plot.heads(mixed()).yaxis.label.get_rotation() == 90


def test_picture_is_drawn_where_the_user_says():
    mine = Figure().subplots()
    assert plot.heads(mixed(), ax=mine, colorbar=False) is mine
    assert len(mine.get_figure().axes) == 1


def test_picture_refuses_what_it_does_not_offer():
    with pytest.raises(ChoiceError, match="column is one of saturation, relative, not 'entropy'"):
        plot.heads(mixed(), column="entropy")
    with pytest.raises(ShapeError, match="nothing to draw in a table without heads"):
        plot.heads(analysis.HeadTable(()))
