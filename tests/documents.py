"""Parser for Markdown pages: headings, links, code blocks, and the results that code blocks promise."""

import ast
import contextlib
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import TypeCheckError

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s*->\s*(.+)")


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    return [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def heading_levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def images(text: str) -> list[str]:
    """Pictures; one with Chinese words, named -zh, counts as its English twin."""
    return [name.replace("-zh.", ".") for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose(text))]


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(text))


def meaning(block: Block) -> str:
    """Return the code of a block without its comments, which are translated."""
    if block.language == "python":
        return ast.dump(ast.parse(block.code))
    return re.sub(r"[ ]+# .*", "", block.code)


def promises(code: str) -> dict[int, str]:
    """Line number -> the result that a comment `# -> ...` on that line promises, also behind another comment."""
    comments = (t for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.COMMENT)
    return {t.start[0]: match[1] for t in comments if (match := PROMISE.search(t.string))}


def run(block: Block, namespace: dict[str, object], path: Path) -> list[str]:
    """Run a block statement by statement; return the promises that were not kept."""
    promised = promises(block.code)
    broken = []
    for statement in ast.parse(block.code).body:
        said = _shown(statement, namespace, f"{path.name}, block at line {block.line}")
        wanted = promised.pop(statement.end_lineno or 0, None)
        if wanted is not None and not _fits(said, wanted):
            broken.append(f"{path.name}:{block.line + statement.lineno - 1}: promised {wanted}, came {said}")
    broken += [
        f"{path.name}:{block.line}: nothing to compare with the promise {wanted}" for wanted in promised.values()
    ]
    return broken


def _shown(statement: ast.stmt, namespace: dict[str, object], name: str) -> str:
    """Run a statement and return its printed text, or else the repr of its value, as a notebook would show it."""
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), name, "eval"), namespace)  # noqa: S307  our own pages
        else:
            with _refusals(statement):
                exec(compile(ast.Module([statement], []), name, "exec"), namespace)  # noqa: S102  our own pages
    return printed.getvalue() or repr(value)


def _refusals(statement: ast.stmt) -> contextlib.AbstractContextManager[None]:
    """Allow a type error in a `try` statement: with REGARD_TYPECHECK=1 it comes before our own error."""
    return contextlib.suppress(TypeCheckError) if isinstance(statement, ast.Try) else contextlib.nullcontext()


def _fits(said: str, wanted: str) -> bool:
    """Equal but for white space; `...` stands for anything."""
    parts = [re.escape("".join(part.split())) for part in wanted.split("...")]
    return re.fullmatch(".*".join(parts), "".join(said.split()), re.DOTALL) is not None
