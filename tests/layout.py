"""The architecture of the package: its rooms in order, who may import whom, and what goes against it.

Every folder is checked at every depth. Where `ROOMS` orders what is in a folder, a file imports only from its own room
and from rooms above it. Nowhere do the modules and folders of one folder import each other in a circle.

    python tests/layout.py             print the map of the package that CONTRIBUTING.md shows
    python tests/layout.py --write     put it there
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """Modules and folders that stand on one level."""

    names: tuple[str, ...]
    holds: str
    inside: tuple["Room", ...] = ()  # the rooms of a folder, in their own order


def room(names: str, holds: str, *inside: Room) -> Room:
    return Room(tuple(names.split()), holds, inside)


# From top to bottom. A file imports from its own room and from those above it, never in a circle.
ROOMS = (
    room("errors", "the exception tree"),
    room("display", "how results show themselves: labels, HTML, progress, advice for tensors' methods"),
    room("tracing operands", "torch's modes around a call; tensors along queries, keys or both"),
    room("term", "what a score, a mask and a normaliser have in common"),
    room("kernels", "smoothing kernels, one record each: log K, derivative, reach, constants"),
    room("scores masks normalisers", "the terms: pointwise, stateless, ignorant of tiles"),
    room("spec", "score, mask and normaliser, frozen together"),
    room(
        "engine",
        "how a spec over queries, keys and values becomes numbers",
        room("costs versions mask_cache", "the cost model; tensor versions; what was computed from masks, remembered"),
        room("threads files", "worker threads, atomic files"),
        room("array_file", "files of named arrays with a checksum over every byte"),
        room("inputs plan tile_cuts tiles reducers", "checked inputs; the plan; cuts and tiles; mergeable states"),
        room("fold tile_batches index", "the loop over tiles; blocks by index"),
        room("questions", "questions about the weights, each in one pass over the tiles"),
        room("fused", "torch's fused kernels"),
        room("additive", "additive attention of a decoder's steps: score, softmax and pooling in one"),
        room("pooling plan_cache", "output by plan; checked and planned calls, remembered"),
        room("decode", "few queries on many keys: cut to what is seen, half precision in chunks"),
        room("grouped_query", "heads that share their keys are rows of one head"),
        room("compiled_causal", "causal attention as an operator, for torch.compile"),
        room("lazy_matrix", "inputs, formula and plan, from which any part of the weights is computed"),
        room("fast_path", "one kernel call and hardly a step around it"),
        room("distributed", "attention over sequences that are divided between processes"),
    ),
    room("weights attention", "the two nouns that users meet"),
    room("torch_compat", "torch's conventions: its masks, multi-head projections, sdpa arguments"),
    room("nn", "layers"),
    room(
        "regression",
        "NadarayaWatson: kernel regression",
        room("kernel_sums", "kernel-weighted averages: pairwise, pruned, Fourier, radius search; the cost model"),
        room("local", "local constant and local linear fits; weighted least squares; queries out of reach"),
        room(
            "bandwidth",
            "the bandwidth by a rule, or by leave-one-out",
            room("leave_one_out", "each row predicted from the others"),
            room("rules starts optimise objective", "where a search starts and how it descends"),
            room("search", "the search"),
        ),
        room("validation encoding pandas_output", "input checks; categories; data frames"),
        room("out_of_core", "data larger than memory: Parquet, Dask, memory maps"),
        room("cross_validation intervals", "leave-one-out of a fit: standard errors, prediction intervals"),
        room("persistence summary", "model files; the numbers of a fit as a table"),
        room("estimator", "the scikit-learn estimator"),
    ),
    room("datasets", "data that is generated; pairs of texts, and the tokeniser for them"),
    room("models", "pretrained models that come as packages"),
    room("recording", "the file of a recording, and what it answers"),
    room("capture", "observing a model: one file for each way it can call attention"),
    room("context_parallel", "models whose sequence is divided between processes"),
    room("distributed", "the door: shard and gather, context_parallel and shard_batch, estimate"),
    room("analysis relation", "questions over a recording or a model; segments of a text against questions"),
    room(
        "seq2seq",
        "translation: encoder-decoders on our layers",
        room(
            "vocabulary batches loss dropout",
            "texts as numbers; sentences of similar length; the training loss; dropout",
        ),
        room("recurrent", "the bidirectional encoder; decoders with Bahdanau's, Luong's and no attention"),
        room("transformer", "a small Transformer"),
        room("network", "encoder, decoder and embeddings together: encode, step, weights"),
        room("decoding checkpoint", "beam search; files of models and runs"),
        room("model pretrained", "the models that users make, and those that come with regard"),
        room("evaluation", "BLEU, chrF, alignment error rate, by length"),
        room("run", "the state of a training run and its folder"),
        room("training", "the loop: budget, validation, checkpoints"),
        room("length_table", "quality by length, with and without attention: the stored table, and how it is made"),
    ),
    room("plot", "matplotlib"),
    room(
        "lab",
        "lessons: what each computes and shows",
        room("strict_json", "JSON that is read strictly and written without NaN"),
        room("examples", "worked examples and their pictures"),
        room("recall", "two small GRUs that recall the words of a sentence, with attention and without"),
        room("pages", "the lessons of the browser: State, show, code"),
    ),
    room(
        "web",
        "the lab and the viewer in the browser",
        room("server", "HTTP: access guard, workers, events, the built page"),
        room("maps", "one head as a pyramid of tiles"),
        room("api", "handlers behind the routes"),
        room("notebook", "the viewer inside a notebook"),
        room("app", "the route table"),
        room("browser", "a redirect file, so that no command line shows the token"),
        room("serve", "start and stop"),
    ),
    room(
        "cli",
        "the command `regard`",
        room("console", "progress, names and paths on the terminal"),
        room(
            "tables",
            "tables from files",
            room("text_encoding number_notation", "encodings of text files; 1,234.5 and 1.234,5"),
            room("files", "CSV, TSV and Parquet, read and written"),
            room("dates columns", "dates; columns as features, and what is missing in them"),
        ),
        room("selectors", "the layers and heads that a user names"),
        room("exporters fit_report", "a head as picture, arrays or page; the result of a fit"),
        room(
            "demo export fit inspect lab lengths record relate saturation train translate",
            "one file for each subcommand",
        ),
    ),
)
ADAPTERS = {"nn", "regression", "capture", "plot", "web"}
# Each optional package belongs to one part, and to the lab where lessons are drawn.
OPTIONAL = {
    "matplotlib": ("plot", "lab"),
    "typer": ("cli",),
    "rich": ("cli",),
    "sklearn": ("regression", "plot"),
    "scipy": ("regression",),
    "finufft": ("regression",),
    "dask": ("regression",),
    "pandas": ("regression", "analysis", "cli"),
    "pyarrow": ("regression",),
    "safetensors": ("regression", "seq2seq"),
    "sacrebleu": ("seq2seq",),
    "tokenizers": ("seq2seq",),
    "transformers": ("models", "capture", "context_parallel"),
    "gguf": ("models",),
    "accelerate": ("models",),
    "jieba": ("models",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "h11": ("web",),
    "anywidget": ("web",),
}
# The one-line late imports that turn a question into a picture: (file, method) -> the part that may be imported.
LATE = {
    ("weights._weights", "plot"): "plot",
    ("weights._weights", "view"): "web",
    ("recording._recording", "view"): "web",
}


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
    every = list(imports(package))
    inside = [i for i in every if not i.target.startswith("@") and not _is_late_exception(i)]
    edges = [(i, *fork) for i in inside if (fork := _fork(i)) is not None]
    return [
        *_homeless(package),
        *(f"{i.place}: imports {i.target}, which stands below it" for i, *fork in edges if _is_upward(*fork)),
        *(f"{i.place}: one adapter imports another, {i.target_part}" for i in inside if _is_between_adapters(i)),
        *(f"{i.place}: {i.target[1:]} belongs to {OPTIONAL[i.target[1:]][0]}" for i in every if _is_stray_optional(i)),
        *_circles([tuple(fork) for _, *fork in edges]),
    ]


def longest_chain(package: Path, folder: str) -> list[str]:
    """The longest chain of imports between modules of a folder, packages' own `__init__` left out."""
    graph: dict[str, set[str]] = {}
    for one in imports(package):
        ends = (one.file, one.target)
        if all(end.startswith(f"{folder}.") and not _is_package(package.joinpath(*end.split("."))) for end in ends):
            graph.setdefault(one.file, set()).add(one.target)
    chains: dict[str, list[str]] = {}
    for module in TopologicalSorter(graph).static_order():  # what is imported comes first
        below = max((chains[target] for target in graph.get(module, ())), key=len, default=[])
        chains[module] = [module, *below]
    return max(chains.values(), key=len, default=[])


