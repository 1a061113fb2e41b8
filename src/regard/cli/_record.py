"""`regard record`: what a model attends to in a text, into a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.errors import ChoiceError, DataError, RegardError, ShapeError, UnknownTextError

if TYPE_CHECKING:
    from regard.cli._run import Given


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
    try:
        written = _run.run(given, out, options, generate, force=force)
    except KeyboardInterrupt:
        _say_stopped(out)
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
    from regard.cli._run import Given

    if not text.strip():
        raise DataError("there is nothing to record: the text is empty")
    tokenizer, model = models.load(name, causal=generate > 0)
    if model.config.is_encoder_decoder and not generate:
        model = model.get_encoder()  # the half that reads; the half that writes would ask what to write
    most = models.longest(tokenizer, model) - generate
    options = {"truncation": True, "max_length": max(most, 1)} if truncate else {}
    tokens = tokenizer(text, return_tensors="pt", verbose=False, **options)
    given = Given(name, tokenizer, model, {key: tokens[key] for key in ("input_ids", "attention_mask")})
    _check_known(given)
    if given.length > most:
        also = f", {generate} of them its own" if generate else ""
        raise ShapeError(
            f"{name} reads {most + generate:,} tokens at a time{also}, and this text has {given.length:,}: "
            f"give a shorter one, or --truncate to record the first {max(most, 0):,}"
        )
    return given


def _check_known(given: Given) -> None:
    """A text of which the model sees mostly holes says nothing about the text."""
    tokenizer, unknown = given.tokenizer, given.tokenizer.unk_token_id
    own = [i for i in given.inputs["input_ids"][0].tolist() if i == unknown or i not in tokenizer.all_special_ids]
    if not own:
        raise DataError("there is nothing to record: the text has no token but those that the model adds")
    holes = own.count(unknown)
    if 2 * holes > len(own):
        raise UnknownTextError(
            f"{given.name} does not know this text: {holes} of its {len(own)} tokens are {tokenizer.unk_token}. "
            f"Take a model that reads it, --model smollm2 or the folder of another"
        )


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


def _say_stopped(out: Path) -> None:
    from regard.cli import _text
    from regard.recording import open as open_recording

    try:
        count = len(open_recording(out).layers) if out.exists() else 0
    except RegardError:
        count = 0
    kept = f"{_text.count(count, 'layer')} recorded until then: {out}" if count else "nothing was recorded yet"
    typer.echo(f"regard: stopped; {kept}", err=True)


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
