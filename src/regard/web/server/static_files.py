"""Where the built page is."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
