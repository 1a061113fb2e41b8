"""Heatmaps, labels and fonts, asserted on the artists of the figure."""

import subprocess
import sys
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
import torch
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from web_viewer import Spelling

import regard as rg
from regard import analysis, masks, plot
from regard.errors import ChoiceError, DtypeError, ShapeError
from regard.plot import _fonts, _labels, _matrix_part
from regard.seq2seq import length_table

SEGMENTS = ["他爸有 2 米高", "他从小的数学成绩并不好", "经常旷课", "他爱吃苹果", "他血型是 A"]
needs_font = pytest.mark.skipif(_fonts.find_cjk_family() is None, reason="no Chinese font is installed")


def render(picture):
    figure = picture.get_figure() if isinstance(picture, Axes) else picture
    figure.savefig("/dev/null", format="png")
    return figure


def grid_of(figure):
    """The axes that hold a matrix, as rows of columns; the rest are colour bars."""
    axes = [ax for ax in figure.axes if ax.images]
    columns = len({round(ax.get_position().x0, 6) for ax in axes})
    return [axes[i : i + columns] for i in range(0, len(axes), columns)]


def weights(n=7, m=11, **terms):
    return rg.Weights(torch.randn(n, 3), torch.randn(m, 3), **terms)


# The grid


@pytest.fixture
def heads():
    return plot.show_heatmaps(
        torch.rand(2, 3, 5, 7), xlabel="Keys", ylabel="Queries", titles=["a", "b", "c"], figsize=(6, 4)
    )


def test_grid_has_the_shape_of_its_matrices(heads):
    grid = grid_of(render(heads))
    assert [len(row) for row in grid] == [3, 3]
    assert {ax.images[0].get_array().shape for row in grid for ax in row} == {(5, 7)}


def test_grid_draws_each_matrix_in_its_place():
    matrices = torch.rand(2, 3, 5, 7)
    grid = grid_of(render(plot.show_heatmaps(matrices, "k", "q")))
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(grid[i][j].images[0].get_array(), matrices[i, j], rtol=1e-6)


def test_grid_labels_are_on_the_last_row_and_the_first_column_only(heads):
    grid = grid_of(render(heads))
    assert [[ax.get_xlabel() for ax in row] for row in grid] == [[""] * 3, ["Keys"] * 3]
    assert [[ax.get_ylabel() for ax in row] for row in grid] == [["Queries", "", ""]] * 2


def test_grid_has_one_title_a_column(heads):
    assert [[ax.get_title() for ax in row] for row in grid_of(render(heads))] == [["a", "b", "c"], [""] * 3]


def test_grid_without_titles_has_none():
    figure = plot.show_heatmaps(torch.rand(1, 2, 5, 7), "k", "q")
    assert {ax.get_title() for ax in figure.axes} == {""}


def test_grid_axes_are_shared(heads):
    first, *others = [ax for row in grid_of(render(heads)) for ax in row]
    assert all(first.get_shared_x_axes().joined(first, ax) for ax in others)
    assert all(first.get_shared_y_axes().joined(first, ax) for ax in others)


def test_grid_has_one_colour_bar_and_one_colour_scale():
    matrices = torch.zeros(2, 3, 5, 7)
    matrices[1, 2, 4, 6] = 8.0
    figure = render(plot.show_heatmaps(matrices, "k", "q"))
    grid = [ax for row in grid_of(figure) for ax in row]
    assert len(figure.axes) == len(grid) + 1
    assert {ax.images[0].get_clim() for ax in grid} == {(0.0, 8.0)}


def test_scale_of_negative_numbers_reaches_down_to_them():
    figure = plot.show_heatmaps([[[[-2.0, 3.0]]]], "k", "q")
    assert figure.axes[0].images[0].get_clim() == (-2.0, 3.0)


