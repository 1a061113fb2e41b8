"""`regard record`: what a model attends to in a text, into a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.models import Given


class Dtype(StrEnum):
    """What a recording can be made of."""

    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"
    float64 = "float64"


Text = Annotated[str, typer.Option(help="A text, a file with one, or - for what is piped in.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The recording, such as run.regard.")]
Model = Annotated[str, typer.Option(help="minilm, smollm2, a Hugging Face folder, or a name on its hub.")]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layers", help="Keep these: a number, or a name with * and ?. May be given several times."),
]
Heads = Annotated[str | None, typer.Option(help="Keep these: 0,3,5.")]
Kept = Annotated[Dtype | None, typer.Option(help="Keep numbers of this type; the model's own if left out.")]
Generate = Annotated[int, typer.Option(min=0, help="Let the model write this many tokens more.")]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut a text that is longer than the model reads.")]
Force = Annotated[bool, typer.Option("--force", help="Take the place of a file that is there.")]


def record(
    text: Text,
    out: Out,
    model: Model = "minilm",
    layers: Layers = None,
    heads: Heads = None,
    dtype: Kept = None,
    generate: Generate = 0,
    truncate: Truncate = False,
    force: Force = False,
) -> None:
    """Record what every layer of a model attends to in a text. Ctrl-C keeps what was recorded until then.

    regard record --text story.txt -o run.regard

    regard record --model smollm2 --text "Once upon a time" --generate 20 -o run.regard
    """
    from regard.cli import _choose, _progress, _run, _text

    _check(out, force=force)
    words = _text.read(text)
    chosen = _choose.numbers(heads, "--heads")
    with _progress.step(f"loading {model}"):
        given = _load(model, words, generate, truncate=truncate)
    options = {"heads": chosen, "dtype": dtype, "layers": _layers(layers, given.model)}
    before = _identity(out)
    try:
        written = _run.run(given, out, options, generate, force=force)
    except KeyboardInterrupt:
        _say_stopped(out, recorded=_identity(out) != before)
        raise typer.Exit(130) from None
    _sum_up(out, given, written)


def _check(out: Path, *, force: bool) -> None:
    """Refuse before the work what could not be done after it."""
    if not out.absolute().parent.is_dir():
        raise ChoiceError(f"{out}: there is no folder {out.parent}")
    if out.is_dir():
        raise ChoiceError(f"{out} is a folder: name the file that is to be written")
    if out.exists() and not force:
        raise ChoiceError(f"{out} exists already: choose another name, or --force to take its place")


def _load(name: str, text: str, generate: int, *, truncate: bool) -> Given:
    from regard import models

    other = ". Take a model that reads it, --model smollm2 or the folder of another"
    cut = ", or --truncate to record the first {most:,}"
    return models.give(name, text, generate=generate, truncate=truncate, instead=other, shorter=cut)


def _layers(wanted: list[str] | None, model: Any) -> list[str] | None:
    """Patterns as they are; a number as all modules below the one that it numbers."""
    from regard.cli import _choose

    if wanted is None:
        return None
    names = [name for name, _ in model.named_modules()]
    for one in wanted:
        if one.isdecimal() and not _choose.matching(one, names):
            raise ChoiceError(f"--layers {one}: no module of {type(model).__name__} has this number")
    return [name for one in wanted for name in (_choose.matching(one, names) if one.isdecimal() else [one])]


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, if there is one; another of the same name is another."""
    if not path.exists():
        return None
    found = path.stat()
    return found.st_dev, found.st_ino


def _say_stopped(out: Path, *, recorded: bool) -> None:
    from regard.cli import _text
    from regard.recording import open as open_recording

    said = "nothing was recorded yet"
    if recorded:
        said = f"{_text.count(len(open_recording(out).layers), 'layer')} recorded until then: {out}"
    typer.echo(f"regard: stopped; {said}", err=True)


def _sum_up(out: Path, given: Given, written: str | None) -> None:
    from regard.cli import _facts, _text
    from regard.recording import open as open_recording

    made = open_recording(out)
    heads = sum(layer.shape[1] for layer in made.layers)
    tokens = next((ids.shape[-1] for ids in made.inputs.get(0, {}).values()), given.length)
    counts = [_text.count(tokens, "token"), _text.count(len(made.layers), "layer"), _text.count(heads, "head")]
    print(f"{given.name} ({made.about['model']})")
    print(f"{', '.join(counts)}, {_facts.size(made.bytes)}")
    if written is not None:
        print(f"went on  {_text.visible(written)}")
    print(f"written  {out}")
