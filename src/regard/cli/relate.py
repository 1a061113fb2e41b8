"""`regard relate`: which segments of a text matter to a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.relation import Relation

WIDTH = 30  # of a bar for a weight of 1, in characters

Passage = Annotated[
    str, typer.Argument(help="A text, a file with one, or - for what is piped in; | separates segments.")
]
Question = Annotated[
    list[str] | None,
    typer.Option("--question", "-q", help="May be given several times. Without any, the segments ask each other."),
]
EncoderName = Annotated[
    str | None,
    typer.Option(help="minilm, words, a Hugging Face folder, or a name on its hub. Chosen by the writing if left out."),
]
Png = Annotated[Path | None, typer.Option(help="Draw the lines to this file: .png, .svg, .pdf.")]
Top = Annotated[int, typer.Option(min=1, help="How many segments to print for a question.")]
Temperature = Annotated[float, typer.Option(help="The smaller, the more the best segment takes.")]


def relate(
    passage: Passage,
    question: Question = None,
    encoder: EncoderName = None,
    png: Png = None,
    top: Top = 20,
    temperature: Temperature = 0.1,
) -> None:
    """Show how much each segment of a text matters to a question.

    regard relate "His father is tall | He loves apples" -q "Why is he so tall?" --png lines.png
    """
    from regard.cli import _progress, _text

    text = _text.read(passage)
    if png is not None:
        _check(png)
    with _progress.step("reading the text"):
        from regard.relation import relate as find

        found = find(text, question or None, encoder, temperature=temperature)
    _show(found, top)
    if png is not None:
        with _progress.step("drawing"):
            _draw(found, png)
        print(f"drawn    {png}")


def _check(png: Path) -> None:
    from regard.cli import _picture

    if not png.absolute().parent.is_dir():
        raise ChoiceError(f"{png}: there is no folder {png.parent}")
    _picture.check(png)


def _show(found: Relation, top: int) -> None:
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(found.encoder, style="dim"))
    for place, question in enumerate(found.questions):
        console.print(Text(f"\n{question}", style="bold"))
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", style="dim")
        for related in found.ranking(place)[:top]:
            bar = Bar(1.0, 0.0, related.weight, width=WIDTH)
            table.add_row(str(related.place + 1), bar, f"{related.weight:.3f}", Text(related.segment))
        console.print(table)
    left = len(found.segments) - top
    if left > 0:
        console.print(Text(f"\n{left} more segments: --top {len(found.segments)}", style="dim"))
    if found.unknown:
        console.print()
    for text, words in found.unknown.items():
        console.print(Text(f"not known to the encoder, in {text!r}: {', '.join(words)}", style="dim"))


def _draw(found: Relation, path: Path) -> None:
    from regard import plot
    from regard.engine.files import whole_file

    picture = plot.relations(found).figure.figure
    with whole_file(path) as file:
        picture.savefig(file, format=path.suffix[1:].lower(), dpi=150)
