"""`regard fit`: kernel regression of one column of a table on others, and predictions for new rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.console import check_outputs, join_names
from regard.cli.export import Lang, Language
from regard.display.progress import progress
from regard.errors import ChoiceError, DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from regard.cli.tables.columns import Features, Preparation
    from regard.cli.tables.files import ReadOptions
    from regard.regression import NadarayaWatson
    from regard.regression.summary import Summary


class Missing(StrEnum):
    """Ways to treat missing values."""

    drop = "drop"
    mean = "mean"
    error = "error"


class Dates(StrEnum):
    """How dates become numbers."""

    days = "days"
    parts = "parts"
    error = "error"


Data = Annotated[Path | None, typer.Argument(help="A table: .csv, .tsv or .parquet.", show_default=False)]
Y = Annotated[str | None, typer.Option("--y", help="The column to predict.")]
X = Annotated[str | None, typer.Option("--x", help="The columns to predict it from: a,b,c. All others if left out.")]
Categorical = Annotated[
    str | None, typer.Option(help="Columns of --x, or beside them, that are categories, texts or numbers: colour,town.")
]
Numeric = Annotated[str | None, typer.Option(help="Columns that are numbers, and no categories: year,floor.")]
MissingOption = Annotated[
    Missing | None,
    typer.Option(
        help="Rows without a value: error if left out; drop them; or mean, the most frequent one of categories."
    ),
]
DatesOption = Annotated[
    Dates | None,
    typer.Option(help="Dates as days since 1970 if left out; parts: year, month, day, weekday, hour; or error."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Of a text file: gb18030, utf-16, cp1252, ... Recognised in most cases if left out.")
]
DecimalMark = Annotated[
    str | None, typer.Option("--decimal", help="The decimal mark, . or , where a file leaves it open, as in 1,234.")
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
    lang: str  # of the labels of the picture


class Columns(NamedTuple):
    """The options that say how the columns of the table are read."""

    y: str
    x: str | None
    categorical: str | None
    numeric: str | None
    missing: str
    dates: str


class Table(NamedTuple):
    """The data of a fit."""

    features: DataFrame
    target: Series
    preparation: Preparation


def fit(
    data: Data = None,
    y: Y = None,
    x: X = None,
    categorical: Categorical = None,
    numeric: Numeric = None,
    missing: MissingOption = None,
    dates: DatesOption = None,
    encoding: Encoding = None,
    decimal: DecimalMark = None,
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    degree: Degree = None,
    plot: Plot = None,
    lang: Lang = Language.en,
    predict: Predict = None,
    out: Out = None,
    save: Save = None,
    model: Model = None,
) -> None:
    """Predict one column of a table from others: kernel regression that chooses its own bandwidths.

    regard fit houses.csv --y price --plot fit.png --save houses.regard-fit

    regard fit houses.csv --y price --categorical colour,town --missing mean

    regard fit --model houses.regard-fit --predict new.csv -o out.csv
    """
    from regard.cli.tables.files import ReadOptions, column_names

    outputs, reading = Outputs(plot, predict, out, save, lang), ReadOptions(encoding, _checked_decimal(decimal))
    _check(outputs, data, model)
    options = {"kernel": kernel, "bandwidth": bandwidth, "degree": degree}
    if model is not None:
        named = {"categorical": categorical, "numeric": numeric, "missing": missing, "dates": dates, **options}
        given = {"DATA": data, "--y": y, "--x": x, **{f"--{name}": value for name, value in named.items()}}
        superfluous = [name for name, value in given.items() if value is not None]
        if superfluous:
            raise typer.BadParameter(
                f"the fit is already made: leave out {', '.join(superfluous)}", param_hint="--model"
            )
        fitted = _load(model)
        new_rows = _read_new_rows(_requirements_of(fitted), outputs, reading)
    elif data is None:
        raise typer.BadParameter(
            "give a table and the column to predict, or a saved fit", param_hint="DATA --y COLUMN | --model FILE"
        )
    elif y is None:
        names = join_names(column_names(data, reading))
        raise typer.BadParameter(f"give the column to predict; {data} has {names}", param_hint="--y")
    else:
        columns = Columns(y, x, categorical, numeric, missing or "error", dates or "days")
        table = _read_table(data, columns, reading)
        new_rows = _read_new_rows(_requirements_for(table), outputs, reading)
        fitted = _fit(table, options)
    _report(fitted, outputs, new_rows, reading)


def _checked_decimal(mark: str | None) -> str | None:
    if mark not in (None, ".", ","):
        raise typer.BadParameter(f"a decimal mark is . or , and not {mark!r}", param_hint="--decimal")
    return mark


def _check(outputs: Outputs, data: Path | None, model: Path | None) -> None:
    """Refuse, before the fit, an output that could not be made after it."""
    from regard.cli import fit_report
    from regard.cli.tables.files import table_format

    if (outputs.predict is None) != (outputs.out is None):
        raise typer.BadParameter("new rows, and where their predictions go: give both", param_hint="--predict, --out")
    written = {"--plot": outputs.plot, "--out": outputs.out, "--save": outputs.save}
    check_outputs({"DATA": data, "--model": model, "--predict": outputs.predict}, written)
    for path in (data, outputs.predict, outputs.out):
        if path is not None:
            table_format(path)
        if path not in (None, outputs.out) and not path.exists():
            raise DataError(f"{path}: there is no such file")
    if outputs.plot is not None:
        fit_report.check_picture(outputs.plot)


def _read_table(data: Path, columns: Columns, reading: ReadOptions) -> Table:
    """Read the table of a fit; torch is not imported before everything in it is checked."""
    from regard.cli.tables import columns as table_columns
    from regard.cli.tables.files import read_table

    y = columns.y
    with progress(f"reading {data}"):
        texts = table_columns.possible_names(columns.categorical)
        frame, decimals, notes = read_table(data, reading._replace(texts=texts))
        table_columns.check_names([y], frame, data)
        categorical = table_columns.kind_names("--categorical", columns.categorical, frame, data, y)
        numeric = table_columns.kind_names("--numeric", columns.numeric, frame, data, y)
        both = [name for name in categorical if name in numeric]
        if both:
            raise ChoiceError(f"--categorical and --numeric both name {both[0]!r}; a column is one of the two")
        names = table_columns.feature_names(columns.x, frame, data, y)
        names += [name for name in (*categorical, *numeric) if name not in names]
        advice = table_columns.FeatureAdvice(frame, y, names, categorical, columns.dates)
        kinds = dict.fromkeys(categorical, "category") | dict.fromkeys(numeric, "number")
        plans = [
            table_columns.column_of(
                frame[name], f"{data}: column {name!r}", columns.dates, decimals.get(name), kind=kinds.get(name)
            )
            for name in names
        ]
        decided = [plan or table_columns.Column(name, "number") for name, plan in zip(names, plans, strict=True)]
        preparation = table_columns.Preparation(tuple(decided), columns.missing, columns.dates)
        advised = lambda name: "The column to predict has to be numbers" if name == y else advice(name)  # noqa: E731
        prepared = table_columns.prepare(frame, preparation, data, advised, target=y)
    if len(prepared.table) < 2:
        raise DataError(f"{data}: has one row, and a fit needs two: each is predicted by the others")
    for note in (*notes, *table_columns.kind_notes(preparation, frame, kinds, data), *prepared.notes):
        print(f"regard: {note}", file=sys.stderr)
    return Table(prepared.table, prepared.target, prepared.preparation)


def _fit(table: Table, options: dict[str, Any]) -> NadarayaWatson:
    parameters = {name: value for name, value in options.items() if value is not None}
    categories = table.preparation.categories()
    if categories:
        parameters["categorical"] = categories
    if "bandwidth" in parameters:
        parameters["bandwidth"] = parse_bandwidth(parameters["bandwidth"])
    with progress(f"fitting {len(table.features):,} rows") as advance:
        from regard.regression import NadarayaWatson

        def show_search(state: Any) -> None:
            advance(f"choosing bandwidths: try {state.evaluations}, mean squared error {state.value:.4g}")

        model: Any = NadarayaWatson(**parameters, verbose=show_search).fit(table.features, table.target)
        model.preparation_ = table.preparation.to_json()  # saved with the model, for new rows
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
    path.stat()  # an error if it is not there, before torch is imported
    with progress(f"reading {path}"):
        from regard.regression import NadarayaWatson

        return NadarayaWatson.load(path)


def _report(model: NadarayaWatson, outputs: Outputs, new_rows: NewRows | None, reading: ReadOptions) -> None:
    """Write the files, then print: whoever reads the output may stop after its first line, and wants the files too."""
    from regard.cli import fit_report

    with progress("summing up"):
        summary = model.summary()
    lines: list[str] = []
    try:
        for line in _write_files(model, summary, outputs, new_rows, reading):
            lines.append(line)  # noqa: PERF402  what was written before an error is reported too
    finally:
        fit_report.show(summary)
        for line in lines:
            print(line)


def _write_files(
    model: NadarayaWatson, summary: Summary, outputs: Outputs, new_rows: NewRows | None, reading: ReadOptions
) -> Iterator[str]:
    """Write each file that was asked for, and yield a line that names it."""
    from regard.cli import fit_report

    if outputs.save is not None:
        model.save(outputs.save)
        yield f"saved    {outputs.save}"
    if outputs.predict is not None and outputs.out is not None:
        _predict(model, new_rows or _read_rows(outputs.predict, _requirements_of(model), reading), outputs.out)
        yield f"written  {outputs.out}"
    if outputs.plot is not None:
        with progress("drawing"):
            fit_report.draw(model, summary, outputs.plot, outputs.lang)
        yield f"drawn    {outputs.plot}"


class Requirements(NamedTuple):
    """Columns that a model needs in a table of new rows. The model need not be fitted yet."""

    preparation: Preparation | None  # None if the model was fitted without names
    width: int
    categories: list[int]  # feature indices
    texts: list[str]  # columns to be read as texts
    new_columns: list[str]  # columns that the prediction adds


class NewRows(NamedTuple):
    """A table of new rows."""

    path: Path
    frame: DataFrame  # as in the file
    X: Any  # the features of the rows that are complete
    complete: Any  # (rows,) bool


def _requirements_of(model: Any) -> Requirements:
    from regard.cli.tables.columns import Column, Preparation

    fitted_names = getattr(model, "feature_names_in_", None)
    names = None if fitted_names is None else [str(name) for name in fitted_names]
    columns = [column for column, categories in model.categories_.items() if categories.dtype.kind == "U"]
    texts = [] if names is None else [names[column] for column in columns]
    stored = getattr(model, "preparation_", None)
    if stored is not None:
        preparation = Preparation.from_json(stored)
    elif names is not None:  # fitted in Python, on numbers and categories
        kinds = ["category" if column in model.categories_ else "number" for column in range(len(names))]
        preparation = Preparation(tuple(map(Column, names, kinds)), dates="error")
    else:
        preparation = None
    return Requirements(preparation, model.n_features_in_, list(model.categories_), texts, _new_columns(model))


def _requirements_for(table: Table) -> Requirements:
    preparation, names = table.preparation, [str(name) for name in table.features.columns]
    texts = [name for name in preparation.categories() if table.features[name].dtype.kind == "O"]
    categories = [names.index(name) for name in preparation.categories()]
    return Requirements(preparation, len(names), categories, texts, list(NEW_COLUMNS))


def _new_columns(model: Any) -> list[str]:
    """Return the names of the added columns, one output after the other."""
    targets = model.target_names_ or range(1, model.outputs_ + 1)
    endings = [""] if model.flat_ else [f" {target}" for target in targets]
    return [name + ending for ending in endings for name in NEW_COLUMNS]


def _read_new_rows(requirements: Requirements, outputs: Outputs, reading: ReadOptions) -> NewRows | None:
    """Read new rows before the fit, so that mistakes show early; a pipe is read after it, since it may be late."""
    if outputs.predict is None or outputs.predict.is_fifo():
        return None
    return _read_rows(outputs.predict, requirements, reading)


def _read_rows(path: Path, requirements: Requirements, reading: ReadOptions) -> NewRows:
    from regard.cli.tables.files import read_table

    decimals = {} if requirements.preparation is None else requirements.preparation.decimals()
    with progress(f"reading {path}"):
        frame, _, notes = read_table(path, reading._replace(texts=requirements.texts, decimals=decimals))
        taken = [name for name in requirements.new_columns if name in frame.columns]
        if taken:
            raise DataError(f"{path}: has a column {taken[0]!r} already, where the prediction would go; rename it")
        prepared = _features(frame, path, requirements)
    for note in (*notes, *prepared.notes):
        print(f"regard: {note}", file=sys.stderr)
    X = prepared.table.to_numpy() if requirements.preparation is None else prepared.table
    return NewRows(path, frame, X, prepared.complete)


def _features(frame: DataFrame, path: Path, requirements: Requirements) -> Features:
    """Return the model's features, converted as in the table of the fit."""
    from regard.cli.tables.columns import Column, Preparation, check_names, prepare

    preparation, width = requirements.preparation, len(frame.columns)
    if preparation is None:
        if width != requirements.width:
            raise DataError(f"{path}: has {width} columns, and the fit was made without names on {requirements.width}")
        kinds = ["category" if column in requirements.categories else "number" for column in range(width)]
        preparation = Preparation(tuple(map(Column, map(str, frame.columns), kinds)), dates="error")
    check_names([column.name for column in preparation.columns], frame, path)
    remedy = "Fill it in, or fit with --missing mean, or with --missing drop, which leaves such rows without prediction"
    return prepare(frame, preparation, path, lambda _: "The fit needs it", missing_advice=remedy)


def _predict(model: Any, new_rows: NewRows, out: Path) -> None:
    """Write the rows with three new columns for each output: the prediction and its 95 % band."""
    import numpy as np

    from regard.cli.tables.columns import unseen_categories
    from regard.cli.tables.files import write_table

    X = new_rows.X
    for note in unseen_categories(model, X, new_rows.path):
        print(f"regard: {note}", file=sys.stderr)
    names = _new_columns(model)
    columns = np.full((len(new_rows.frame), len(names)), np.nan)  # a row that is not complete has no prediction
    places = np.flatnonzero(new_rows.complete)
    with progress(f"predicting {len(X):,} rows", len(X)) as advance:
        for start in range(0, len(X), BLOCK_ROWS):
            rows = X[start : start + BLOCK_ROWS]
            values = (model.predict(rows), *model.confidence_band(rows))
            blocks = [np.asarray(value).reshape(len(rows), -1) for value in values]
            columns[places[start : start + BLOCK_ROWS]] = np.stack(blocks, 2).reshape(len(rows), -1)
            advance(done=len(rows))
    write_table(new_rows.frame.assign(**dict(zip(names, columns.T, strict=True))), out)
