"""The import direction of the package, read from its sources: what flows where, and what is wrong with it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# From top to bottom. A file imports from its own room and from those above it, never in a circle.
ROOMS = (
    ("errors",),
    ("_operands", "_traced"),  # what the words speak about
    ("_word",),  # what the words have in common
    ("scores", "masks", "normalisers"),
    ("spec",),
    ("reducers",),
    ("_*",),  # the engine
    ("weights", "_short", "attention"),
    ("nn",),
    ("regression", "datasets", "study"),
    ("recording", "capture", "models"),
    ("analysis", "relation"),
    ("plot",),
    ("lab", "web"),
    ("cli",),
)
ADAPTERS = {"nn", "regression", "capture", "plot", "web"}
# Each optional package belongs to one part, and to the lab where lessons are drawn.
OPTIONAL = {
    "matplotlib": ("plot", "lab"),
    "typer": ("cli",),
    "rich": ("cli",),
    "sklearn": ("regression",),
    "scipy": ("regression",),
    "finufft": ("regression",),
    "dask": ("regression",),
    "pandas": ("regression", "cli"),
    "pyarrow": ("regression",),
    "safetensors": ("regression",),
    "transformers": ("models", "capture"),
    "gguf": ("models",),
    "accelerate": ("models",),
    "jieba": ("models",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "h11": ("web",),
    "anywidget": ("web",),
}
# The one-line late imports that turn a question into a picture: (file, method) -> the part that may be imported.
LATE = {("weights", "plot"): "plot", ("weights", "view"): "web", ("recording._recording", "view"): "web"}


@dataclass(frozen=True)
class Import:
    file: str  # dotted, below the package: "plot._figure"
    target: str  # the same for what is imported, or the name of another package with a leading "@"
    line: int
    function: str | None
    for_types: bool = False  # under `if TYPE_CHECKING`: never runs

    @property
    def part(self) -> str:
        return self.file.split(".", 1)[0]

    @property
    def target_part(self) -> str:
        return self.target.split(".", 1)[0]

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"


def complaints(package: Path) -> list[str]:
    """Everything in `package` that goes against the layout; an empty list is a clean house."""
    found = list(imports(package))
    inside = [i for i in found if not i.target.startswith("@") and not _is_late_exception(i)]
    return [
        *_homeless(package),
        *(f"{i.place}: imports {i.target}, which stands below it" for i in inside if _is_upward(i)),
        *(f"{i.place}: one adapter imports another, {i.target_part}" for i in inside if _is_between_adapters(i)),
        *(f"{i.place}: {i.target[1:]} belongs to {OPTIONAL[i.target[1:]][0]}" for i in found if _is_stray_optional(i)),
        *_circles(inside),
    ]


def imports(package: Path) -> Iterator[Import]:
    for path in sorted(package.rglob("*.py")):
        file = _dotted(path, package)
        if file:  # the package's own __init__ only names things, lazily
            yield from _imports_of_file(path, package, file)


def _imports_of_file(path: Path, package: Path, file: str) -> Iterator[Import]:
    home = [package.name, *path.relative_to(package).parent.parts]

    def visit(node: ast.AST, function: str | None, for_types: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in _targets(child, home, package):
                    yield Import(file, target, child.lineno, function, for_types)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            is_guard = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            yield from visit(child, child.name if is_function else function, for_types or is_guard)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), None, False)


def _targets(node: ast.Import | ast.ImportFrom, home: list[str], package: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        above = ".".join(home[: len(home) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (above, node.module) if part)
        names = [f"{module}.{alias.name}" for alias in node.names]
    for name in names:
        root, *rest = name.split(".")
        yield _module(rest, package) if root == package.name else f"@{root}"


def _module(parts: list[str], package: Path) -> str:
    """The module that `parts` points into: what follows it is a name inside the module."""
    for length in range(len(parts), 0, -1):
        path = package.joinpath(*parts[:length])
        if path.with_suffix(".py").exists() or path.is_dir():
            return ".".join(parts[:length])
    return "attention"  # a public name taken from the package itself, which is at most as deep as attend


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(part: str) -> int:
    named = [number for number, room in enumerate(ROOMS) if part in room]
    engine = [number for number, room in enumerate(ROOMS) if "_*" in room and part.startswith("_")]
    return next(iter(named + engine), len(ROOMS))


def _is_upward(found: Import) -> bool:
    return _room(found.part) < _room(found.target_part)


def _homeless(package: Path) -> Iterator[str]:
    for path in sorted(package.rglob("*.py")):
        part = _dotted(path, package).split(".", 1)[0]
        if part and _room(part) == len(ROOMS):
            yield f"{part}: has no room in the layout"


def _is_late_exception(found: Import) -> bool:
    return LATE.get((found.file, found.function or "")) == found.target_part


def _is_between_adapters(found: Import) -> bool:
    return found.part != found.target_part and {found.part, found.target_part} <= ADAPTERS


def _is_stray_optional(found: Import) -> bool:
    name = found.target[1:]
    runs = found.target.startswith("@") and not found.for_types
    return runs and name in OPTIONAL and found.part not in OPTIONAL[name]


def _circles(inside: list[Import]) -> Iterator[str]:
    graph: dict[str, set[str]] = {}
    for found in inside:
        if not found.file.startswith(f"{found.target}."):  # a file inside a package may look at its __init__
            graph.setdefault(found.file, set()).add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"a circle: {' -> '.join(error.args[1])}"
