"""`regard export`: one head of a recording as a picture, as numbers, or as a page."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.cli._chosen import Chosen
    from regard.recording import Recording

KINDS = ("png", "svg", "npz", "html")


class Language(StrEnum):
    """Of the labels."""

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
Lang = Annotated[Language, typer.Option(help="Of the labels.")]


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
    kinds = _kinds(out, dict(zip(KINDS, (png, svg, npz, html), strict=True)))
    from regard.cli import _progress
    from regard.recording import open as open_recording

    recording = open_recording(file)
    chosen = _choose(recording, layer, head, step, sequence)
    base = _base(file, chosen) if out is None else out
    for kind in kinds:
        path = base if base.suffix.lower() == f".{kind}" else base.with_name(f"{base.name}.{kind}")
        with _progress.step(f"writing {path}"):
            said = _write(chosen, kind, path, lang)
        print(f"written  {path}{said}")


def _kinds(out: Path | None, flags: dict[str, bool]) -> list[str]:
    """What to write, by the options, else by the ending of the file's name."""
    wanted = [kind for kind, asked in flags.items() if asked]
    ending = "" if out is None else out.suffix.lower()[1:]
    if out is not None and not out.absolute().parent.is_dir():
        raise ChoiceError(f"{out}: there is no folder {out.parent}")
    if not wanted and ending in KINDS:
        return [ending]
    if not wanted and ending:
        kinds = ", ".join(f".{kind}" for kind in KINDS)
        raise typer.BadParameter(f"{out} ends in .{ending}; what can be written is {kinds}", param_hint="--out")
    if not wanted:
        raise typer.BadParameter("say what to write", param_hint=", ".join(f"--{kind}" for kind in KINDS))
    if ending in KINDS and wanted != [ending]:
        raise typer.BadParameter(f"{out} would be .{ending}, and --{', --'.join(wanted)} was asked", param_hint="--out")
    return wanted


def _choose(recording: Recording, layer: str | None, head: int | None, step: int | None, sequence: int) -> Chosen:
    from regard.cli import _choose as choose

    one = choose.layer(layer, recording.layers)
    number = choose.step(step, one)
    place = choose.head(head, one)
    with_heads = len(one.shape) == 4
    weights = recording[one.name, number, place] if with_heads else recording[one.name, number]
    batch = weights.shape[0] if weights.ndim > 2 else 1
    if sequence >= batch:
        raise ChoiceError(f"--sequence {sequence} is not in a batch of {batch}")
    index = (sequence, *[0] * (weights.ndim - 3)) if weights.ndim > 2 else ()
    name = choose.head_numbers(one)[place] if with_heads else None
    from regard.cli._chosen import Chosen  # with torch

    return Chosen(recording, one, number, name, sequence, weights, index)


def _base(file: Path, chosen: Chosen) -> Path:
    """A name for what is written: run-encoder.layer.3.attention.self-5, in the folder where one is."""
    head = "" if chosen.head is None else f"-{chosen.head}"
    return Path(re.sub(r"[^\w.-]+", "_", f"{file.stem}-{chosen.layer.name}{head}"))


def _write(chosen: Chosen, kind: str, path: Path, lang: Language) -> str:
    """Write all of it or nothing; returns what is to be said of it."""
    from regard.engine.files import whole_file

    with whole_file(path) as file:
        if kind == "npz":
            from regard.cli import _numbers

            return _numbers.write(chosen, file)
        if kind == "html":
            from regard.cli import _page

            return _page.write(chosen, file, lang)
        from regard.cli import _heatmap

        return _heatmap.write(chosen, file, kind, lang)
