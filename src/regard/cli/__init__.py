"""The command `regard`. Everything heavy is imported by the command that needs it, so `--help` answers at once."""

import sys
from typing import TYPE_CHECKING

from regard.errors import MissingExtraError, RegardError

if TYPE_CHECKING:
    import typer


def build() -> "typer.Typer":
    """The command line as an object, with all its commands."""
    try:
        import typer
    except ImportError as missing:
        raise MissingExtraError("the command line needs typer and rich: pip install 'regard[cli]'") from missing
    from regard.cli import _commands, export, fit, inspect, lab, record, relate

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_commands.root)
    own = (_commands.demo, _commands.saturation, fit.fit, relate.relate)
    for command in (*own, record.record, inspect.inspect, export.export, lab.lab, lab.view):
        app.command()(command)
    return app


def main() -> None:
    """Exit with 0, with 2 for a question that was not understood, with 1 for any other refusal, 130 for Ctrl-C."""
    try:
        build()()
    except RegardError as error:
        sys.exit(f"regard: {error}")
    except OSError as error:  # a file that is not there, a disk that is full
        sys.exit(f"regard: {error.filename or 'the system says'}: {error.strerror or error}")
