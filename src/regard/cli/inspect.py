"""`regard inspect`: the content of a recording, as a table or as JSON, with statistics of every head."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from regard.cli import selectors
from regard.cli.console import plural, printable
from regard.display.progress import progress
from regard.errors import ChoiceError, RecordingFileError

if TYPE_CHECKING:
    from regard.recording import Layer as RecordedLayer
    from regard.recording import Recording

COLUMN_WIDTHS = {
    "head": 4,
    "entropy": 7,
    "saturation": 10,
    "distance": 8,
    "first": 5,
    "previous": 8,
    "itself": 6,
    "separators": 10,
}
SHARES = ("saturation", "first", "previous", "itself", "separators")  # from 0 to 1
UNCHECKED = {  # by Call.check
    "dropout": "not checked: dropout",
    "none": 'not checked: recorded with check="none"',
    "undecided": "not proved: other weights would have given this output too",
}
PIPED_WIDTH = 120  # columns if the output is not a terminal
SHOWN_TOKENS = 40  # tokens of a text that are printed

File = Annotated[Path, typer.Argument(help="A recording, such as run.regard.")]
Layer = Annotated[
    list[str] | None,
    typer.Option("--layer", help="Only these: a number, or a name with * and ?. May be given several times."),
]
Step = Annotated[int | None, typer.Option(help="Only this forward pass; all if left out.")]
Separator = Annotated[
    list[str] | None,
    typer.Option("--separator", help="A token whose share is shown too, such as [SEP]. May be given several times."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Read no tensors: no profiles, and only texts are checked.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]


def inspect(
    file: File,
    layer: Layer = None,
    step: Step = None,
    separator: Separator = None,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Show what is in a recording: model, tokens, layers, masks, and what each head does. Exits with 1 if damaged.

    regard inspect run.regard --layer 3
    """
    from regard.recording import open as open_recording

    recording = open_recording(file)
    layers = selectors.select_layers(layer or [], recording.layers)
    if not quick:
        _check_separators(recording, separator or [])
    if step is not None:
        layers = [one for one in layers if step in one.steps]
        if not layers:
            selectors.select_step(step, recording.layers[0])
    count = sum(1 if step is not None else len(one.steps) for one in layers)
    with progress("reading", count) as advance:
        damage = recording.damage if quick else recording.verify()
        options: dict[str, Any] = {"profiles": not quick, "advance": advance}
        sections = list(layer_sections(recording, layers, step, separator, **options))
        facts = summarise(recording, sections, damage)
    if as_json:
        print(json.dumps(facts, ensure_ascii=True, indent=1))
    else:
        show(facts)
    if facts["damage"]:
        raise typer.Exit(1)


def summarise(recording: Recording, sections: list[dict[str, Any]], damage: list[str]) -> dict[str, Any]:
    """Return everything that is printed, as plain data. `sections` are the layers, step by step."""
    path = recording.path
    return {
        "file": str(path),
        "bytes": path.stat().st_size if path is not None else 0,
        "closed": recording.closed,
        "about": recording.about,
        "steps": list(recording.steps),
        "layers_in_file": len(recording.layers),
        "heads_in_file": sum(len(selectors.head_numbers(layer)) for layer in recording.layers),
        "tensor_bytes": recording.bytes,
        "tokens": _token_facts(recording, damage),
        "layers": sections,
        "missing": [{"name": name, "reason": reason} for name, reason in recording.missing],
        "damage": damage,
    }


def _token_facts(recording: Recording, damage: list[str]) -> list[dict[str, Any]]:
    """Return, for each step and argument, the number of sequences, their length and their texts."""
    facts: list[dict[str, Any]] = []
    try:
        texts = recording.tokens
        for step, ids_by_name in recording.inputs.items():
            for name, ids in ids_by_name.items():
                rows = texts.get(step, {}).get(name)
                facts.append(
                    {"step": step, "name": name, "sequences": ids.shape[0], "length": ids.shape[-1], "texts": rows}
                )
    except RecordingFileError as error:
        if str(error) not in damage:
            damage.append(str(error))
    return facts


def _check_separators(recording: Recording, separators: Sequence[str]) -> None:
    """Refuse a separator that is not a token: its share of 0.000 would look like a result."""
    try:
        rows = [row for step in recording.tokens.values() for rows in step.values() for row in rows]
    except RecordingFileError:
        return  # the damage is reported later, with everything else
    texts = {text for row in rows for text in row}
    for text in separators:
        if texts and text not in texts:
            similar = sorted(repr(other) for other in texts if other.strip() == text.strip())
            hint = f"; there is {', '.join(similar)}" if similar else ""
            raise ChoiceError(f"--separator {text!r} is no token of this recording{hint}")