@pytest.mark.parametrize(("constant", "limits"), [(0.0, (0, 1)), (2.0, (0, 2)), (-1.0, (-1, 0))])
def test_constant_matrix_has_a_colour_scale_that_is_not_empty(constant, limits):
    figure = render(plot.show_heatmaps(torch.full((1, 1, 5, 7), constant), "k", "q"))
    image = figure.axes[0].images[0]
    assert image.get_clim() == limits
    assert (image.get_array() == constant).all()


def test_nan_is_grey_and_not_zero():
    image = plot.heatmap([[float("nan"), 1.0], [0.5, 0.5]]).images[0]
    assert image.cmap(image.norm(image.get_array()))[0, 0].tolist() == [0.75, 0.75, 0.75, 1.0]


def test_figsize_is_the_whole_figure(heads):
    assert render(heads).get_size_inches().tolist() == [6, 4]
    assert plot.show_heatmaps(torch.rand(1, 1, 5, 7), "k", "q").get_size_inches().tolist() == [2.5, 2.5]


def test_default_colour_map_is_reds():
    matrix = torch.rand(1, 1, 5, 7)
    assert plot.show_heatmaps(matrix, "k", "q").axes[0].images[0].get_cmap().name == "Reds"
    assert plot.show_heatmaps(matrix, "k", "q", cmap="viridis").axes[0].images[0].get_cmap().name == "viridis"


@pytest.mark.parametrize(
    "matrices",
    [
        torch.eye(5).reshape(1, 1, 5, 5).requires_grad_(),
        torch.eye(5, dtype=torch.bfloat16).reshape(1, 1, 5, 5),
        torch.eye(5, dtype=torch.bool).reshape(1, 1, 5, 5),
        np.eye(5).reshape(1, 1, 5, 5),
        [[torch.eye(5)]],
        [[np.eye(5).tolist()]],
        rg.Weights(100 * torch.eye(5)[None, None], torch.eye(5)[None, None]),
    ],
    ids=["grad", "bfloat16", "bool", "numpy", "list of tensors", "lists", "weights"],
)
def test_grid_takes_tensors_arrays_lists_and_weights(matrices):
    np.testing.assert_allclose(
        plot.show_heatmaps(matrices, "k", "q").axes[0].images[0].get_array(), np.eye(5), atol=1e-9
    )


@pytest.mark.parametrize(
    ("matrices", "titles", "message"),
    [
        (torch.rand(5, 7), None, r"these matrices have 2 dimensions: \(5, 7\).*matrices\[None, None\]"),
        (torch.rand(3, 5, 7), None, r"3 dimensions: \(3, 5, 7\)"),
        (torch.rand(2, 3, 0, 7), None, r"nothing to draw in matrices of shape \(2, 3, 0, 7\)"),
        ([[torch.rand(5, 7), torch.rand(5, 5)]], None, r"must have one shape, these have \[\(5, 7\), \(5, 5\)\]"),
        (torch.rand(2, 3, 5, 7), ["a", "b"], "one title for each of the 3 columns, 2 titles came"),
        (torch.rand(2, 3, 5, 7), "abc", "the one text 'abc' came"),
    ],
)
def test_grid_refuses_matrices_and_titles_of_wrong_shape(matrices, titles, message):
    with pytest.raises(ShapeError, match=message):
        plot.show_heatmaps(matrices, "k", "q", titles=titles)


def test_text_is_not_a_matrix():
    with pytest.raises(DtypeError, match="only numbers can be drawn, str came: 'cat'"):
        plot.show_heatmaps([[["cat"]]], "k", "q")


# One matrix


def test_weights_draw_themselves():
    tokens = ["the", "cat", "sat"]
    w = weights(3, 3)
    ax = w.plot(tokens, title="one head")
    render(ax)
    np.testing.assert_allclose(ax.images[0].get_array(), w.dense(), rtol=1e-6)
    assert [label.get_text() for label in ax.get_xticklabels()] == tokens
    assert [label.get_text() for label in ax.get_yticklabels()] == tokens
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("Key", "Query", "one head")