def stale(package: Path) -> list[str]:
    """Names in `ROOMS` that stand for nothing in `package`."""

    def visit(rooms: tuple[Room, ...], folder: Path) -> Iterator[str]:
        for one in rooms:
            for name in one.names:
                if not (folder / name).is_dir() and not (folder / f"{name}.py").exists():
                    yield f"{folder.relative_to(package.parent)}/{name}: is in the layout, and nowhere else"
            yield from visit(one.inside, folder / one.names[0])

    return list(visit(ROOMS, package))


def drawn(rooms: tuple[Room, ...] = ROOMS, indent: str = "  ") -> str:
    """The map that CONTRIBUTING.md shows, a line for each room."""
    lines = ["src/regard/"] if rooms is ROOMS else []
    for one in rooms:
        lines.append(f"{indent + ' '.join(one.names):<56} {one.holds}")
        if one.inside:
            lines.append(drawn(one.inside, indent + "    "))
    return "\n".join(lines)


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


Folder = tuple[str, ...]


def _fork(one: Import) -> tuple[Folder, str, str] | None:
    """The last folder that two modules share, and the child of it that each is in; None for a package and its file."""
    file, target = one.file.split("."), one.target.split(".")
    depth = next((d for d, (a, b) in enumerate(zip(file, target, strict=False)) if a != b), None)
    return None if depth is None else (tuple(file[:depth]), file[depth], target[depth])


