"""`regard lab` and `regard view`: the page in the browser."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

Port = Annotated[int | None, typer.Option(min=0, max=65535, help="8765 if left out, or any that is free; so is 0.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")]
Host = Annotated[str, typer.Option(help="Another address to answer on: whoever reaches it and has the token may ask.")]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def lab(port: Port = None, no_open: NoOpen = False, host: Host = "127.0.0.1") -> None:
    """Play with attention in the browser."""
    _serve((), lab=True, host=host, port=port, no_open=no_open)


def view(
    file: Annotated[Path, typer.Argument(help="A recording: run.regard.")],
    port: Port = None,
    no_open: NoOpen = False,
    host: Host = "127.0.0.1",
) -> None:
    """Look at a recording in the browser."""
    _serve((file,), lab=False, host=host, port=port, no_open=no_open)


def _serve(files: Sequence[Path], *, lab: bool, host: str, port: int | None, no_open: bool) -> None:
    from regard import web

    if host not in LOOPBACK:
        print(
            f"regard: answering on {host}: anybody on that network who has the token can ask, and nothing is encrypted",
            file=sys.stderr,
            flush=True,
        )

    def announce(url: str) -> None:
        print(url, flush=True)  # plain: a terminal may wrap what it shows, but the line is one

    try:
        web.serve(files, lab=lab, host=host, port=port, announce=announce, open_browser=not no_open)
    except KeyboardInterrupt:  # the way to stop it
        raise typer.Exit from None
