"""House rules: who imports whom, what is exported and typed, what an import costs, what must not be written down."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from layout import complaints, drawn, imports, longest_chain, shown, stale

import regard
from regard import engine
from regard.errors import MissingExtraError

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "regard"


def test_imports_flow_one_way():
    assert complaints(PACKAGE) == []
    assert stale(PACKAGE) == []


def test_the_map_for_contributors_is_the_layout():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert shown(page) == drawn(), "run: python tests/layout.py --write"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"scores": "from regard import weights"}, "imports weights, which stands below it"),
        ({"scores": "def f():\n    from regard.weights import Weights"}, "imports weights, which stands below it"),
        ({"scores": "from .weights import Weights"}, "imports weights, which stands below it"),
        ({"scores": "from regard import attend"}, "imports attention, which stands below it"),
        ({"weights": "import regard.plot"}, "imports plot, which stands below it"),
        ({"weights": "def draw():\n    from regard import plot"}, "imports plot, which stands below it"),
        ({"plot": "from regard.nn import Attention"}, "one adapter imports another, nn"),
        ({"weights": "import matplotlib.pyplot as plt"}, "matplotlib belongs to plot"),
        ({"scores": "import regard.masks", "masks": "import regard.scores"}, "a circle"),
        ({"cupboard": ""}, "cupboard: has no room in the layout"),
        ({"engine/cupboard": ""}, "engine/cupboard: has no room in the layout"),
        ({"nn/rooms/x": ""}, "nn: has folders, and the layout does not order them"),
        ({"engine/plan": "import regard.engine.fused.kernel"}, "imports engine.fused.kernel, which stands below it"),
        ({"regression/local/x": "from regard.regression import estimator"}, "estimator, which stands below it"),
        (
            {
                "regression/kernel_sums/x": "from regard.regression.bandwidth import search",
                "regression/bandwidth/search": "from regard.regression.kernel_sums import engine",
            },
            "a circle in regard/regression: ",
        ),
        (
            {"nn/a": "from regard.nn import b", "nn/b": "def f():\n    from regard.nn.a import x"},
            "a circle in regard/nn: ",
        ),
    ],
)
def test_the_test_of_imports_can_fail(tmp_path, files, complaint):
    package = tmp_path / "regard"
    modules = ("scores", "masks", "weights", "attention", "plot", "nn/a", "nn/b", "engine/plan", "engine/fused/kernel")
    rooms = ("regression/estimator", "regression/kernel_sums/engine", "regression/bandwidth/search")
    for name in ("__init__", *modules, *rooms):
        _write(package / f"{name}.py", "")
    assert complaints(package) == []
    for name, source in files.items():
        _write(package / f"{name}.py", source)
    assert any(complaint in line for line in complaints(package))


def _private_imports(package):
    """Imports of an underscore module from outside the part of the package that it belongs to."""
    return [
        f"{one.place}: imports {one.target}"
        for one in imports(package)
        if one.part != one.target_part and any(name.startswith("_") for name in one.target.split("."))
    ]


def test_no_part_imports_a_private_module_of_another():
    assert _private_imports(PACKAGE) == [], "take the name from the package itself, whose __init__ imports it"


@pytest.mark.parametrize(
    "source",
    [
        "from regard.masks._rules import Allow",
        "from regard.masks import _rules",
        "import regard.masks._rules",
        "def f():\n    from regard.masks._rules import Allow",
        "from ..masks._rules import Allow",
    ],
)
def test_an_import_of_a_private_module_is_noticed(tmp_path, source):
    package = tmp_path / "regard"
    for name in ("masks/__init__", "masks/_rules", "nn/__init__"):
        _write(package / f"{name}.py", "")
    _write(package / "masks" / "_base.py", "from regard.masks._rules import Allow")  # its own package may
    _write(package / "nn" / "layer.py", "from regard.masks import Allow")
    assert _private_imports(package) == []
    _write(package / "nn" / "layer.py", source)
    (complaint,) = _private_imports(package)
    assert complaint.endswith("imports masks._rules")


def test_rooms_that_are_gone_are_noticed(tmp_path):
    _write(tmp_path / "regard" / "errors.py", "")
    assert "regard/weights: is in the layout, and nowhere else" in stale(tmp_path / "regard")
    assert not any("errors" in line for line in stale(tmp_path / "regard"))


def test_kernel_regression_is_not_a_maze():
    chain = longest_chain(PACKAGE, "regression")
    assert 1 < len(chain) <= 10, " imports ".join(chain)
    assert sum(path.name != "__init__.py" for path in (PACKAGE / "regression").rglob("*.py")) <= 45


def test_the_longest_chain_of_imports_is_found(tmp_path):
    for name, source in {"a": "from regard.nn import b", "b": "import regard.nn.c", "c": "", "d": ""}.items():
        _write(tmp_path / "regard" / "nn" / f"{name}.py", source)
    assert longest_chain(tmp_path / "regard", "nn") == ["nn.a", "nn.b", "nn.c"]


def _write(path, source):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


def test_a_picture_of_weights_is_the_one_late_import(tmp_path):
    package = tmp_path / "regard"
    _write(package / "plot.py", "")
    _write(package / "weights" / "_weights.py", "class Weights:\n    def plot(self):\n        from regard import plot")
    assert complaints(package) == []


def test_exported_names():
    assert regard.__all__ == [
        "attend",
        "Attention",
        "Weights",
        "record",
        "Recording",
        "open",
        "NadarayaWatson",
        "relate",
        "Relation",
        "scores",
        "masks",
        "normalisers",
        "kernels",
        "nn",
        "plot",
        "regression",
        "analysis",
        "datasets",
        "models",
        "seq2seq",
        "distributed",
        "errors",
        "__version__",
    ]
    assert dir(regard) == sorted(regard.__all__)


@pytest.mark.parametrize("name", regard.__all__)
def test_an_exported_name_is_there(name):
    assert getattr(regard, name) is not None


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(AttributeError, match="no attribute 'attent'; it offers attend"):
        regard.attent  # noqa: B018  the access is the test


HEAVY = "{'torch', 'numpy', 'matplotlib', 'jaxtyping'} & set(sys.modules)"


@pytest.mark.parametrize(
    "code",
    [
        "import regard",
        "import regard; dir(regard); regard.errors; regard.__version__",
        "import regard.recording; dir(regard.recording)",
        "import regard.cli; sys.argv = ['regard', '--help']\ntry: regard.cli.main()\nexcept SystemExit: pass",
    ],
)
def test_what_does_not_need_torch_does_not_import_it(code):
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}\nheavy = {HEAVY}\nassert not heavy, heavy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


FIRST_CALLS = {
    "attend": "w = regard.attend(q, q[:, :1], q[:, :1]).weights; w.entropy(); w[0, torch.tensor([1, 2])]",
    "bias": "regard.attend(q, q, q, score=dot() + bias(torch.randn(5, 5)))",
    "additive": "regard.attend(q, q, q, score=additive(w, w, w[:, 0]))",
    "fit and predict": "NadarayaWatson().fit(x, (x + noise)[:, 0]).predict(x[:7])",
}


NOT_NEEDED = "{'sympy', 'torch.fx.experimental.symbolic_shapes', 'torch._dynamo', 'sklearn.metrics'}"


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_a_first_call_imports_nothing_that_it_does_not_need(call):
    """Symbolic algebra, torch's compiler and metrics each take longer to import than such a call takes."""
    code = (
        "import sys, numpy, torch, sklearn\n"
        "before = set(sys.modules)\n"
        "import regard\n"
        "from regard.regression import NadarayaWatson\n"
        "from regard.scores import additive, bias, dot\n"
        "q, w = torch.randn(2, 3, 5, 7), torch.randn(2, 7)\n"
        "x, noise = numpy.random.default_rng(0).normal(size=(2, 1500, 1))\n"
        f"{FIRST_CALLS[call]}\n"
        f"late = {NOT_NEEDED} & (set(sys.modules) - before)\n"
        "assert not late, late"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_command_without_its_extra_names_it(monkeypatch):
    from regard import cli

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[cli\]'"):
        cli.build()
    with pytest.raises(SystemExit, match=r"regard: .* needs typer"):
        cli.main()


def test_ci_runs_what_the_readme_says():
    assert "\nmake test\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


FORBIDDEN = re.compile(
    r"(?<![\w.\-])/(?:home|root|opt|work|Users)/\w"  # the disk of one machine
    r"|pypi\.org|pythonhosted\.org|download\.pytorch\.org|registry\.npmjs"  # packages come from where users say
    r"|--(?:extra-)?index-url|--find-links"
)


def _written_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607  git is where git is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def made(target: str, environment: Path) -> str:
    """What `make` would do for a target, as it says itself; nothing is run."""
    options = ["--dry-run", "--no-print-directory", f"VENV={environment}", "NODE=", f"--directory={ROOT}"]
    return subprocess.run(["make", *options, target], capture_output=True, text=True, check=True).stdout  # noqa: S607


def test_the_lab_is_set_up_without_tools_for_development(tmp_path):
    lab, test = made("lab", tmp_path / "venv"), made("test", tmp_path / "venv")
    assert ".[lab]" in lab and ".[dev]" not in lab
    assert ".[lab]" in test and ".[dev]" in test
    assert re.search(r"Setting up .* for the lab: about \d+ MB to download, [\d.]+ GB on the disk", lab)


def test_nothing_is_installed_twice(tmp_path):
    for stamp in (".lab-ready", ".ready", ".fonts", ".chromium"):  # as `make test` leaves them
        (tmp_path / stamp).touch()
        later = (ROOT / "pyproject.toml").stat().st_mtime + 1e6
        os.utime(tmp_path / stamp, (later, later))
    assert "pip" not in made("lab", tmp_path) + made("test", tmp_path)
    (tmp_path / ".ready").unlink()  # as `make lab` leaves it
    assert "pip" not in made("lab", tmp_path)
    assert made("test", tmp_path).count("pip install") == 1


def test_no_file_names_a_machine_or_a_package_host():
    found = []
    for path in _written_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in FORBIDDEN.finditer(text)]
    assert found == []


