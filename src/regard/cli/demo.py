"""`regard demo`: the worked examples and their pictures."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to; made if it is not there.")] = Path("gallery"),
) -> None:
    """Run the worked examples and write their pictures."""
    from regard.lab.examples import gallery

    for picture in gallery.write_each(out):
        print(picture)
