"""`regard fit`: kernel regression of one column of a table on others, and predictions for new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.console import check_outputs, progress
from regard.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

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

BLOCK_ROWS = 2**18  # rows that are predicted at a time
NEW_COLUMNS = ("predicted", "low", "high")


class Outputs(NamedTuple):
    """Files that are made after the fit."""

    plot: Path | None
    predict: Path | None
    out: Path | None
    save: Path | None


class Table(NamedTuple):
    """The data of a fit."""

    features: DataFrame
    target: Series
    categories: list[str]  # names of the features that are categories


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
    outputs = Outputs(plot, predict, out, save)
    _check(outputs, data, model)
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
        new_rows = _read_new_rows(_requirements_of(fitted), outputs)
    elif data is None or y is None:
        raise typer.BadParameter(
            "give a table and the column to predict, or a saved fit", param_hint="DATA --y COLUMN | --model FILE"
        )
    else:
        table = _read_table(data, y, x, categorical)
        new_rows = _read_new_rows(_requirements_for(table), outputs)
        fitted = _fit(table, options)
    _report(fitted, outputs, new_rows)


def _check(outputs: Outputs, data: Path | None, model: Path | None) -> None:
    """Refuse, before the fit, an output that could not be made after it."""
    from regard.cli import fit_report, table_files

    if (outputs.predict is None) != (outputs.out is None):
        raise typer.BadParameter("new rows, and where their predictions go: give both", param_hint="--predict, --out")
    written = {"--plot": outputs.plot, "--out": outputs.out, "--save": outputs.save}
    check_outputs({"DATA": data, "--model": model, "--predict": outputs.predict}, written)
    if outputs.out is not None:
        table_files.table_format(outputs.out)
    if outputs.plot is not None:
        fit_report.check_picture(outputs.plot)


def _read_table(data: Path, y: str, x: str | None, categorical: str | None) -> Table:
    from regard.cli import table_columns
    from regard.cli.table_files import read_table

    with progress(f"reading {data}"):
        frame = read_table(data, table_columns.possible_names(categorical))
        table_columns.check_names([y], frame, data)
        categories = table_columns.category_names(categorical, frame, data, y)
        names = table_columns.feature_names(x, frame, data, y)
        names += [name for name in categories if name not in names]
        target: Any = table_columns.numeric_table(
            frame, [y], data, lambda _: "The column to predict has to be numbers"
        )[y]
        advice = table_columns.FeatureAdvice(frame, y, names, categories)
        features = table_columns.feature_table(frame, names, categories, data, advice)
    if len(features) < 2:
        raise DataError(f"{data}: has one row, and a fit needs two: each is predicted by the others")
    return Table(features, target, categories)


def _fit(table: Table, options: dict[str, Any]) -> NadarayaWatson:
    parameters = {name: value for name, value in options.items() if value is not None}
    if table.categories:
        parameters["categorical"] = table.categories
    if "bandwidth" in parameters:
        parameters["bandwidth"] = parse_bandwidth(parameters["bandwidth"])
    with progress(f"fitting {len(table.features):,} rows") as line:
        from regard.regression import NadarayaWatson

        def show_search(state: Any) -> None:
            line.describe(f"choosing bandwidths: try {state.evaluations}, mean squared error {state.value:.4g}")

        model = NadarayaWatson(**parameters, verbose=show_search).fit(table.features, table.target)
        return model.set_params(verbose=False)


def parse_bandwidth(text: str) -> str | float | list[float]:
    """Parse numbers; a rule such as "cv" is left to the estimator.

    >>> parse_bandwidth("cv"), parse_bandwidth("0.5"), parse_bandwidth("0.5,inf")
    ('cv', 0.5, [0.5, inf])
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return numbers if len(numbers) > 1 else numbers[0]


def _load(path: Path) -> NadarayaWatson:
    with progress(f"reading {path}"):
        from regard.regression import NadarayaWatson

        return NadarayaWatson.load(path)


def _report(model: NadarayaWatson, outputs: Outputs, new_rows: NewRows | None) -> None:
    from regard.cli import fit_report

    with progress("summing up"):
        summary = fit_report.summary(model)
    fit_report.show(summary)
    if outputs.save is not None:
        model.save(outputs.save)
        print(f"saved    {outputs.save}")
    if outputs.predict is not None and outputs.out is not None:
        _predict(model, new_rows or _read_rows(outputs.predict, _requirements_of(model)), outputs.out)
        print(f"written  {outputs.out}")
    if outputs.plot is not None:
        with progress("drawing"):
            fit_report.draw(model, outputs.plot)
        print(f"drawn    {outputs.plot}")


