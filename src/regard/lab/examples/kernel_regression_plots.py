"""Pictures and a table of the kernel regression example, in English and Chinese."""

import unicodedata
from collections.abc import Callable
from typing import Any, NamedTuple

from regard import datasets, plot, scores
from regard.lab.examples import kernel_regression

LIMITS: dict[str, Any] = {"xlim": (0, 5), "ylim": (-1, 5)}


class Words(NamedTuple):
    """The texts of the pictures in one language."""

    average: str
    fixed: str
    learned: str  # {w} is the width
    curves: tuple[str, str]
    train: str
    test: str
    quality: tuple[str, ...]  # labels of the fields of `kernel_regression.FitQuality`
    caption: str


ENGLISH = Words(
    average="Average pooling",
    fixed="Nadaraya-Watson, w = 1",
    learned="Learned, w = {w:.2f}",
    curves=("Truth", "Pred"),
    train="Sorted training inputs",
    test="Sorted testing inputs",
    quality=("training error", "leave-one-out error", "error against the truth", "entropy (nats)", "roughness"),
    caption="training error {training:.2f}, entropy {entropy:.2f}",
)
CHINESE = Words(
    average="平均汇聚",
    fixed="Nadaraya-Watson，w = 1",
    learned="学到的 w = {w:.2f}",
    curves=("真实", "预测"),
    train="排序后的训练输入",
    test="排序后的测试输入",
    quality=("训练误差", "留一误差", "与真实曲线之差", "权重的熵（奈特）", "粗糙程度"),
    caption="训练误差 {training:.2f}，熵 {entropy:.2f}",
)
LANGUAGES = {"en": ENGLISH, "zh": CHINESE}


class Case(NamedTuple):
    """One of the three fits."""

    score: scores.Score
    fit: kernel_regression.Fit
    quality: kernel_regression.FitQuality


class Comparison(NamedTuple):
    """The data and three fits of it: average pooling, w = 1, and a learned w."""

    data: datasets.Sine
    w: float
    losses: tuple[float, ...]  # while w was learned
    average: Case
    fixed: Case
    learned: Case


def compare(n: int = 50, seed: int = 0) -> Comparison:
    """Fit `datasets.sine` by average pooling, with w = 1, and with a w learned by gradient descent.

    >>> comparison = compare()
    >>> comparison.learned.quality.roughness > comparison.fixed.quality.roughness  # the learned fit is rougher
    True
    >>> comparison.learned.quality.entropy < comparison.fixed.quality.entropy  # and its weights are sharper
    True
    """
    data = datasets.sine(n, seed)
    w, losses = kernel_regression.learn_width(data)
    used = scores.uniform(), scores.gaussian(1.0), scores.gaussian(w)
    return Comparison(data, w, losses, *(_case(data, score) for score in used))


def _case(data: datasets.Sine, score: scores.Score) -> Case:
    fit = kernel_regression.pool(data, score)
    return Case(score, fit, kernel_regression.fit_quality(data, score, fit))


def table(comparison: Comparison, words: Words = ENGLISH) -> str:
    """A printable table of the three fits' errors, entropy and roughness."""
    cases = [comparison.average, comparison.fixed, comparison.learned]
    cells = [["", *_titles(comparison, words)]]
    cells += [[name, *(f"{case.quality[i]:.3f}" for case in cases)] for i, name in enumerate(words.quality)]
    widths = [max(map(_width, column)) + 2 for column in zip(*cells, strict=True)]
    return "\n".join(
        row[0]
        + " " * (widths[0] - _width(row[0]))
        + "".join(" " * (room - _width(cell)) + cell for room, cell in zip(widths[1:], row[1:], strict=True))
        for row in cells
    )


def _width(text: str) -> int:
    """Width in columns of a terminal, where a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _titles(comparison: Comparison, words: Words) -> tuple[str, str, str]:
    return words.average, words.fixed, words.learned.format(w=comparison.w)


def average_pooling(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    return _fit_picture(comparison, comparison.average, words.average, words)


def fixed_width(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    return _fit_picture(comparison, comparison.fixed, words.fixed, words)


def fixed_width_weights(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    return _weights_picture(comparison.fixed, words.fixed, words)


def learned_width(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    return _fit_picture(comparison, comparison.learned, words.learned.format(w=comparison.w), words)


def learned_width_weights(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    return _weights_picture(comparison.learned, words.learned.format(w=comparison.w), words)


def _fit_picture(comparison: Comparison, case: Case, title: str, words: Words) -> plot.Picture:
    figure = plot.Picture(figsize=(4.8, 3.4), layout="compressed")
    _draw_fit(figure.subplots(), comparison, case, title, words)
    return figure


def _weights_picture(case: Case, title: str, words: Words) -> plot.Picture:
    matrix = case.fit.weights.dense()[None, None]
    return plot.show_heatmaps(matrix, xlabel=words.train, ylabel=words.test, titles=[title], figsize=(3.6, 3.1))


def side_by_side(comparison: Comparison, words: Words = ENGLISH) -> plot.Picture:
    """One picture of all three: the fits above, and below their weights on one colour scale."""
    cases = comparison.average, comparison.fixed, comparison.learned
    figure = plot.Picture(figsize=(9.6, 6), layout="constrained")
    axes: Any = figure.subplots(2, 3)
    darkest = max(float(case.fit.weights.dense().max()) for case in cases)
    labels: Any = {"xlabel": words.train, "ylabel": words.test, "limits": (0, darkest)}
    for i, (case, title) in enumerate(zip(cases, _titles(comparison, words), strict=True)):
        caption = words.caption.format(**case.quality._asdict())
        _draw_fit(axes[0, i], comparison, case, f"{title}\n{caption}", words)
        plot.heatmap(case.fit.weights, ax=axes[1, i], colorbar=i == 2, **labels)
    return figure


def _draw_fit(ax: Any, comparison: Comparison, case: Case, title: str, words: Words) -> None:
    data = comparison.data
    train = data.x_train, data.y_train
    texts: Any = {"title": title, "labels": words.curves}
    plot.regression(data.x_test, case.fit.prediction, truth=data.y_truth, train=train, ax=ax, **texts, **LIMITS)


PICTURES: dict[str, Callable[[Comparison, Words], plot.Picture]] = {
    "1-average-pooling": average_pooling,
    "2-fixed-width": fixed_width,
    "3-fixed-width-weights": fixed_width_weights,
    "4-learned-width": learned_width,
    "5-learned-width-weights": learned_width_weights,
}
