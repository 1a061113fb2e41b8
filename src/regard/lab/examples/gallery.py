"""The pictures of the worked examples, as PNG files."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from regard import analysis, datasets, masks, plot, scores
from regard.lab.examples import attention, kernel_regression_plots
from regard.weights import Weights

Draw = Callable[[kernel_regression_plots.Comparison, kernel_regression_plots.Words], plot.Picture]


def write(folder: str | Path) -> list[Path]:
    """Run the worked examples, write their pictures into `folder` (made if it is not there), and return the files."""
    return list(write_each(folder))


def write_each(folder: str | Path) -> Iterator[Path]:
    """Write the pictures one at a time, and yield each file."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        path = folder / f"{name}.png"
        picture().savefig(path, dpi=150)
        yield path


def desk() -> plot.Picture:
    """Weights on five objects without a query and with one."""
    names, query = datasets.desk().names, datasets.desk().query_text
    return _desk(names, ["no query", f'"{query}"'], title="The same five keys, two answers", xlabel="", ylabel="")


def desk_in_chinese() -> plot.Picture:
    """The picture `desk` with Chinese texts."""
    names, query = datasets.desk().names_zh, datasets.desk().query_text_zh
    return _desk(names, ["没有查询", f"“{query}”"], title="同样的五个键，两个答案", xlabel="键", ylabel="查询")


def _desk(names: Sequence[str], queries: Sequence[str], **texts: Any) -> plot.Picture:
    data = datasets.desk()
    looks = attention.look_without_a_query(data), attention.look_with_a_query(data)
    rows = torch.cat([look.weights.dense() for look in looks])
    figure, ax = _canvas(6, 2.6)
    plot.heatmap(rows, names, queries, ax=ax, annotate=".2f", colorbar=False, **texts)
    return figure


def self_attention_by_hand() -> plot.Picture:
    """The weights of the worked example, with every number."""
    tokens = [" ".join(f"{x:g}" for x in token) for token in datasets.worked_example().tokens.tolist()]
    figure, ax = _canvas(5.4, 4.4)
    plot.heatmap(attention.attend_by_hand().weights, tokens, ax=ax, annotate=".4f", title="Self-attention by hand")
    return figure


def kernel_regression(draw: Draw, words: kernel_regression_plots.Words) -> plot.Picture:
    """One picture of the comparison of three fits."""
    return draw(_comparison(), words)


@cache
def _comparison() -> kernel_regression_plots.Comparison:
    return kernel_regression_plots.compare()


def _kernel_regression_pictures(language: str) -> dict[str, Callable[[], plot.Picture]]:
    """The picture of all three fits, and the five pictures of its parts."""
    words, suffix = kernel_regression_plots.LANGUAGES[language], "" if language == "en" else f"-{language}"
    parts = {f"-{name}": draw for name, draw in kernel_regression_plots.PICTURES.items()}
    drawings = {"": kernel_regression_plots.side_by_side, **parts}
    return {f"04-kernel-regression{n}{suffix}": partial(kernel_regression, draw, words) for n, draw in drawings.items()}


def saturation() -> plot.Picture:
    """Picture of softmax that saturates as vectors grow longer, with and without division by sqrt(d)."""
    return plot.saturation(analysis.saturation())


def identity() -> plot.Picture:
    """The identity matrix, as a test of axes and colours."""
    return plot.show_heatmaps(torch.eye(10).reshape(1, 1, 10, 10), xlabel="Keys", ylabel="Queries")


def random_softmax() -> plot.Picture:
    """Heatmaps of eight random heads in a grid."""
    logits = torch.randn(2, 4, 10, 10, generator=torch.Generator().manual_seed(0))
    titles = [f"Head {i}" for i in range(1, 5)]
    return plot.show_heatmaps(logits.softmax(-1), xlabel="Keys", ylabel="Queries", titles=titles, figsize=(7, 3.6))


def masks_to_see() -> plot.Picture:
    """The weights of six masks."""
    return _masks(attention.example_masks(12), rows=2, figsize=(10, 5.6))


def copied_recipe() -> plot.Picture:
    """Causal attention beside a widespread wrong recipe for it."""
    sees = attention.future_only_mask(12)
    shown = {
        "causal()": masks.causal(),
        "copied recipe = allow(triu(ones, 1))": masks.allow(sees),
        "hide(triu(ones, 1))": masks.hide(sees),
    }
    return _masks(shown, rows=1, figsize=(9, 3.3))


def _masks(shown: dict[str, masks.Mask], rows: int, figsize: tuple[float, float]) -> plot.Picture:
    q, k = torch.randn(2, 1, 12, 8, generator=torch.Generator().manual_seed(1))
    figure = plot.Picture(figsize=figsize, layout="compressed")
    axes: Any = figure.subplots(rows, len(shown) // rows, squeeze=False)
    for ax, (title, mask) in zip(axes.flat, shown.items(), strict=True):
        plot.heatmap(Weights(q, k, mask=mask), ax=ax, title=title, limits=(0, 1), gamma=0.5, colorbar=False)
        ax.label_outer()
    return figure


def long_window(n: int = 20_000) -> plot.Picture:
    """A window of 4,000 tokens over a long sequence, drawn from pooled blocks."""
    angle = torch.arange(n) * (2 * torch.pi / 1500)
    x = 3 * torch.stack([angle.cos(), angle.sin()], dim=-1)
    weights = Weights(x, x, score=scores.dot(), mask=masks.window(4000, 0) | masks.prefix(400))
    figure, ax = _canvas(5, 4.4)
    plot.heatmap(weights, ax=ax, gamma=0.5, title=f"{n:,} x {n:,}: window(4000, 0) | prefix(400)")
    return figure


def deep_zoom(n: int = 20_000) -> plot.Picture:
    """One matrix at three scales; only blocks of it are ever in memory."""
    weights = attention.lorenz_attention(n)
    query, key, side, cells = n * 62 // 100, n // 20, n // 20, 60
    middle = query + side // 2
    favourite = key + int(weights[middle, key : key + side].argmax())
    squares = [(query, key, side), (middle - cells // 2, favourite - cells // 2, cells)]
    return plot.zoom(weights, squares, bins=500, gamma=0.5, clip=0.99)


def _canvas(width: float, height: float) -> tuple[plot.Picture, Any]:
    figure = plot.Picture(figsize=(width, height), layout="compressed")
    return figure, figure.subplots()


PICTURES: dict[str, Callable[[], plot.Picture]] = {
    "01-desk": desk,
    "02-desk-zh": desk_in_chinese,
    "03-self-attention-by-hand": self_attention_by_hand,
    **_kernel_regression_pictures("en"),
    **_kernel_regression_pictures("zh"),
    "05-saturation": saturation,
    "06-identity": identity,
    "07-random-softmax": random_softmax,
    "08-masks": masks_to_see,
    "09-copied-recipe": copied_recipe,
    "10-long-window": long_window,
    "11-deep-zoom": deep_zoom,
}
