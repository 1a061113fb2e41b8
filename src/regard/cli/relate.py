"""`regard relate`: how much each segment of a text matters to a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.cli.console import printable
from regard.display.progress import progress

if TYPE_CHECKING:
    from regard.relation import Relation

BAR_WIDTH = 30  # characters of a bar for a weight of 1

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
    text = console.read_text(passage)
    if png is not None:
        from regard.cli.fit_report import check_picture

        console.check_outputs({}, {"--png": png})
        check_picture(png)
    with progress("reading the text"):
        from regard.relation import relate as relate_text

        questions = [console.plain_text(one) for one in question or ()]
        relation = relate_text(text, questions or None, encoder, temperature=temperature)
    if png is not None:
        with progress("drawing"):
            _draw(relation, png)  # before anything is printed: whoever reads the output may stop after its first line
    _show(relation, top)
    if png is not None:
        print(f"drawn    {png}")


def _show(relation: Relation, top: int) -> None:
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = Console(highlight=False)
    terminal.print(Text(relation.encoder, style="dim"))
    for place, question in enumerate(relation.questions):
        terminal.print(Text(f"\n{printable(question)}", style="bold"))
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right", style="dim")
        for related in relation.ranking(place)[:top]:
            bar = Bar(1.0, 0.0, related.weight, width=BAR_WIDTH)
            table.add_row(str(related.place + 1), bar, f"{related.weight:.3f}", Text(printable(related.segment)))
        terminal.print(table)
    omitted = len(relation.segments) - top
    if omitted > 0:
        terminal.print(Text(f"\n{omitted} more segments: --top {len(relation.segments)}", style="dim"))
    if relation.unknown:
        terminal.print()
    for text, words in relation.unknown.items():
        terminal.print(Text(f"not known to the encoder, in {text!r}: {printable(', '.join(words))}", style="dim"))


def _draw(relation: Relation, path: Path) -> None:
    from regard import plot
    from regard.engine.files import atomic_file

    picture = plot.relations(relation).figure.figure
    with atomic_file(path) as file:
        picture.savefig(file, format=path.suffix[1:].lower(), dpi=150)
