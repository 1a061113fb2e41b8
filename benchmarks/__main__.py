"""python -m benchmarks [names...] [--quick] [--out benchmarks/results]"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from benchmarks import machine, report, surveys
from benchmarks.harness import Line
from benchmarks.machine import Limits
from benchmarks.memory import ROOT
from benchmarks.records import ERROR, Record, Settings, document, measure, read_all, write
from benchmarks.suite import GROUPS, all_lines, select

RESULTS = ROOT / "benchmarks" / "results"
WIDTH = 220


def parse() -> Namespace:
    parser = ArgumentParser(
        prog="python -m benchmarks", description="Speed and memory against peers, in one run, on a quiet machine."
    )
    parser.add_argument(
        "names",
        nargs="*",
        help=f"groups ({', '.join(GROUPS)}), the beginning of a line's name, such as attend/n1024, "
        f"or one of {', '.join(surveys.RUN)} alone",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, few rounds: shows that everything runs; writes nothing without --out",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for <group>.json and README.md (default: benchmarks/results for whole groups of a full run)",
    )
    parser.add_argument("--rounds", type=int, help="rounds for every line, instead of each line's own number")
    parser.add_argument("--no-memory", action="store_true", help="skip the memory measurements")
    parser.add_argument("--list", action="store_true", help="name the lines and their goals, run nothing")
    parser.add_argument(
        "--readme",
        action="store_true",
        help="fill the tables of the READMEs and of docs/*/benchmarks.md from the stored results, run nothing",
    )
    return parser.parse_args()


def run_group(console: Console, lines: list[Line], limits: dict[int, Limits], settings: Settings) -> list[Record]:
    records = []
    for line in lines:
        start = time.perf_counter()
        records.append(record := measure(line, limits, settings))
        console.print(f"{report.one_line(record)} ({time.perf_counter() - start:.0f} s)", highlight=False)
    return records


def run(options: Namespace, console: Console) -> int:
    settings = Settings(options.quick, options.rounds or (3 if options.quick else None), not options.no_memory)
    chosen = select(options.names, quick=options.quick)
    whole = all_lines(quick=options.quick)
    start = time.perf_counter()
    warn_if_busy(console)
    limits = machine.limits()
    console.print(report.show_limits(limits))
    everything: list[Record] = []
    for group, lines in chosen.items():
        records = run_group(console, lines, limits, settings)
        everything += records
        if folder := folder_for(options, complete=len(lines) == len(whole[group]), settings=settings):
            write(document(group, records, limits, settings), folder)
            (folder / "README.md").write_text(report.results_page(read_all(folder, GROUPS)), encoding="utf-8")
    console.print(report.rich_table(everything, f"regard against its peers ({time.perf_counter() - start:.0f} s)"))
    return int(any(record["verdict"] == ERROR for record in everything))


def list_lines(console: Console, groups: dict[str, list[Line]]) -> None:
    for line in (line for lines in groups.values() for line in lines):
        goals = "; ".join(goal.show() for goal in line.parsed_goals())
        console.print(f"{line.name}: {goals or 'reported'}", highlight=False)


def folder_for(options: Namespace, *, complete: bool, settings: Settings) -> Path | None:
    """Where results go: the checked-in folder takes only whole groups at full size, their own rounds and memory."""
    if options.out:
        return options.out
    full = complete and not settings.quick and settings.rounds is None and settings.memory
    return RESULTS if full else None


def warn_if_busy(console: Console) -> None:
    load = os.getloadavg()[0]
    if load > 0.5:
        console.print(f"[yellow]the load of this machine is {load:.1f}: ratios will be noisy[/yellow]")


def main() -> int:
    options, console = parse(), Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    if options.list:
        list_lines(console, select(options.names, quick=options.quick))
        return 0
    if options.readme:
        report.fill_pages(ROOT, read_all(options.out or RESULTS, GROUPS))
        surveys.fill_sections(ROOT, options.out or RESULTS)
        return 0
    if len(options.names) == 1 and options.names[0] in surveys.RUN:
        warn_if_busy(console)
        return surveys.RUN[options.names[0]](options, console)
    return run(options, console)


if __name__ == "__main__":
    raise SystemExit(main())