def test_first_query_is_on_top():
    bottom, top = weights().plot().get_ylim()
    assert bottom > top


def test_keys_and_queries_have_labels_of_their_own():
    ax = plot.heatmap(weights(2, 3), ["a", "b", "c"], ["x", "y"])
    render(ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x", "y"]


def test_one_head_is_chosen_by_its_index():
    w = rg.Weights(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4))
    image = plot.heatmap(w, head=(1, 2)).images[0]
    np.testing.assert_allclose(image.get_array(), w.dense()[1, 2], rtol=1e-6)
    np.testing.assert_allclose(plot.heatmap(w.dense(), head=(1, 2)).images[0].get_array(), image.get_array())


def test_leading_dimensions_of_one_need_no_index():
    w = rg.Weights(torch.randn(1, 1, 5, 4), torch.randn(1, 1, 7, 4))
    assert plot.heatmap(w).images[0].get_array().shape == (5, 7)


def test_long_weights_are_pooled_and_still_count_in_tokens():
    w = weights(600, 1200, mask=masks.window(50, 50, align="top-left"))
    ax = plot.heatmap(w, bins=60, pool="max")
    np.testing.assert_allclose(ax.images[0].get_array(), w.heatmap(60, "max"), rtol=1e-6)
    assert ax.get_xlim() == (-0.5, 1199.5)
    assert ax.get_ylim() == (599.5, -0.5)


@pytest.mark.parametrize("pool", ["mean", "max", "sum"])
def test_part_of_long_weights_is_pooled_like_the_whole(pool):
    w = weights(1300, 1300)
    ax = plot.heatmap(w, queries=slice(130, 1300), keys=slice(260, 910), bins=13, pool=pool)
    block = w.dense()[130:, 260:910].reshape(13, 90, 13, 50)
    expected = {"mean": block.mean((1, 3)), "max": block.amax((1, 3)), "sum": block.sum((1, 3))}[pool]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, rtol=1e-5)
    assert ax.get_xlim() == (259.5, 909.5)


def test_small_part_is_drawn_cell_by_cell():
    w = weights(700, 700)
    ax = plot.heatmap(w, [f"t{i}" for i in range(700)], queries=slice(10, 13), keys=slice(20, 25))
    render(ax)
    np.testing.assert_allclose(ax.images[0].get_array(), w[10:13, 20:25], rtol=1e-6)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["t10", "t11", "t12"]


def hatched(ax):
    """[first row, last row] of each hatched band."""
    bands = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches if patch.get_hatch()]
    return [[round(min(b.y0, b.y1) + 0.5), round(max(b.y0, b.y1) - 0.5)] for b in bands]


def test_empty_rows_are_hatched():
    ax = weights(7, 7, mask=masks.causal() & ~masks.window(2, 0)).plot()
    assert hatched(ax) == [[0, 2]]
    assert hatched(weights(7, 7, mask=masks.causal()).plot()) == []


def test_empty_rows_of_a_dense_matrix_are_hatched():
    matrix = torch.rand(7, 5)
    matrix[[1, 2, 6]] = 0
    assert hatched(plot.heatmap(matrix)) == [[1, 2], [6, 6]]
    assert hatched(plot.show_heatmaps(matrix[None, None], "k", "q").axes[0]) == [[1, 2], [6, 6]]


def test_row_of_zeros_among_negative_numbers_is_not_empty():
    assert hatched(plot.heatmap([[0.0, 0.0], [-1.0, 1.0]])) == []


def test_pooled_rows_are_hatched_only_where_all_are_empty():
    sees = torch.ones(1000, 1, dtype=torch.bool)
    sees[95:210] = False
    ax = plot.heatmap(weights(1000, 1000, mask=masks.allow(sees.expand(-1, 1000))), bins=100)
    assert hatched(ax) == [[100, 209]]