class Requirements(NamedTuple):
    """Columns that a model needs in a table of new rows. The model need not be fitted yet."""

    names: list[str] | None  # of the features; None if the model was fitted without names
    width: int
    categories: list[int]  # feature indices
    texts: list[str]  # columns to be read as texts
    new_columns: list[str]  # columns that the prediction adds


class NewRows(NamedTuple):
    """A table of new rows."""

    path: Path
    frame: DataFrame  # as in the file
    X: Any  # the features


def _requirements_of(model: Any) -> Requirements:
    fitted_names = getattr(model, "feature_names_in_", None)
    names = None if fitted_names is None else [str(name) for name in fitted_names]
    columns = [column for column, categories in model.categories_.items() if categories.dtype.kind == "U"]
    texts = [] if names is None else [names[column] for column in columns]
    return Requirements(names, model.n_features_in_, list(model.categories_), texts, _new_columns(model))


def _requirements_for(table: Table) -> Requirements:
    names = [str(name) for name in table.features.columns]
    texts = [name for name in table.categories if table.features[name].dtype.kind == "O"]
    categories = [names.index(name) for name in table.categories]
    return Requirements(names, len(names), categories, texts, list(NEW_COLUMNS))


def _new_columns(model: Any) -> list[str]:
    """Return the names of the added columns, one output after the other."""
    targets = model.target_names_ or range(1, model.outputs_ + 1)
    endings = [""] if model.flat_ else [f" {target}" for target in targets]
    return [name + ending for ending in endings for name in NEW_COLUMNS]


def _read_new_rows(requirements: Requirements, outputs: Outputs) -> NewRows | None:
    """Read new rows before the fit, so that mistakes show early; a pipe is read after it, since it may be late."""
    if outputs.predict is None or outputs.predict.is_fifo():
        return None
    return _read_rows(outputs.predict, requirements)


def _read_rows(path: Path, requirements: Requirements) -> NewRows:
    from regard.cli.table_files import read_table

    with progress(f"reading {path}"):
        frame = read_table(path, requirements.texts)
        taken = [name for name in requirements.new_columns if name in frame.columns]
        if taken:
            raise DataError(f"{path}: has a column {taken[0]!r} already, where the prediction would go; rename it")
        return NewRows(path, frame, _features(frame, path, requirements))


def _features(frame: DataFrame, path: Path, requirements: Requirements) -> Any:
    """Return the model's features: a frame if the model knows their names, else an array."""
    from regard.cli.table_columns import check_names, feature_table

    width = len(frame.columns)
    if requirements.names is None and width != requirements.width:
        raise DataError(f"{path}: has {width} columns, and the fit was made without names on {requirements.width}")
    names = list(frame.columns) if requirements.names is None else check_names(requirements.names, frame, path)
    categories = [names[column] for column in requirements.categories]
    table = feature_table(frame, names, categories, path, lambda _: "The fit needs it")
    return table.to_numpy() if requirements.names is None else table


def _predict(model: Any, new_rows: NewRows, out: Path) -> None:
    """Write the rows with three new columns for each output: the prediction and its 95 % band."""
    import numpy as np

    from regard.cli.table_columns import unseen_categories
    from regard.cli.table_files import write_table

    X = new_rows.X
    for note in unseen_categories(model, X, new_rows.path):
        print(f"regard: {note}", file=sys.stderr)
    blocks: list[Any] = []
    with progress(f"predicting {len(X):,} rows", total=len(X)) as line:
        for start in range(0, len(X), BLOCK_ROWS):
            rows = X[start : start + BLOCK_ROWS]
            values = (model.predict(rows), *model.confidence_band(rows))
            columns = [np.asarray(value).reshape(len(rows), -1) for value in values]
            blocks.append(np.stack(columns, 2).reshape(len(rows), -1))
            line.advance(len(rows))
    new_columns = dict(zip(_new_columns(model), np.concatenate(blocks).T, strict=True))
    write_table(new_rows.frame.assign(**new_columns), out)
