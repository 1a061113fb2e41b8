"""`regard translate`: a translation of a text, and a picture of what was attended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.console import printable
from regard.display.progress import progress
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.seq2seq import Translation

Text = Annotated[str, typer.Argument(help="A text, a file with one sentence on a line, or - for what is piped in.")]
Model = Annotated[
    str, typer.Option(help="en-fr or numbers, as they are or with /transformer or /none; or what regard train wrote.")
]
Beam = Annotated[int, typer.Option(min=1, help="Hypotheses that are kept; 1 is greedy.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the alignment to this file: .png, .svg, .pdf.")]
Copy = Annotated[bool, typer.Option("--copy-unknown", help="Copy the attended source word for an unknown word.")]


def translate(
    text: Text, model: Model = "en-fr", beam: Beam = 4, plot: Plot = None, copy_unknown: Copy = False
) -> None:
    """Translate a text, line by line.

    regard translate "i mistook him for my brother ." --plot alignment.png
    """
    lines = console.read_text(text).splitlines() or [""]
    if plot is not None:
        from regard.cli.fit_report import check_picture

        console.check_outputs({}, {"--plot": plot})
        check_picture(plot)
        if len(lines) != 1:
            raise ChoiceError(f"--plot draws one sentence, and the text has {len(lines):,} lines")
    with progress("translating"):
        from regard import seq2seq

        loaded = seq2seq.load(model)
        found = loaded.translate(lines, beam=beam, replace_unknown=copy_unknown)
    if plot is not None:
        _draw(found[0], plot)
    for translation in found:
        print(printable(translation.text))
    if plot is not None:
        print(f"drawn    {plot}")


def _draw(translation: Translation, path: Path) -> None:
    if translation.weights is None:
        why = "the text is empty" if not translation.source_tokens else "this model has no attention"
        raise ChoiceError(f"--plot: there is nothing to draw, since {why}")
    from regard import plot
    from regard.engine.files import atomic_file

    weights = translation.weights
    shown = weights.dense() if len(weights.shape) == 2 else weights.dense().mean(0)
    axes = plot.heatmap(shown, tokens=translation.source_tokens, query_tokens=translation.tokens)
    with atomic_file(path) as file:
        axes.figure.figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