def test_numbers_can_be_written_into_the_cells():
    ax = plot.heatmap([[0.0, 1.0], [0.25, 0.75]], annotate=".2f")
    assert [text.get_text() for text in ax.texts] == ["0.00", "1.00", "0.25", "0.75"]
    assert ax.texts[0].get_color() != ax.texts[1].get_color() == "white"


def test_clip_leaves_the_darkest_cells_off_the_scale():
    matrix = torch.arange(100.0).reshape(10, 10)
    assert plot.heatmap(matrix, clip=0.5).images[0].get_clim() == (0.0, 49.5)
    assert plot.heatmap(matrix, limits=(0, 200), gamma=0.5).images[0].get_clim() == (0.0, 200.0)


def test_heatmap_draws_on_the_given_axes():
    mine = Figure().subplots()
    assert plot.heatmap(torch.eye(3), ax=mine) is mine


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": ["a"] * 7}, "tokens must have one label for each of the 11 keys, 7 came"),
        ({"query_tokens": ["a"]}, "query_tokens must have one label for each of the 7 queries, 1 came"),
        ({"head": 0}, r"draws one matrix \(queries, keys\), these weights have shape \(7, 11\)"),
    ],
)
def test_heatmap_refuses_labels_and_heads_that_do_not_fit(options, message):
    with pytest.raises(ShapeError, match=message):
        plot.heatmap(weights(), **options)


def test_heatmap_refuses_numbers_in_too_many_cells():
    large = weights(30, 200)
    with pytest.raises(ShapeError, match="up to 400 cells, this picture has 30 x 200"):
        plot.heatmap(large, annotate=".2f")
    part = plot.heatmap(large, annotate=".2f", queries=slice(0, 5), keys=slice(0, 7))
    assert len(part.texts) == 35


def test_many_heads_are_refused_with_an_example():
    w = rg.Weights(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4))
    with pytest.raises(ShapeError, match=r"have shape \(2, 3, 5, 7\): choose one, e.g. head=\(0, 0\)"):
        w.plot()
    with pytest.raises(ShapeError, match=r"head=\(2, 0\) is outside"):
        plot.heatmap(w, head=(2, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "median"}, "pool must be one of mean, sum, max, 'median' came"),
        ({"bins": 0}, "bins must be at least 1, 0 came"),
        ({"clip": 0.0}, "clip must be a share"),
        ({"keys": slice(None, None, 2)}, r"keys must be a slice of neighbours"),
        ({"queries": slice(5, 5)}, r"queries must be a slice of neighbours that is not empty"),
    ],
)
def test_heatmap_refuses_choices_it_does_not_offer(options, message):
    with pytest.raises(ChoiceError, match=message):
        plot.heatmap(weights(), **options)


# Labels


def overlaps(labels):
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return [(a, b) for a, b in pairwise(boxes) if a.overlaps(b)]


TOKEN_LISTS = {
    "short": ["a"] * 300,
    "words": ["attention"] * 100,
    "few long": ["internationalisation"] * 5,
    "chinese": SEGMENTS * 30,
    "characters": list("经常旷课他爱吃苹果") * 30,
    "mixed": ["他现在身高是 2.13 米", "Yao Ming"] * 40,
}


@pytest.mark.parametrize("tokens", TOKEN_LISTS.values(), ids=TOKEN_LISTS)
@pytest.mark.parametrize("size", [(2.5, 2.5), (4.8, 4.2), (12, 9)], ids=str)
@pytest.mark.filterwarnings("ignore:no installed font")
def test_labels_never_overlap(tokens, size):
    figure = plot.Picture(figsize=size, layout="compressed")
    ax = plot.heatmap(torch.rand(len(tokens), len(tokens)), tokens, ax=figure.subplots())
    render(figure)
    assert not overlaps(ax.get_xticklabels())
    assert not overlaps(ax.get_yticklabels())
    assert len(ax.get_yticks()) >= 2


