"""`regard export`: one head of a recording as a picture, as numbers, or as a page."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import console
from regard.display.progress import progress

if TYPE_CHECKING:
    from regard.cli.selectors import SelectedHead

FORMATS = ("png", "svg", "npz", "html")


class Language(StrEnum):
    """Languages of the labels."""

    en = "en"
    zh = "zh"


File = Annotated[Path, typer.Argument(help="A recording, such as run.regard.")]
Layer = Annotated[
    str | None, typer.Option(help="Its name, a pattern with * and ?, or the first number in its name: 3.")
]
Head = Annotated[int | None, typer.Option(help="As the model counts its heads.")]
Step = Annotated[int | None, typer.Option(help="Which forward pass, where there are several.")]
Sequence = Annotated[int, typer.Option(min=0, help="Which sequence of the batch.")]
Png = Annotated[bool, typer.Option("--png", help="A picture.")]
Svg = Annotated[bool, typer.Option("--svg", help="A picture to print.")]
Npz = Annotated[bool, typer.Option("--npz", help="Numbers for numpy: all weights, or a pooled map of too many.")]
Html = Annotated[bool, typer.Option("--html", help="A page to zoom into, in one file.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where to; its ending says what, if nothing else does.")]
Lang = Annotated[Language, typer.Option(help="Language of the labels.")]


def export(
    file: File,
    layer: Layer = None,
    head: Head = None,
    step: Step = None,
    sequence: Sequence = 0,
    png: Png = False,
    svg: Svg = False,
    npz: Npz = False,
    html: Html = False,
    out: Out = None,
    lang: Lang = Language.en,
) -> None:
    """Write one head of a recording to a file: .png, .svg, .npz or .html, however long the text is.

    regard export run.regard --layer 3 --head 5 --html -o head.html
    """
    formats = _formats(out, dict(zip(FORMATS, (png, svg, npz, html), strict=True)))
    from regard.cli.selectors import select_matrix
    from regard.recording import open as open_recording

    selected = select_matrix(open_recording(file), layer, head, step, sequence)
    base = _default_name(file, selected) if out is None else out
    for format_ in formats:
        path = _with_ending(base, format_)
        with progress(f"writing {path}"):
            note = _write(selected, format_, path, lang)
        # The picture itself may have gone to the standard output.
        print(f"written  {path}{note}", file=sys.stdout if path.is_file() else sys.stderr)


def _formats(out: Path | None, flags: dict[str, bool]) -> list[str]:
    """Return the formats to write: those of the options, else the one of the file's ending."""
    wanted = [name for name, is_set in flags.items() if is_set]
    ending = "" if out is None else out.suffix.lower()[1:]
    if out is not None:
        console.check_outputs({}, {"--out": out})
    if not wanted and ending in FORMATS:
        return [ending]
    if not wanted and ending:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise typer.BadParameter(f"{out} ends in .{ending}; what can be written is {endings}", param_hint="--out")
    if not wanted:
        raise typer.BadParameter("say what to write", param_hint=", ".join(f"--{name}" for name in FORMATS))
    if ending in FORMATS and wanted != [ending]:
        raise typer.BadParameter(f"{out} would be .{ending}, and --{', --'.join(wanted)} was asked", param_hint="--out")
    return wanted


def _with_ending(base: Path, format_: str) -> Path:
    """Add the ending of a format where it is missing; a device or a pipe, such as /dev/stdout, keeps its name."""
    is_device = base.exists() and not base.is_file()
    return base if is_device or base.suffix.lower() == f".{format_}" else base.with_name(f"{base.name}.{format_}")


def _default_name(file: Path, head: SelectedHead) -> Path:
    """Return a name in the current folder, such as run-encoder.layer.3.attention.self-5."""
    number = "" if head.head is None else f"-{head.head}"
    return Path(re.sub(r"[^\w.-]+", "_", f"{file.stem}-{head.layer.name}{number}"))


def _write(head: SelectedHead, format_: str, path: Path, lang: Language) -> str:
    """Write the whole file or nothing; return the end of the line to print."""
    from regard.cli import exporters
    from regard.engine.files import atomic_file

    with atomic_file(path) as file:
        if format_ == "npz":
            return exporters.write_arrays(head, file)
        if format_ == "html":
            return exporters.write_page(head, file, lang)
        return exporters.write_picture(head, file, format_, lang)