def _rooms_of(folder: Folder) -> tuple[Room, ...]:
    rooms = ROOMS
    for name in folder:
        rooms = next((one.inside for one in rooms if name in one.names), ())
    return rooms


def _level(folder: Folder, name: str) -> int:
    rooms = _rooms_of(folder)
    return next((level for level, one in enumerate(rooms) if name in one.names), len(rooms))


def _is_upward(folder: Folder, name: str, target: str) -> bool:
    return _level(folder, name) < _level(folder, target)


def _homeless(package: Path) -> Iterator[str]:
    for folder in (package, *sorted(path for path in package.rglob("*") if _is_package(path))):
        where = folder.relative_to(package).parts
        children = sorted({p.stem for p in folder.glob("*.py")} | {p.name for p in folder.iterdir() if _is_package(p)})
        if _rooms_of(where):
            level = len(_rooms_of(where))
            homeless = [name for name in children if name != "__init__" and _level(where, name) == level]
            yield from (f"{'/'.join((*where, name))}: has no room in the layout" for name in homeless)
        elif any(_is_package(path) for path in folder.iterdir()):
            yield f"{'/'.join(where)}: has folders, and the layout does not order them"


def _is_package(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*.py"))


def _is_late_exception(found: Import) -> bool:
    return LATE.get((found.file, found.function or "")) == found.target_part


def _is_between_adapters(found: Import) -> bool:
    return found.part != found.target_part and {found.part, found.target_part} <= ADAPTERS


def _is_stray_optional(found: Import) -> bool:
    name = found.target[1:]
    runs = found.target.startswith("@") and not found.for_types
    return runs and name in OPTIONAL and found.part not in OPTIONAL[name]


def _circles(edges: list[tuple[Folder, str, str]]) -> Iterator[str]:
    """In every folder: its modules and folders, each folder taken as one, may not import each other in a circle."""
    for folder in sorted({folder for folder, *_ in edges}):
        graph: dict[str, set[str]] = {}
        for where, name, target in edges:
            if where == folder:
                graph.setdefault(name, set()).add(target)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield f"a circle in {'/'.join(('regard', *folder))}: {' -> '.join(error.args[1])}"


START, END = "```text\nsrc/regard/\n", "\n```"


def shown(page: str) -> str:
    """The map as a page shows it."""
    start = page.index(START) + len("```text\n")
    return page[start : page.index(END, start)]


if __name__ == "__main__":
    if "--write" in sys.argv:
        contributing = Path(__file__).parents[1] / "CONTRIBUTING.md"
        text = contributing.read_text(encoding="utf-8")
        contributing.write_text(text.replace(shown(text), drawn()), encoding="utf-8")
    else:
        sys.stdout.write(drawn() + "\n")