UNREADABLE_ALONE = re.compile(r"(The same\b|Of |Whether they\b|What\b|By how\b)")


def test_every_docstring_can_be_read_alone():
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    riddles = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            opening = (ast.get_docstring(node) or "") if isinstance(node, kinds) else ""
            if UNREADABLE_ALONE.match(opening):
                riddles.append(f"{path.relative_to(PACKAGE)}: {opening.splitlines()[0]}")
    assert riddles == []


def _without_docstring(named, hidden="_"):
    """Names of functions, classes, methods and properties without a docstring; an override has that of its base."""
    for name, value in named.items():
        if callable(value) and not inspect.getdoc(value):
            yield name
        for method, defined in vars(value).items() if inspect.isclass(value) else ():
            is_function = isinstance(defined, property | classmethod | staticmethod) or inspect.isfunction(defined)
            if is_function and not method.startswith(hidden) and not inspect.getdoc(getattr(value, method)):
                yield f"{name}.{method}"


def test_every_engine_function_has_a_docstring():
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(engine.__path__, "regard.engine.")]
    assert len(modules) > 15
    named = {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and name != "_"  # torch's hooks have no name
    }
    assert list(_without_docstring(named, hidden="__")) == []


def test_every_public_function_has_a_docstring():
    packages = [value for name in regard.__all__ if inspect.ismodule(value := getattr(regard, name))]
    named = {f"regard.{name}": getattr(regard, name) for name in regard.__all__}
    named |= {f"{p.__name__}.{name}": getattr(p, name) for p in packages for name in getattr(p, "__all__", ())}
    assert len(named) > 100
    assert list(_without_docstring(named)) == []


def test_every_public_symbol_has_a_type(tmp_path):
    """`basedpyright --verifytypes` on an installed copy knows all but classes whose bases have no types."""
    home = tmp_path / "installed"
    venv.create(home, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    shutil.copytree(PACKAGE, packages / "regard", ignore=shutil.ignore_patterns("__pycache__", "static"))
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    checker = Path(sys.executable).with_name("basedpyright")
    run = subprocess.run(
        [checker, "--verifytypes", "regard", "--ignoreexternal", "--outputjson"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    symbols = json.loads(run.stdout)["typeCompleteness"]["symbols"]
    assert len(symbols) > 1000
    unknown = {s["name"].rsplit(".", 1)[-1] for s in symbols if not s["isTypeKnown"]}
    # Their bases: scikit-learn's, ipywidgets' and torch's.
    assert unknown == {"NadarayaWatson", "Viewer", "view", "view_weights", "LayoutShard"}
