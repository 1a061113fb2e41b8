"""`regard record`: what a model attends to in a text, into a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.errors import ChoiceError, DataError, ShapeError, UnknownTextError

if TYPE_CHECKING:
    from regard.cli._progress import Step

LOOK = 0.2  # seconds between two looks at the file


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


class Given(NamedTuple):
    """A model and what it is to read."""

    name: str
    tokenizer: Any
    model: Any
    inputs: dict[str, Any]  # input_ids and attention_mask, (1, tokens)

    @property
    def length(self) -> int:
        return self.inputs["input_ids"].shape[-1]


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
    from regard.cli import _choose, _progress, _text

    _check(out, force=force)
    words = _text.read(text)
    chosen = _choose.numbers(heads, "--heads")
    with _progress.step(f"loading {model}"):
        given = _load(model, words, generate, truncate=truncate)
    options = {"heads": chosen, "dtype": dtype, "layers": _layers(layers, given.model)}
    try:
        written = _run(given, out, options, generate, force=force)
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


def _run(given: Given, out: Path, options: dict[str, Any], generate: int, *, force: bool) -> str | None:
    """Record; returns what the model wrote, if it was asked to write."""
    import torch

    from regard.capture import record as recording
    from regard.cli import _progress

    if options["dtype"] is not None:
        options["dtype"] = getattr(torch, options["dtype"])
    about = {"from": given.name}
    total = generate or (None if options["layers"] else getattr(given.model.config, "num_hidden_layers", None))
    with _placed(out, force=force) as path, _progress.step(f"recording {given.length:,} tokens", total) as line:
        with torch.no_grad(), recording(given.model, path=path, tokenizer=given.tokenizer, about=about, **options):
            if generate:
                return _write(given, generate, line)
            with _followed(path, line):
                given.model(**given.inputs)
    return None


def _write(given: Given, count: int, line: Step) -> str:
    new = {"max_new_tokens": count, "do_sample": False, "num_beams": 1, "streamer": Counter(line)}
    ids = given.model.generate(**given.inputs, **new)
    start = 0 if given.model.config.is_encoder_decoder else given.length
    return given.tokenizer.decode(ids[0, start:], skip_special_tokens=True)


class Counter:
    """What `generate` tells of each token."""

    def __init__(self, line: Step) -> None:
        self._line, self._prompt = line, True

    def put(self, value: Any) -> None:
        self._line.advance(0 if self._prompt else 1)
        self._prompt = False

    def end(self) -> None:
        """There is nothing to close."""


@contextmanager
def _placed(out: Path, *, force: bool) -> Iterator[Path]:
    """Where to record. What is there already stays until something was recorded, and then makes room for it."""
    if not (force and out.exists()):
        yield out
        return
    target = Path(os.path.realpath(out))
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield beside
    finally:
        if beside.exists():  # a recording without a call leaves no file
            beside.replace(target)


@contextmanager
def _followed(path: Path, line: Step) -> Iterator[None]:
    """Count the layers as they reach the file, by a second reader of it."""
    if not line.shown:
        yield
        return
    from regard.recording import open as open_recording

    done = threading.Event()

    def look() -> None:
        reading = open_recording(path)
        line.advance(len(reading.entries))
        while not done.wait(LOOK):
            line.advance(reading.refresh())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()


def _say_stopped(out: Path) -> None:
    from regard.errors import RegardError
    from regard.recording import open as open_recording

    try:
        count = len(open_recording(out).layers) if out.exists() else 0
    except RegardError:
        count = 0
    kept = f"{count} layer{'s' * (count != 1)} recorded until then: {out}" if count else "nothing was recorded yet"
    typer.echo(f"regard: stopped; {kept}", err=True)


def _sum_up(out: Path, given: Given, written: str | None) -> None:
    from regard.cli import _facts, _text
    from regard.recording import open as open_recording

    made = open_recording(out)
    heads = sum(layer.shape[1] for layer in made.layers)
    tokens = next((ids.shape[-1] for ids in made.inputs.get(0, {}).values()), given.length)
    print(f"{given.name} ({made.about['model']})")
    print(f"{tokens:,} tokens, {len(made.layers)} layers, {heads} heads, {_facts.size(made.bytes)}")
    if written is not None:
        print(f"wrote    {_text.visible(written)}")
    print(f"written  {out}")
