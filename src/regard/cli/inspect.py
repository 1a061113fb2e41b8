"""`regard inspect`: what is in a recording, and what its heads do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.cli import _text

WIDTHS = {
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
PIPED = 120  # columns where there is no terminal to ask
SHOWN = 40  # tokens of a text

File = Annotated[Path, typer.Argument(help="A recording, such as run.regard.")]
Layer = Annotated[
    list[str] | None,
    typer.Option("--layer", help="Only these: a number, or a name with * and ?. May be given several times."),
]
Step = Annotated[int | None, typer.Option(help="Only this forward pass; all if left out.")]
Separator = Annotated[
    list[str] | None,
    typer.Option("--separator", help="A token whose share is told too, such as [SEP]. May be given several times."),
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
    from regard.cli import _choose, _facts, _progress
    from regard.recording import open as open_recording

    recording = open_recording(file)
    chosen = _choose.layers(layer or [], recording.layers)
    if not quick:
        _facts.check_separators(recording, separator or [])
    if step is not None:
        chosen = [one for one in chosen if step in one.steps]
        if not chosen:
            _choose.step(step, recording.layers[0])
    count = sum(1 if step is not None else len(one.steps) for one in chosen)
    with _progress.step("reading", total=count) as line:
        damage = recording.damage if quick else recording.verify()
        options: dict[str, Any] = {"profiles": not quick, "advance": line.advance}
        sections = list(_facts.sections(recording, chosen, step, separator, **options))
        facts = _facts.of(recording, sections, damage)
    if as_json:
        print(json.dumps(facts, ensure_ascii=True, indent=1))
    else:
        show(facts)
    if facts["damage"]:
        raise typer.Exit(1)


def show(facts: dict[str, Any]) -> None:
    """For people, in a terminal of any width, or piped."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width, console.soft_wrap = PIPED, True  # what reads a line wants all of it
    console.print(_overview(facts))
    left: set[str] = set()
    for section in facts["layers"]:
        console.print()
        console.print(_title(section, several=len(facts["steps"]) > 1))
        if section["damage"]:
            console.print(Text(f"  {_text.visible(section['damage'])}", style="red"))
        elif section["heads"]:
            table, hidden = _profile(section["heads"], console.width)
            console.print(table)
            left.update(hidden)
    if left:
        console.print(Text(f"\nno room for {', '.join(sorted(left))}: widen the terminal, or take --json", style="dim"))
    for words in facts["damage"]:
        console.print(Text(f"\ndamaged: {_text.visible(words)}", style="bold red"))


def _overview(facts: dict[str, Any]) -> Text:
    from regard.cli import _facts

    about = facts["about"]
    source = f", from {about['from']}" if "from" in about else ""
    state = "" if facts["closed"] else ", not closed: it is being written, or its writer was killed"
    steps = _text.count(len(facts["steps"]), "step")
    several = len(facts["tokens"]) > 1
    lines = [
        ("file", f"{facts['file']}, {_facts.size(facts['bytes'])}{state}"),
        ("model", f"{about.get('model', 'not told')}{source}"),
        *(("tokens", _tokens(given, several=several)) for given in facts["tokens"]),
        ("layers", f"{facts['layers_in_file']}, {_text.count(facts['heads_in_file'], 'head')}, in {steps}"),
        ("kept", f"{_facts.size(facts['tensor_bytes'])} of queries, keys and masks"),
    ]
    text = Text()
    for name, value in lines:
        text.append(f"{name:<8}", style="dim").append(_text.visible(value) + "\n")
    text.rstrip()
    return text


def _tokens(given: dict[str, Any], *, several: bool) -> str:
    rows = given["texts"]
    many = f"{given['sequences']} x " if given["sequences"] > 1 else ""
    words = "" if not rows else ": " + " ".join(text.strip() or "·" for text in rows[0][:SHOWN])
    more = " …" if rows and len(rows[0]) > SHOWN else ""
    where = f" ({given['name']}, step {given['step']})" if several else ""
    return f"{many}{given['length']:,}{where}{words}{more}"


def _title(section: dict[str, Any], *, several: bool) -> Text:
    from regard.cli import _facts

    facts = [
        *([f"step {section['step']}"] if several else []),
        *([_text.count(section["sequences"], "sequence")] if section["sequences"] > 1 else []),
        _text.count(len(section["head_numbers"]), "head"),
        f"{section['queries']:,} x {section['keys']:,}",
        "cross attention" if section["cross"] else "self attention",
        "sees everything" if section["mask"] == "everything" else f"mask {section['mask']}",
        _facts.size(section["bytes"]),
    ]
    return Text.assemble((_text.visible(section["name"]), "bold"), ("  " + _text.visible(", ".join(facts)), "dim"))


def _profile(heads: list[dict[str, Any]], width: int) -> tuple[Table, list[str]]:
    """As many measures as there is room for, and those that are left out."""
    names, room = list[str](), width - 2
    for name in heads[0]:
        room -= WIDTHS[name] + 2
        if room >= -2:
            names.append(name)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", width=0)
    for name in names:
        table.add_column(name, justify="right", width=WIDTHS[name], no_wrap=True)
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
