"""`regard lengths`: how well models with and without attention translate, by the length of the source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.console import printable
from regard.cli.export import Lang, Language
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.datasets import Pairs
    from regard.seq2seq import Run
    from regard.seq2seq.length_table import Cell, Place

MEASURES = {"numbers": ("exact_match", "exact match, %", 100), "en-fr": ("bleu", "BLEU", 1)}
TABLE = "length_table.json"  # in the folder of the runs

Plot = Annotated[Path | None, typer.Option(help="Draw the table to this file: .png, .svg, .pdf.")]
Train = Annotated[bool, typer.Option("--train", help="Make the table anew; the same command goes on where it stopped.")]
Folder = Annotated[Path | None, typer.Option(help="Of the runs of --train; without --train, its table is shown.")]
Corpus = Annotated[Path | None, typer.Option(help="nmt-0.0.6.tar.gz or its folder, for English to French.")]


def lengths(
    plot: Plot = None, train: Train = False, folder: Folder = None, corpus: Corpus = None, lang: Lang = Language.en
) -> None:
    """Show how well models with and without attention translate sources of 1-10, 11-20, ... 51-60 words.

    regard lengths --plot lengths.png

    regard lengths --train --folder runs --corpus nmt-0.0.6.tar.gz
    """
    if corpus is not None and not train:
        raise ChoiceError("--corpus is what --train learns from: give --train too")
    if plot is not None:
        from regard.cli.fit_report import check_picture

        console.check_outputs({}, {"--plot": plot})
        check_picture(plot)
    from regard.seq2seq import length_table

    if train:
        cells = _train(Path("lengths") if folder is None else folder, corpus)
    else:
        cells = length_table.read(*([] if folder is None else [folder / TABLE]))
    _print(cells, length_table.missing(cells))
    if plot is not None:
        _draw(cells, plot, lang)
        print(f"drawn    {plot}")


def _train(folder: Path, corpus: Path | None) -> tuple[Cell, ...]:
    from regard import datasets
    from regard.seq2seq import length_table

    pairs: Pairs | None = None if corpus is None else datasets.pairs(corpus)
    if pairs is None:
        print("only numbers are learned: English to French needs --corpus, see `regard lengths --help`")
    cells: list[Cell] = []
    for place in length_table.PLACES:
        if place.data == "numbers" or pairs is not None:
            cells.append(length_table.make(place, folder, pairs, lambda run, place=place: _report(place, run)))
            length_table.write(folder / TABLE, cells)
    return tuple(cells)


def _report(place: Place, run: Run) -> None:
    last = run.history[-1]
    step = f"step {last.step:,} of {run.total_steps:,}"
    print(f"{place}: {step}, validation {last.validation_loss:.4f}; {printable(last.sample)}", flush=True)


def _print(cells: Sequence[Cell], missing: Sequence[Place]) -> None:
    """Each kind of data as a table, with a row for each model and a column for each length, and what is missing."""
    from regard.display.text_table import aligned_lines

    for data, words in dict.fromkeys((cell.data, cell.trained_words) for cell in cells):
        column, measure, scale = MEASURES[data]
        here = [cell for cell in cells if (cell.data, cell.trained_words) == (data, words)]
        print(f"{data}, trained up to {words} words: {measure}, by words of the source")
        rows = [["", *(row.words for row in here[0].rows), "minutes"]]
        for cell in here:
            values = [f"{scale * getattr(row, column):.1f}" for row in cell.rows]
            rows.append([cell.model, *values, f"{cell.minutes:.1f}"])
        print("\n".join(aligned_lines(rows, [True] + [False] * (len(rows[0]) - 1))), end="\n\n")
    print("gru and lstm are without attention. Minutes are those of one processor in training.")
    for data, words in dict.fromkeys((place.data, place.trained_words) for place in missing):
        models = [place.model for place in missing if (place.data, place.trained_words) == (data, words)]
        print(f"not trained yet: {data} up to {words} words: {', '.join(models)}")


def _draw(cells: Sequence[Cell], path: Path, lang: str) -> None:
    from regard import plot
    from regard.engine.files import atomic_file

    with atomic_file(path) as file:
        plot.lengths(cells, language=lang).savefig(file, format=path.suffix[1:].lower(), dpi=150)