def test_zooming_in_brings_back_the_labels_between():
    ax = plot.heatmap(torch.rand(200, 200), [f"token {i}" for i in range(200)])
    render(ax)
    assert len(ax.get_yticks()) < 50
    ax.set_ylim(57.5, 47.5)
    assert list(ax.get_yticks()) == list(range(48, 58))


@pytest.mark.parametrize(
    ("token", "shown"),
    [("$x$", r"\$x\$"), ("\n", "↵"), ("a\tb", "a⇥b"), ("x" * 40, "x" * 27 + "…"), ("</script>", "</script>")],
)
def test_special_characters_of_tokens_are_shown_as_signs(token, shown):
    ax = plot.heatmap(torch.eye(2), [token, "b"])
    render(ax)
    assert ax.get_yticklabels()[0].get_text() == shown


def test_chinese_stands_in_columns_where_it_does_not_fit_in_lines():
    assert _labels.stack("身高 2.13 米") == "身\n高\n2.13\n米"
    assert _labels.stack("Yao Ming") == "Yao Ming"


# Chinese


@needs_font
def test_chinese_labels_have_all_their_glyphs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot.heatmap(torch.eye(5), SEGMENTS, title="注意力", xlabel="键", ylabel="查询", ax=Figure().subplots())
        render(ax)
        render(plot.show_heatmaps(torch.rand(1, 2, 5, 5), "键", "查询", titles=["第一头", "第二头"]))
        render(plot.regression([0, 1], [0, 1], title="核回归"))


@needs_font
def test_rc_params_of_matplotlib_stay_unchanged():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    render(plot.heatmap(torch.eye(5), SEGMENTS))
    assert dict(mpl.rcParams) == before


def test_without_a_font_there_is_one_warning_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_fonts, "find_cjk_family", lambda: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        render(plot.heatmap(torch.eye(5), SEGMENTS, title="注意力"))
    assert [str(w.message).count("fonts-noto-cjk") for w in caught] == [1]


def test_many_pictures_give_one_warning(monkeypatch):
    monkeypatch.setattr(_fonts, "find_cjk_family", lambda: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for title in ("注意力", "权重", "查询"):
            plot.heatmap(torch.eye(2), title=title)
    assert len(caught) == 1


@pytest.mark.plain  # checked functions have frames of their own
def test_warning_points_at_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr(_fonts, "find_cjk_family", lambda: None)
    with pytest.warns(UserWarning, match="no installed font has Chinese characters") as caught:
        plot.heatmap(torch.eye(2), title="注意力")
    assert [w.filename for w in caught] == [__file__]


def test_font_is_found_by_name(monkeypatch):
    entries = [font_manager.FontEntry(name=name) for name in ("DejaVu Sans", "SimHei", "WenQuanYi Zen Hei")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", entries)
    assert _fonts.find_cjk_family() == "SimHei"


def test_font_installed_after_the_list_was_made_is_found(monkeypatch):
    added = []
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])
    monkeypatch.setattr(_fonts, "findSystemFonts", lambda: ["/fonts/NotoSansCJK-Regular.ttc", "/fonts/Arial.ttf"])
    monkeypatch.setattr(font_manager.fontManager, "addfont", added.append)
    assert _fonts.find_cjk_family() is None
    assert added == ["/fonts/NotoSansCJK-Regular.ttc"]


def test_latin_texts_do_not_look_for_a_font(monkeypatch):
    monkeypatch.setattr(_fonts, "find_cjk_family", lambda: pytest.fail("looked for a font"))
    render(plot.heatmap(torch.eye(2), ["naïve", "café"]))


# Curves and zoom


def test_saturation_has_a_panel_for_each_measurement():
    table = analysis.saturation([1, 4, 16], keys=8, queries=5, trials=2)
    figure = render(plot.saturation(table))
    assert len(figure.axes) == 4
    for ax, column in zip(figure.axes, ["variance", "entropy", "saturation", "jacobian"], strict=True):
        assert ax.get_xscale() == "log"
        unscaled, scaled = ax.lines[:2]
        assert tuple(unscaled.get_ydata()) == table.unscaled.column(column)
        assert tuple(scaled.get_ydata()) == table.scaled.column(column)
    assert figure.axes[0].get_yscale() == "log"


