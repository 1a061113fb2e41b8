"""What every test stands on: threads, seeds, hypothesis profiles, and checked shapes on demand."""

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

TYPECHECKED = os.environ.get("REGARD_TYPECHECK") == "1"
XDIST_WORKER = "PYTEST_XDIST_WORKER" in os.environ

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts into the background deaf to Ctrl-C, and the processes of the tests would be so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # without it scikit-learn leaves one of its checks out
if XDIST_WORKER:
    # The processes already fill the machine; set before torch is imported so that processes they start obey too.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPECHECKED:
    # Before the first import of regard: from here on every annotated shape is checked at every call.
    from jaxtyping import install_import_hook

    # torch.library reads the annotations of the functions it registers and cannot see through the checker. A name in
    # the list stands for all modules below it, so a folder is named only where no file in it registers functions.
    package = Path(__file__).parent.parent / "src" / "regard"
    registering = {path for path in package.rglob("*.py") if "torch.library" in path.read_text(encoding="utf-8")}
    files = {path for path in package.rglob("*.py") if path.name != "__init__.py"} - registering
    folders = {path.parent for path in package.rglob("*/__init__.py")}
    checked = files | {folder for folder in folders if not any(folder in path.parents for path in registering)}
    dotted = [".".join(path.relative_to(package.parent).with_suffix("").parts) for path in sorted(checked)]
    install_import_hook(dotted, "typechecker.check")

import torch  # noqa: E402  the environment above has to come first

if XDIST_WORKER:
    torch.set_num_threads(1)

SLOW_IS_FINE = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
hypothesis.settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE
)
hypothesis.settings.register_profile("quick", max_examples=20, deadline=None, suppress_health_check=SLOW_IS_FINE)
hypothesis.settings.register_profile("long", max_examples=2000, deadline=None, suppress_health_check=SLOW_IS_FINE)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items):
    if not TYPECHECKED:
        return
    skip = pytest.mark.skip(reason="meant for the functions as users get them; REGARD_TYPECHECK=1 wraps them")
    for item in items:
        if "plain" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def regard(monkeypatch, capsys):
    """The command without a new process: (exit code, what it printed, what it complained)."""
    from regard import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        code = end.value.code
        return Said(1, said.out, str(code)) if isinstance(code, str) else Said(code or 0, said.out, said.err)

    return run
