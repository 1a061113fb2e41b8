"""Where a command writes: refused before the work if it could not be done after it."""

import os
from collections.abc import Mapping
from pathlib import Path

from regard.errors import ChoiceError


def check(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse a file that cannot be written, or that would take the place of another one that is named."""
    taken = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            raise ChoiceError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise ChoiceError(f"{name} {path}: is a folder; name a file in it")
        for other, there in taken.items():
            if _is_same(path, there):
                raise ChoiceError(f"{name} {path}: is also {other}, and would take its place; choose another name")
        taken[name] = path


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
