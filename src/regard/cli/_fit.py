"""`regard fit`: kernel regression of one column of a table on others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.errors import ChoiceError, DataError

if TYPE_CHECKING:
    from pandas import DataFrame

    from regard.regression import NadarayaWatson

BLOCK = 2**18  # rows that are predicted at a time
ADDED = ("predicted", "low", "high")

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
    _check(wanted)
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
    elif data is None or y is None:
        raise typer.BadParameter(
            "give a table and the column to predict, or a saved fit", param_hint="DATA --y COLUMN | --model FILE"
        )
    else:
        fitted = _fit(data, y, x, categorical, options)
    _use(fitted, wanted)


def _check(wanted: Wanted) -> None:
    """Refuse before the work what could not be done after it."""
    from regard.cli import _tables

    if (wanted.predict is None) != (wanted.out is None):
        raise typer.BadParameter("new rows, and where their predictions go: give both", param_hint="--predict, --out")
    for path in (wanted.plot, wanted.out, wanted.save):
        if path is not None and not path.absolute().parent.is_dir():
            raise ChoiceError(f"{path}: there is no folder {path.parent}")
    if wanted.out is not None:
        _tables.kind_of(wanted.out)
    if wanted.plot is not None:
        from regard.cli import _picture

        _picture.check(wanted.plot)


def _fit(data: Path, y: str, x: str | None, categorical: str | None, options: dict[str, Any]) -> NadarayaWatson:
    from regard.cli import _categories, _progress, _tables

    with _progress.step(f"reading {data}"):
        frame = _tables.read(data, _categories.asked(categorical))
        _tables.known([y], frame, data)
        kinds = _categories.named(categorical, frame, data, y)
        names = _tables.chosen(x, frame, data, y)
        names += [name for name in kinds if name not in names]
        target = _tables.numbers(frame, [y], data, "The column to predict has to be numbers")[y]
        features = _categories.table(frame, names, kinds, data, _categories.suggestion(frame, y, kinds))
    chosen = {name: value for name, value in options.items() if value is not None}
    if kinds:
        chosen["categorical"] = kinds
    if "bandwidth" in chosen:
        chosen["bandwidth"] = widths(chosen["bandwidth"])
    with _progress.step(f"fitting {len(frame):,} rows") as line:
        from regard.regression import NadarayaWatson

        def tell(state: Any) -> None:
            line.say(f"choosing bandwidths: try {state.evaluations}, mean squared error {state.value:.4g}")

        return NadarayaWatson(**chosen, verbose=tell).fit(features, target).set_params(verbose=False)


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


def _use(model: NadarayaWatson, wanted: Wanted) -> None:
    from regard.cli import _progress, _summary

    with _progress.step("summing up"):
        lines = _summary.of(model)
    _summary.show(lines)
    if wanted.save is not None:
        model.save(wanted.save)
        print(f"saved    {wanted.save}")
    if wanted.predict is not None and wanted.out is not None:
        _predict(model, wanted.predict, wanted.out)
        print(f"written  {wanted.out}")
    if wanted.plot is not None:
        from regard.cli import _picture

        with _progress.step("drawing"):
            _picture.draw(model, wanted.plot)
        print(f"drawn    {wanted.plot}")


def _predict(model: Any, path: Path, out: Path) -> None:
    """The rows of the table, with the prediction and its 95 % band in three new columns for each output."""
    import numpy as np

    from regard.cli import _categories, _progress, _tables

    frame = _tables.read(path, _categories.of(model))
    added = _added(model)
    taken = [name for name in added if name in frame.columns]
    if taken:
        raise DataError(f"{path}: has a column {taken[0]!r} already, where the prediction would go; rename it")
    X = _features(model, frame, path)
    for note in _categories.never_seen(model, X, path):
        print(f"regard: {note}", file=sys.stderr)
    found: list[Any] = []
    with _progress.step(f"predicting {len(X):,} rows", total=len(X)) as line:
        for start in range(0, len(X), BLOCK):
            part = X[start : start + BLOCK]
            answers = (model.predict(part), *model.confidence_band(part))
            found.append(
                np.stack([np.asarray(one).reshape(len(part), -1) for one in answers], 2).reshape(len(part), -1)
            )
            line.advance(len(part))
    _tables.write(frame.assign(**dict(zip(added, np.concatenate(found).T, strict=True))), out)


def _added(model: Any) -> list[str]:
    """The names of the new columns, one output after the other."""
    targets = model.target_names_ or range(1, model.outputs_ + 1)
    endings = [""] if model.flat_ else [f" {target}" for target in targets]
    return [name + ending for ending in endings for name in ADDED]


def _features(model: Any, frame: DataFrame, path: Path) -> Any:
    """The columns that the fit was made on: a frame where it knows their names, else an array."""
    from regard.cli import _categories, _tables

    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        wanted = _tables.known([str(n) for n in names], frame, path)
        kinds = [wanted[column] for column in model.categories_]
        return _categories.table(frame, wanted, kinds, path, "The fit needs it")
    if len(frame.columns) != model.n_features_in_:
        raise DataError(
            f"{path}: has {len(frame.columns)} columns, and the fit was made without names on {model.n_features_in_}"
        )
    columns = list(frame.columns)
    kinds = [columns[column] for column in model.categories_]
    return _categories.table(frame, columns, kinds, path, "The fit needs it").to_numpy()
