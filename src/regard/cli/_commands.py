"""The commands that take a line or two."""

from pathlib import Path
from typing import Annotated

import typer


def _version(wanted: bool) -> None:
    if wanted:
        import regard

        print(regard.__version__)
        raise typer.Exit


def root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Attention, and seeing it."""


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to; made if it is not there.")] = Path("gallery"),
) -> None:
    """Run the worked examples and write their pictures."""
    from regard.lab import gallery

    for picture in gallery.paint(out):
        print(picture)


def saturation(
    d_k: Annotated[list[int] | None, typer.Option(help="A width to measure; may be given several times.")] = None,
) -> None:
    """Measure why scores are divided by sqrt(d_k)."""
    from regard import analysis

    print(analysis.saturation(d_k or analysis.POWERS_OF_TWO))
