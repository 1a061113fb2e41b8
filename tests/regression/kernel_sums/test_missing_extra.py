"""Kernel regression without one of the packages it stands on."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["sklearn", "finufft"])
def test_the_error_names_the_extra(package):
    code = (
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {package!r} else find(name, *rest)\n"
        "from regard.errors import MissingExtraError\n"
        "try: import regard.regression\n"
        "except MissingExtraError as error: assert \"pip install 'regard[regression]'\" in str(error)\n"
        "else: raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
