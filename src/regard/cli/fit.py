"""`regard fit`: kernel regression of one column of a table on others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from regard.cli._new import Needs, New
    from regard.regression import NadarayaWatson

Data = Annotated[Path | None, typer.Argument(help="A table: .csv, .tsv or .parquet.", show_default=False)]
Y = Annotated[str | None, typer.Option("--y", help="The column to predict.")]
X = Annotated[str | None, typer.Option("--x", help="The columns to predict it from: a,b,c. All others if left out.")]
Categorical = Annotated[
    str | None, typer.Option(help="Columns of --x, or beside them, that are categories, texts or numbers: colour,town.")
]
Kernel = Annotated[str | None, typer.Option(help="gaussian if left out; epanechnikov, laplace, ...")]
Bandwidth = Annotated[
    str | None,
    typer.Option(help="cv (leave-one-out) if left out; scott, a number, or one for each feature: 0.5,2,inf."),
]
Degree = Annotated[int | None, typer.Option(help="0 = local constant, if left out; 1 = local linear.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the fit to this file: .png, .svg, .pdf.")]
Predict = Annotated[Path | None, typer.Option(help="A table of new rows to predict, with --out.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where the predictions go: .csv, .tsv or .parquet.")]
Save = Annotated[Path | None, typer.Option(help="Keep the fit in this file, for --model.")]
Model = Annotated[Path | None, typer.Option(help="Take a fit that was saved, instead of a table.")]


class Wanted(NamedTuple):
    """What comes after the fit."""

    plot: Path | None
    predict: Path | None
    out: Path | None
    save: Path | None


class Table(NamedTuple):
    """What a fit is made from."""

    features: DataFrame
    target: Series
    kinds: list[str]  # the features that are categories


def fit(
    data: Data = None,
    y: Y = None,
    x: X = None,
    categorical: Categorical = None,
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    degree: Degree = None,
    plot: Plot = None,
    predict: Predict = None,
    out: Out = None,
    save: Save = None,
    model: Model = None,
) -> None:
    """Predict one column of a table from others: kernel regression that chooses its own bandwidths.

    regard fit houses.csv --y price --plot fit.png --save houses.regard-fit

    regard fit houses.csv --y price --categorical colour,town

    regard fit --model houses.regard-fit --predict new.csv -o out.csv
    """
    wanted = Wanted(plot, predict, out, save)
    _check(wanted, data, model)
    options = {"kernel": kernel, "bandwidth": bandwidth, "degree": degree}
    if model is not None:
        named = {"categorical": categorical, **options}
        given = {"DATA": data, "--y": y, "--x": x, **{f"--{name}": value for name, value in named.items()}}
        superfluous = [name for name, value in given.items() if value is not None]
        if superfluous:
            raise typer.BadParameter(
                f"the fit is already made: leave out {', '.join(superfluous)}", param_hint="--model"
            )
        fitted = _load(model)
        new = _read_new(fitted, wanted)
    elif data is None or y is None:
        raise typer.BadParameter(
            "give a table and the column to predict, or a saved fit", param_hint="DATA --y COLUMN | --model FILE"
        )
    else:
        table = _read(data, y, x, categorical)
        new = _read_new(table, wanted)
        fitted = _fit(table, options)
    _use(fitted, wanted, new)


def _check(wanted: Wanted, data: Path | None, model: Path | None) -> None:
    """Refuse before the work what could not be done after it."""
    from regard.cli import _files, _outputs

    if (wanted.predict is None) != (wanted.out is None):
        raise typer.BadParameter("new rows, and where their predictions go: give both", param_hint="--predict, --out")
    outputs = {"--plot": wanted.plot, "--out": wanted.out, "--save": wanted.save}
    _outputs.check({"DATA": data, "--model": model, "--predict": wanted.predict}, outputs)
    if wanted.out is not None:
        _files.kind_of(wanted.out)
    if wanted.plot is not None:
        from regard.cli import _picture

        _picture.check(wanted.plot)


def _read(data: Path, y: str, x: str | None, categorical: str | None) -> Table:
    from regard.cli import _categories, _files, _progress, _tables
    from regard.cli._advice import Advice

    with _progress.step(f"reading {data}"):
        frame = _files.read(data, _categories.asked(categorical))
        _tables.known([y], frame, data)
        kinds = _categories.named(categorical, frame, data, y)
        names = _tables.chosen(x, frame, data, y)
        names += [name for name in kinds if name not in names]
        target: Any = _tables.numbers(frame, [y], data, lambda _: "The column to predict has to be numbers")[y]
        features = _categories.table(frame, names, kinds, data, Advice(frame, y, names, kinds))
    if len(features) < 2:
        raise DataError(f"{data}: has one row, and a fit needs two: each is predicted by the others")
    return Table(features, target, kinds)


def _read_new(fit: Table | NadarayaWatson, wanted: Wanted) -> New | None:
    """New rows are looked at before the fit; those from a pipe, which may come late, when it is their turn."""
    if wanted.predict is None or wanted.predict.is_fifo():
        return None
    from regard.cli import _new

    return _new.read(wanted.predict, _needs(fit))


def _needs(fit: Table | NadarayaWatson) -> Needs:
    from regard.cli import _new

    return _new.Needs.for_fit_on(fit.features, fit.kinds) if isinstance(fit, Table) else _new.Needs.by(fit)


def _fit(table: Table, options: dict[str, Any]) -> NadarayaWatson:
    from regard.cli import _progress

    chosen = {name: value for name, value in options.items() if value is not None}
    if table.kinds:
        chosen["categorical"] = table.kinds
    if "bandwidth" in chosen:
        chosen["bandwidth"] = widths(chosen["bandwidth"])
    with _progress.step(f"fitting {len(table.features):,} rows") as line:
        from regard.regression import NadarayaWatson

        def tell(state: Any) -> None:
            line.say(f"choosing bandwidths: try {state.evaluations}, mean squared error {state.value:.4g}")

        model = NadarayaWatson(**chosen, verbose=tell).fit(table.features, table.target)
        return model.set_params(verbose=False)


def widths(text: str) -> str | float | list[float]:
    """A word is left to the estimator; numbers become numbers.

    >>> widths("cv"), widths("0.5"), widths("0.5,inf")
    ('cv', 0.5, [0.5, inf])
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]


def _load(path: Path) -> NadarayaWatson:
    from regard.cli import _progress

    with _progress.step(f"reading {path}"):
        from regard.regression import NadarayaWatson

        return NadarayaWatson.load(path)


def _use(model: NadarayaWatson, wanted: Wanted, new: New | None) -> None:
    from regard.cli import _progress, _summary

    with _progress.step("summing up"):
        lines = _summary.of(model)
    _summary.show(lines)
    if wanted.save is not None:
        model.save(wanted.save)
        print(f"saved    {wanted.save}")
    if wanted.predict is not None and wanted.out is not None:
        from regard.cli import _new

        _new.predict(model, new or _new.read(wanted.predict, _needs(model)), wanted.out)
        print(f"written  {wanted.out}")
    if wanted.plot is not None:
        from regard.cli import _picture

        with _progress.step("drawing"):
            _picture.draw(model, wanted.plot)
        print(f"drawn    {wanted.plot}")