def test_zoom_marks_each_square_in_the_picture_before():
    w = weights(600, 600)
    figure = render(plot.zoom(w, [(100, 200, 50), (110, 220, 7)]))
    whole, part, cells = figure.axes
    np.testing.assert_allclose(cells.images[0].get_array(), w[110:117, 220:227], rtol=1e-6)
    squares = [next(p for p in ax.patches if isinstance(p, Rectangle)).get_bbox().bounds for ax in (whole, part)]
    assert squares == [(199.5, 99.5, 50, 50), (219.5, 109.5, 7, 7)]
    with pytest.raises(ChoiceError, match="at least one square"):
        plot.zoom(w, [])


# Figures


def test_figures_are_returned_and_pyplot_is_not_involved():
    code = (
        "import sys, torch, regard.plot as plot\n"
        "figure = plot.show_heatmaps(torch.eye(3)[None, None], 'k', 'q')\n"
        "plot.heatmap(torch.eye(3)).get_figure().savefig('/dev/null', format='png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_notebook_shows_figures_and_axes():
    for picture in (plot.show_heatmaps(torch.eye(3)[None, None], "k", "q"), plot.heatmap(torch.eye(3))):
        png, size = picture._repr_png_()
        assert png.startswith(b"\x89PNG")
        assert set(size) == {"width", "height"}
    assert plot.show_heatmaps(torch.eye(3)[None, None], "k", "q")._repr_png_()[1] == {"width": 250, "height": 250}


@pytest.fixture(scope="module")
def recorded():
    """A recording of two sequences whose tokens have texts."""
    model, inputs = tiny_models.build("BERT"), tiny_models.MODELS["BERT"].inputs()
    with torch.no_grad(), rg.record(model, tokenizer=Spelling([f"t{i}" for i in range(97)])) as made:
        model(**inputs)
    return made


AXES = {
    "heatmap": lambda made: plot.heatmap(torch.eye(3)),
    "weights.plot": lambda made: weights().plot(),
    "regression": lambda made: plot.regression([0, 1], [0, 1]),
    "heads": plot.heads,
    "profiles": plot.profiles,
    "similar": plot.similar,
    "depths": lambda made: plot.depths(analysis.rollout(made, 0)),
    "alignment": lambda made: plot.alignment(
        SimpleNamespace(weights=torch.eye(2), tokens=["a", "b"], source_tokens=["c", "d"])
    ),
    "relations": lambda made: plot.relations(rg.relate("He runs | He is tall", ["Is he small?"])),
}
LINE = torch.arange(9.0)[:, None].numpy()
FIGURES = {
    "show_heatmaps": lambda made: plot.show_heatmaps(torch.eye(3)[None, None], "k", "q"),
    "zoom": lambda made: plot.zoom(weights(600, 600), [(100, 200, 50)]),
    "saturation": lambda made: plot.saturation(analysis.saturation([1, 4], keys=3, queries=3, trials=2)),
    "lengths": lambda made: plot.lengths(length_table.read()),
    "partial_dependence": lambda made: plot.partial_dependence(
        rg.NadarayaWatson(bandwidth=1.0).fit(LINE, LINE[:, 0]), LINE
    ),
}


@pytest.mark.parametrize("name", [*AXES, *FIGURES])
def test_what_a_plot_function_returns_is_what_it_says_and_can_be_saved(name, recorded, tmp_path):
    picture = (AXES | FIGURES)[name](recorded)
    function = rg.Weights.plot if name == "weights.plot" else getattr(plot, name)
    promised = "Axes" if name == "weights.plot" else f"Returns the {'axes' if name in AXES else 'figure'}"
    assert promised in function.__doc__
    assert isinstance(picture, Axes if name in AXES else Figure)
    picture.savefig(tmp_path / "picture.svg")
    assert "<svg" in (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_every_plot_function_is_among_those():
    assert {*AXES, *FIGURES} - {"weights.plot"} == set(plot.__all__) - {"Picture"}


def test_axes_that_are_handed_in_stay_as_they_are():
    mine = Figure().subplots()
    assert plot.heatmap(torch.eye(3), ax=mine) is mine
    assert type(mine) is Axes and not hasattr(mine, "savefig")


def test_axes_in_a_part_of_a_figure_save_the_whole(tmp_path):
    ax = plot.Picture().subfigures(1, 2)[0].add_subplot(axes_class=type(plot.heatmap(torch.eye(3))))
    plot.heatmap(torch.eye(3), ax=ax).savefig(tmp_path / "whole.png")
    assert (tmp_path / "whole.png").read_bytes().startswith(b"\x89PNG")


# Recordings


def tick_texts(ax):
    render(ax)
    return [[label.get_text() for label in labels] for labels in (ax.get_yticklabels(), ax.get_xticklabels())]


def test_recorded_weights_are_labelled_with_their_tokens(recorded):
    entry = recorded[recorded.layers[0].name]
    for sequence in (0, 1):
        texts = [f"t{number}" for number in recorded.inputs[0]["input_ids"][sequence].tolist()]
        for ax in (
            entry.plot(head=(sequence, 3)),
            entry.select(batch=sequence).plot(head=3),
            entry.head(3).plot(head=sequence),
        ):
            assert tick_texts(ax) == [texts, texts]
    mine = [f"mine {i}" for i in range(11)]
    assert tick_texts(entry.plot(mine, head=(0, 0))) == [mine, mine]
    assert tick_texts(entry.plot(query_tokens=mine, head=(1, 0))) == [mine, texts]


def test_tokens_of_cross_attention_label_their_own_axis():
    model, inputs = tiny_models.build("BART"), tiny_models.MODELS["BART"].inputs()
    with torch.no_grad(), rg.record(model, tokenizer=Spelling([f"t{i}" for i in range(97)])) as made:
        model(**inputs)
    cross = made[next(layer.name for layer in made.layers if layer.cross)]
    queries, keys = tick_texts(cross.plot(head=(0, 0)))
    assert queries == [f"t{number}" for number in inputs["decoder_input_ids"][0].tolist()]
    assert keys == [f"t{number}" for number in inputs["input_ids"][0].tolist()]


def test_a_number_is_enough_for_a_head_of_one_sequence():
    w = rg.Weights(torch.randn(1, 3, 5, 4), torch.randn(1, 3, 7, 4))
    np.testing.assert_allclose(w.plot(head=2).images[0].get_array(), w.dense()[0, 2], rtol=1e-6)


def test_heads_profiles_and_similarities_of_a_recording_are_drawn(recorded):
    for draw, question in ((plot.heads, analysis.heads), (plot.profiles, analysis.profiles)):
        np.testing.assert_array_equal(
            draw(recorded).images[0].get_array(), draw(question(recorded)).images[0].get_array()
        )
    table = analysis.similar(recorded)
    np.testing.assert_array_equal(plot.similar(recorded).images[0].get_array(), table.matrix)
    with pytest.raises(
        DtypeError, match=r"plot.heads draws a recording, or a table of analysis.heads, and Weights came"
    ):
        plot.heads(weights())


def test_missing_matplotlib_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from regard.errors import MissingExtraError\n"
        "try: import regard.plot\n"
        "except MissingExtraError as error: assert \"pip install 'regard[plot]'\" in str(error)\n"
        "else: raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_neighbouring_empty_bins_are_merged_into_spans():
    assert _matrix_part._empty_spans(np.array([1, 1, 0, 1], dtype=bool), np.arange(5)) == [(0, 2), (3, 4)]
