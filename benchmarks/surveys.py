"""Surveys: measurements with tables of their own, run by name alone, and their sections in docs/*/benchmarks.md."""

from __future__ import annotations

from pathlib import Path

from benchmarks import growth, sweep, sweep_report
from benchmarks.records import read_all
from benchmarks.report import fill

RUN = {"sweep": sweep.run, "growth": growth.run}
SECTIONS = {"sweep": sweep_report.section, "growth": growth.section}


def fill_sections(root: Path, folder: Path) -> list[Path]:
    """Renew the sections of both pages docs/*/benchmarks.md for which whole results are stored in a folder."""
    pages = {language: root / "docs" / language / "benchmarks.md" for language in ("en", "zh")}
    for stored in read_all(folder, SECTIONS):
        if stored["quick"]:
            raise ValueError(
                f"the pages take results of a full run; run `python -m benchmarks {stored['group']}` first"
            )
        for language, path in pages.items():
            text = SECTIONS[stored["group"]](stored, language)
            path.write_text(fill(path.read_text(encoding="utf-8"), text, stored["group"]), encoding="utf-8")
    return list(pages.values())
