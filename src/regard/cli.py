"""The command `regard`. Everything heavy is imported by the command that needs it, so `--help` answers at once."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.errors import MissingExtraError, RegardError

if TYPE_CHECKING:
    import typer


def build() -> "typer.Typer":
    """The command line as an object, with all its commands."""
    try:
        import typer
    except ImportError as missing:
        raise MissingExtraError("the command line needs typer and rich: pip install 'regard[cli]'") from missing

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    def version(wanted: bool) -> None:
        if wanted:
            import regard

            print(regard.__version__)
            raise typer.Exit

    @app.callback()
    def root(
        _: Annotated[
            bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version and stop.")
        ] = False,
    ) -> None:
        """Attention, and seeing it."""

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option(help="The folder to write to; made if it is not there.")] = Path("gallery"),
    ) -> None:
        """Run the worked examples and write their pictures."""
        from regard.lab import gallery

        for picture in gallery.paint(out):
            print(picture)

    @app.command()
    def saturation(
        d_k: Annotated[list[int] | None, typer.Option(help="A width to measure; may be given several times.")] = None,
    ) -> None:
        """Measure why scores are divided by sqrt(d_k)."""
        from regard import study

        print(study.saturation(d_k or study.POWERS_OF_TWO))

    return app


def main() -> None:
    try:
        build()()
    except RegardError as error:
        sys.exit(f"regard: {error}")