def layer_sections(
    recording: Recording,
    layers: Sequence[RecordedLayer],
    step: int | None,
    separators: Sequence[str] | None,
    *,
    profiles: bool,
    advance: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    """Yield the facts of each layer in each of its steps. A damaged layer holds its error, and the others follow."""
    for layer in layers:
        for number in layer.steps if step is None else (step,):
            entry = next(e for e in recording.entries if (e.name, e.step) == (layer.name, number))
            *lead, queries, keys = entry.shape
            section: dict[str, Any] = {
                "name": layer.name, "step": number, "shape": list(entry.shape), "queries": queries, "keys": keys,
                "sequences": math.prod(lead[:-1]), "cross": entry.cross, "mask": entry.mask, "bytes": entry.bytes,
                "check": entry.check,
                "head_numbers": selectors.head_numbers(layer), "heads": [], "damage": None,
            }  # fmt: skip
            try:
                if profiles:
                    section["heads"] = _head_profiles(recording, layer, number, separators)
            except RecordingFileError as error:
                section["damage"] = str(error)
            advance()
            yield section


def _head_profiles(
    recording: Recording, layer: RecordedLayer, step: int, separators: Sequence[str] | None
) -> list[dict[str, Any]]:
    from regard import analysis

    table = analysis.profiles(recording, layers=escape(layer.name), step=step, separators=separators)
    names = selectors.head_numbers(layer)
    measures = [name for name in analysis.MEASURES if name != "separators" or separators]
    return [{"head": names[row.head], **{name: _json_number(getattr(row, name)) for name in measures}} for row in table]


def _json_number(value: float) -> float | None:
    """Return None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value


def show(facts: dict[str, Any]) -> None:
    """Print the facts as tables that fit a terminal of any width."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width, console.soft_wrap = PIPED_WIDTH, True  # a program that reads a line wants all of it
    console.print(_overview(facts))
    omitted: set[str] = set()
    for section in facts["layers"]:
        console.print()
        console.print(_title(section, several=len(facts["steps"]) > 1))
        if section["damage"]:
            console.print(Text(f"  {printable(section['damage'])}", style="red"))
        elif section["heads"]:
            table, hidden = _profile_table(section["heads"], console.width)
            console.print(table)
            omitted.update(hidden)
    if omitted:
        console.print(
            Text(f"\nno room for {', '.join(sorted(omitted))}: widen the terminal, or take --json", style="dim")
        )
    for absent in facts["missing"]:
        name, reason = printable(absent["name"]), printable(absent["reason"])
        console.print(Text.assemble("\nnot in this recording: ", (name, "bold"), f": {reason}", style="yellow"))
    for fault in facts["damage"]:
        console.print(Text(f"\ndamaged: {printable(fault)}", style="bold red"))


def _overview(facts: dict[str, Any]) -> Text:
    about = facts["about"]
    source = f", from {about['from']}" if "from" in about else ""
    state = "" if facts["closed"] else ", not closed: it is being written, or its writer was killed"
    steps = plural(len(facts["steps"]), "step")
    several = len(facts["tokens"]) > 1
    missing = len({absent["name"] for absent in facts["missing"]})
    verb = "is" if missing == 1 else "are"
    absent = f"; {plural(missing, 'layer')} that ran {verb} not in this recording, see below" if missing else ""
    lines = [
        ("file", f"{facts['file']}, {decimal(facts['bytes'])}{state}"),
        ("model", f"{about.get('model', 'unknown')}{source}"),
        *(("tokens", _token_line(tokens, several=several)) for tokens in facts["tokens"]),
        ("layers", f"{facts['layers_in_file']}, {plural(facts['heads_in_file'], 'head')}, in {steps}{absent}"),
        ("kept", f"{decimal(facts['tensor_bytes'])} of queries, keys and masks"),
    ]
    text = Text()
    for name, value in lines:
        text.append(f"{name:<8}", style="dim").append(printable(value) + "\n")
    text.rstrip()
    return text


def _token_line(tokens: dict[str, Any], *, several: bool) -> str:
    rows = tokens["texts"]
    many = f"{tokens['sequences']} x " if tokens["sequences"] > 1 else ""
    words = "" if not rows else ": " + " ".join(text.strip() or "·" for text in rows[0][:SHOWN_TOKENS])
    more = " …" if rows and len(rows[0]) > SHOWN_TOKENS else ""
    where = f" ({tokens['name']}, step {tokens['step']})" if several else ""
    return f"{many}{tokens['length']:,}{where}{words}{more}"


def _title(section: dict[str, Any], *, several: bool) -> Text:
    facts = [
        *([f"step {section['step']}"] if several else []),
        *([plural(section["sequences"], "sequence")] if section["sequences"] > 1 else []),
        plural(len(section["head_numbers"]), "head"),
        f"{section['queries']:,} x {section['keys']:,}",
        "cross attention" if section["cross"] else "self attention",
        "sees everything" if section["mask"] == "everything" else f"mask {section['mask']}",
        decimal(section["bytes"]),
        *([UNCHECKED[section["check"]]] if section["check"] in UNCHECKED else []),
    ]
    return Text.assemble((printable(section["name"]), "bold"), ("  " + printable(", ".join(facts)), "dim"))


def _profile_table(heads: list[dict[str, Any]], width: int) -> tuple[Table, list[str]]:
    """Return a table of the measures that fit the width, and the names of the others."""
    names, room = list[str](), width - 2
    for name in heads[0]:
        room -= COLUMN_WIDTHS[name] + 2
        if room >= -2:
            names.append(name)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", width=0)
    for name in names:
        table.add_column(name, justify="right", width=COLUMN_WIDTHS[name], no_wrap=True)
    for row in heads:
        table.add_row("", *(_cell(name, row[name]) for name in names))
    return table, [name for name in heads[0] if name not in names]


def _cell(name: str, value: float | None) -> Text:
    if value is None:
        return Text("–", style="dim")
    if name == "head":
        return Text(str(value), style="dim")
    if name not in SHARES:
        return Text(f"{value:.2f}" if value < 1000 else f"{value:,.0f}")
    return Text(f"{value:.3f}", style="bold red" if value >= 0.5 else "" if value >= 0.05 else "dim")
