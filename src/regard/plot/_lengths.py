"""The length table: quality by the length of the source, a curve for each model, beside Bahdanau's printed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from regard.errors import ChoiceError, DataError
from regard.plot._figure import BLUE, GREY, INK, RED, TICK_POINTS, Picture, open_frame
from regard.plot._fonts import families_for, set_families
from regard.plot._labels import set_upright_label
from regard.seq2seq.length_table import BINS, MODELS, Cell

PRINTED = {"RNNsearch-50": 26.75, "RNNencdec-50": 17.82}  # BLEU on WMT14 en-fr, all sentences: Bahdanau et al. 2015
# Red has no attention, blue has one query for each word, grey has many heads.
STYLES: dict[str, dict[str, Any]] = {
    "gru": {"color": RED, "marker": "o"},
    "lstm": {"color": "#e08a8c", "marker": "s", "linestyle": "--"},
    "bahdanau": {"color": BLUE, "marker": "o"},
    "luong": {"color": "#2a9d8f", "marker": "s", "linestyle": "--"},
    "local": {"color": "#8fb8e0", "marker": "^", "linestyle": "-."},
    "transformer": {"color": INK, "marker": "D", "linestyle": ":"},
}


class Texts(NamedTuple):
    """Texts of the picture in one language."""

    models: dict[str, str]
    data: dict[str, str]
    exact_match: str
    words: str
    trained: str
    printed: str


LANGUAGES = {
    "en": Texts(
        {
            "gru": "GRU, no attention", "lstm": "LSTM, no attention", "bahdanau": "Bahdanau", "luong": "Luong",
            "local": "Luong, local-p", "transformer": "Transformer",
        },
        {"numbers": "Number words → Chinese", "en-fr": "English → French"},
        "Exact match, %", "Words of the source", "trained up to {} words",
        "Bahdanau 2015,\nWMT14: other data",
    ),
    "zh": Texts(
        {
            "gru": "GRU，无注意力", "lstm": "LSTM，无注意力", "bahdanau": "Bahdanau", "luong": "Luong",
            "local": "Luong，local-p", "transformer": "Transformer",
        },
        {"numbers": "英文数词 → 中文", "en-fr": "英文 → 法文"},
        "完全一致 %", "源句词数", "训练到 {} 词", "Bahdanau 2015，\n数据不同：WMT14",
    ),
}  # fmt: skip


def lengths(cells: Sequence[Cell], *, language: str = "en") -> Picture:
    """Draw quality against the length of the source, a panel for each kind of data and a curve for each model.

    cells: from `regard.seq2seq.length_table.read()` or `make`. Numbers are judged by exact match, English to French by
        BLEU, beside the BLEU that Bahdanau et al. printed in 2015 for other data.
    language: of the texts, "en" or "zh".

    Returns the figure. A dotted line stands where the sources of training end.

    >>> import regard as rg
    >>> from regard.seq2seq import length_table
    >>> figure = rg.plot.lengths(length_table.read())
    """
    if language not in LANGUAGES:
        raise ChoiceError(f"language is one of {', '.join(map(repr, LANGUAGES))}, and came as {language!r}")
    if not cells:
        raise DataError("there are no cells to draw")
    texts = LANGUAGES[language]
    panels = sorted({(cell.data, cell.trained_words) for cell in cells}, key=_panel_order)
    with_bleu = [data for data, _ in panels if data != "numbers"]
    figure = Picture(figsize=(3.1 * len(panels) + 1.4 * len(with_bleu) + 0.4, 3.7), layout="constrained")
    ratios = [1.0] * len(panels) + [0.45] * bool(with_bleu)
    axes: Any = figure.subplots(1, len(ratios), squeeze=False, width_ratios=ratios)[0]
    for ax, (data, words) in zip(axes, panels, strict=False):
        here = {cell.model: cell for cell in cells if (cell.data, cell.trained_words) == (data, words)}
        _panel(ax, here, "exact_match" if data == "numbers" else "bleu", texts)
        ax.set_title(f"{texts.data.get(data, data)}\n{texts.trained.format(words)}", fontsize=9.5, color=INK)
        _mark_trained(ax, words)
    if with_bleu:
        _printed(axes[-1], axes[len(panels) - 1], texts)
    _legend(figure, cells, texts, columns=2 * len(panels))
    families = families_for([*texts.models.values(), *texts.data.values(), texts.words, texts.printed, texts.trained])
    set_families(axes, families)
    if families is not None:
        for text in figure.legends[0].get_texts():
            text.set_fontfamily(families)
    return figure


def _panel_order(panel: tuple[str, int]) -> tuple[bool, int]:
    return panel[0] != "numbers", -panel[1]


def _panel(ax: Axes, cells: dict[str, Cell], column: str, texts: Texts) -> None:
    names = [f"{low}-{high}" for low, high in BINS]
    scale = 100 if column == "exact_match" else 1
    for model in MODELS:
        if model in cells:
            rows = cells[model].rows
            x = [names.index(row.words) for row in rows]
            ax.plot(x, [scale * getattr(row, column) for row in rows], markersize=3.5, linewidth=1.6, **STYLES[model])
    ax.set_xticks(range(len(names)), names, rotation=45)
    ax.set_xlim(-0.4, len(names) - 0.6)
    ax.set_ylim(0, 103 if column == "exact_match" else None)
    ax.set_xlabel(texts.words, fontsize=9, color=INK)
    ax.set_ylabel(texts.exact_match if column == "exact_match" else "BLEU", fontsize=9, color=INK)
    set_upright_label(ax.yaxis.label, "left")
    open_frame(ax)


def _mark_trained(ax: Axes, words: int) -> None:
    beyond = [i for i, (low, _) in enumerate(BINS) if low > words]
    if beyond:
        ax.axvline(beyond[0] - 0.5, color=GREY, linewidth=0.9, linestyle=(0, (1, 2)))


def _printed(ax: Axes, beside: Axes, texts: Texts) -> None:
    """The two numbers of the paper, on the scale of the panel beside them."""
    beside.set_ylim(0, max(1.15 * max(PRINTED.values()), beside.get_ylim()[1]))
    ax.set_ylim(*beside.get_ylim())
    for (name, bleu), colour in zip(PRINTED.items(), (BLUE, RED), strict=True):
        ax.hlines(bleu, 0, 1, color=colour, linewidth=1.6, linestyle=(0, (4, 2)))
        ax.text(0.5, bleu, f"{name}\n{bleu}", color=colour, fontsize=TICK_POINTS, ha="center", va="bottom")
    ax.set_title(texts.printed, fontsize=TICK_POINTS, color=INK)
    ax.set_xlim(-0.1, 1.1)
    ax.set_axis_off()


def _legend(figure: Picture, cells: Sequence[Cell], texts: Texts, columns: int) -> None:
    made = {cell.model for cell in cells}
    handles = [Line2D([], [], label=texts.models[m], markersize=4, **STYLES[m]) for m in MODELS if m in made]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(columns, len(handles)),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
    )
