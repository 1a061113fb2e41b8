"""`regard record`: run a model on a text and write every attention call to a file."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal

from regard.cli import console, selectors
from regard.display.progress import Advance, progress
from regard.engine import files
from regard.errors import ChoiceError, IncompleteRecordingWarning

if TYPE_CHECKING:
    from regard.models import TokenizedText

REFRESH = 0.2  # seconds between two looks at the growing file, for the progress line


class Check(StrEnum):
    """Calls whose weights are compared with the model's output."""

    first = "first"
    all = "all"
    none = "none"


class Dtype(StrEnum):
    """Number types that a recording can hold."""

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
Checked = Annotated[Check, typer.Option("--check", help="Compare with the model's output: the first calls, all, none.")]
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
    check: Checked = Check.first,
) -> None:
    """Record what every layer of a model attends to in a text. Ctrl-C keeps what was recorded until then.

    regard record --text story.txt -o run.regard

    regard record --model smollm2 --text "Once upon a time" --generate 20 -o run.regard
    """
    _check_output(out, force=force)
    content = console.read_text(text)
    head_numbers = selectors.parse_numbers(heads, "--heads")
    with progress(f"loading {model}"):
        prepared = _load(model, content, generate, truncate=truncate)
    options = {
        "heads": head_numbers,
        "dtype": dtype,
        "layers": _module_names(layers, prepared.model),
        "check": check.value,
    }
    before = _identity(out)
    try:
        generated = run(prepared, out, options, generate, force=force)
    except KeyboardInterrupt:
        _print_stopped(out, recorded=_identity(out) != before)
        raise typer.Exit(130) from None
    _print_summary(out, prepared, generated)


def _check_output(out: Path, *, force: bool) -> None:
    """Refuse, before the model runs, an output that could not be written."""
    console.check_folder(out)
    if out.is_dir():
        raise ChoiceError(f"{out} is a folder: name the file that is to be written")
    if out.exists() and not force:
        raise ChoiceError(f"{out} exists already: choose another name, or --force to take its place")


def _load(name: str, text: str, generate: int, *, truncate: bool) -> TokenizedText:
    from regard import models

    other = ". Take a model that reads it, --model smollm2 or the folder of another"
    cut = ", or --truncate to record the first {most:,}"
    return models.tokenize(name, text, generate=generate, truncate=truncate, instead=other, shorter=cut)


def _module_names(patterns: list[str] | None, model: Any) -> list[str] | None:
    """Return patterns unchanged, and a number as the names of all modules below the one with that number."""
    if patterns is None:
        return None
    names = [name for name, _ in model.named_modules()]
    for pattern in patterns:
        if pattern.isdecimal() and not selectors.matching(pattern, names):
            raise ChoiceError(f"--layers {pattern}: no module of {type(model).__name__} has this number")
    expanded = (selectors.matching(pattern, names) if pattern.isdecimal() else [pattern] for pattern in patterns)
    return [name for group in expanded for name in group]


def run(prepared: TokenizedText, out: Path, options: dict[str, Any], generate: int, *, force: bool) -> str | None:
    """Record the model with a progress line; return the text it generated, or None if it generated none."""
    import torch

    from regard.capture import record as record_model

    if options["dtype"] is not None:
        options["dtype"] = getattr(torch, options["dtype"])
    about = {"from": prepared.name}
    total = generate or (None if options["layers"] else getattr(prepared.model.config, "num_hidden_layers", None))
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", IncompleteRecordingWarning)  # the summary says it
        path = stack.enter_context(_replacing(out, force=force))
        advance = stack.enter_context(progress(f"recording {prepared.length:,} tokens", total))
        stack.enter_context(torch.no_grad())
        stack.enter_context(
            record_model(prepared.model, path=path, tokenizer=prepared.tokenizer, about=about, **options)
        )
        if generate:
            return _generate(prepared, generate, advance)
        stack.enter_context(_layer_progress(path, advance))
        prepared.model(**prepared.inputs)
    return None


def _generate(prepared: TokenizedText, count: int, advance: Advance) -> str:
    new = {"max_new_tokens": count, "do_sample": False, "num_beams": 1, "streamer": TokenCounter(advance)}
    ids = prepared.model.generate(**prepared.inputs, **new)
    start = 0 if prepared.model.config.is_encoder_decoder else prepared.length
    return prepared.tokenizer.decode(ids[0, start:], skip_special_tokens=True)


class TokenCounter:
    """A streamer for `generate` that advances the progress line by one for each new token."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._is_prompt = advance, True

    def put(self, value: Any) -> None:
        self._advance(done=0 if self._is_prompt else 1)
        self._is_prompt = False

    def end(self) -> None:
        """Do nothing; `generate` requires this method."""


@contextmanager
def _replacing(out: Path, *, force: bool) -> Iterator[Path]:
    """Give the path to record to. With --force the old file stays until something was recorded."""
    if not (force and out.exists()):
        yield out
        return
    target = Path(os.path.realpath(out))
    beside = files.spare_path(target)
    try:
        yield beside
    finally:
        if beside.exists():  # a recording without a call leaves no file
            files.put_in_place(beside, target)


@contextmanager
def _layer_progress(path: Path, advance: Advance) -> Iterator[None]:
    """Advance the line by one for each layer that reaches the file; a second thread reads the file."""
    if not advance.shown:
        yield
        return
    from regard.recording import open as open_recording

    done = threading.Event()

    def follow() -> None:
        reader = open_recording(path)
        advance(done=len(reader.entries))
        while not done.wait(REFRESH):
            advance(done=reader.refresh())

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode, which tell a new file from an old one of the same name; None without a file."""
    if not path.exists():
        return None
    status = path.stat()
    return status.st_dev, status.st_ino


def _print_stopped(out: Path, *, recorded: bool) -> None:
    from regard.recording import open as open_recording

    message = "nothing was recorded yet"
    if recorded:
        message = f"{console.plural(len(open_recording(out).layers), 'layer')} recorded until then: {out}"
    print(f"regard: stopped; {message}", file=sys.stderr)


def _print_summary(out: Path, prepared: TokenizedText, generated: str | None) -> None:
    from regard.recording import open as open_recording

    recording = open_recording(out)
    heads = sum(layer.shape[1] for layer in recording.layers)
    tokens = next((ids.shape[-1] for ids in recording.inputs.get(0, {}).values()), prepared.length)
    counts = ((tokens, "token"), (len(recording.layers), "layer"), (heads, "head"))
    print(f"{prepared.name} ({recording.about['model']})")
    print(f"{', '.join(console.plural(*count) for count in counts)}, {decimal(recording.bytes)}")
    if generated is not None:
        print(f"went on  {console.printable(generated)}")
    for name, reason in recording.missing:
        print(f"missing  {name}: {reason}")
    print(f"written  {out}")
