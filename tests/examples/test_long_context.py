"""The example finds its needle at a small size, and says how much memory each process took."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.plain
def test_the_needle_is_found():
    said = subprocess.run(
        [sys.executable, ROOT / "examples" / "long_context.py", "4096", "2"],
        capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ).stdout  # fmt: skip
    assert "planted: token 2,560 asks, token 2,048 answers" in said
    assert "found:   token 2,560 asks, token 2,048 answers" in said
    assert len(re.findall(r"\d+ MB", said)) == 2
