"""The command `regard`: one file for each command.

Each command imports heavy packages inside its function, so that `regard --help` answers at once.
"""

import sys
from typing import TYPE_CHECKING, Annotated

from regard.errors import MissingExtraError, RegardError

if TYPE_CHECKING:
    import typer


def build() -> "typer.Typer":
    """Return the command line as an object, with all its commands."""
    try:
        import typer
    except ImportError as missing:
        raise MissingExtraError("the command line needs typer and rich: pip install 'regard[cli]'") from missing
    from regard.cli import demo, export, fit, inspect, lab, lengths, record, relate, saturation, train, translate

    def print_version(wanted: bool) -> None:
        if wanted:
            import regard

            print(regard.__version__)
            raise typer.Exit

    option = typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and stop.")

    def root(_: Annotated[bool, option] = False) -> None:
        """Attention, and seeing it."""

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(root)
    app.command()(demo.demo)
    app.command()(saturation.saturation)
    app.command()(fit.fit)
    app.command()(relate.relate)
    app.command()(record.record)
    app.command()(inspect.inspect)
    app.command()(export.export)
    app.command()(translate.translate)
    app.command()(train.train)
    app.command()(lengths.lengths)
    app.command()(lab.lab)
    app.command()(lab.view)
    return app


def main() -> None:
    """Run the command line; the exit code is 0, 1 for a refusal, 2 for wrong usage, 130 for Ctrl-C."""
    try:
        command = build()
        from regard.cli import console

        console.replace_unprintable()
        command()
    except RegardError as error:
        sys.exit(f"regard: {_printable(error)}")
    except KeyboardInterrupt:  # while packages are imported; later typer catches it
        sys.exit(130)
    except MemoryError as error:
        sys.exit(f"regard: there is not enough memory: {_printable(error)}")
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):  # torch's words; it raises no MemoryError
            raise
        sys.exit(f"regard: there is not enough memory: {_printable(error)}")
    except OSError as error:  # a file that is not there, a disk that is full
        sys.exit(f"regard: {_printable(error.filename or 'the system says')}: {error.strerror or error}")


def _printable(message: object) -> str:
    """Spell out control characters of a message, which may quote a file; without rich it comes as it is."""
    try:
        from regard.cli.console import printable
    except ImportError:
        return str(message)
    return "\n".join(map(printable, str(message).splitlines()))
