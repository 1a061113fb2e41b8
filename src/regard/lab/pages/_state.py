"""A page's state, read from JSON that anybody may have written.

A State is a frozen dataclass. Each field says by `of(default, kind)` what it may be, and its default is what the page
opens with. `read` takes nothing on trust: an error names the field and says what came and what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from regard.errors import ChoiceError, DtypeError, FormatError, ShapeError
from regard.lab import strict_json

S = TypeVar("S")


@runtime_checkable
class Kind(Protocol):
    """What a field may be."""

    def read(self, value: object, name: str) -> Any:
        """The value as the state holds it; an error that says `name` otherwise."""
        ...


def of(default: Any, kind: Kind) -> Any:
    """A field of a State: what it is when nobody says, and what it may be."""
    return field(default=default, metadata={"kind": kind})


@dataclass(frozen=True)
class Real:
    """A finite number from `least` to `most`."""

    least: float
    most: float

    def read(self, value: object, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DtypeError(f"{name} must be a number from {self.least:g} to {self.most:g}, {came(value)} came")
        if not self.least <= value <= self.most:  # NaN is nowhere
            raise ChoiceError(f"{name} must be from {self.least:g} to {self.most:g}, {came(value)} came")
        return float(value)


@dataclass(frozen=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def read(self, value: object, name: str) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            raise DtypeError(f"{name} must be a whole number from {self.least} to {self.most}, {came(value)} came")
        if not self.least <= value <= self.most:  # pyright: ignore[reportOperatorIssue]
            raise ChoiceError(f"{name} must be from {self.least} to {self.most}, {came(value)} came")
        return int(value)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, value: object, name: str) -> bool:
        if not isinstance(value, bool):
            raise DtypeError(f"{name} must be true or false, {came(value)} came")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    options: Sequence[str]

    def read(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise DtypeError(f"{name} must be one of {', '.join(self.options)}, {came(value)} came")
        if value not in self.options:
            raise ChoiceError(f"{name} must be one of {', '.join(self.options)}, {came(value)} came")
        return value


@dataclass(frozen=True)
class Text:
    """A text of `least` to `most` characters that are any."""

    most: int
    least: int = 1

    def read(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise DtypeError(f"{name} must be a text, {came(value)} came")
        if not self.least <= len(value.strip()) or len(value) > self.most:
            raise ChoiceError(f"{name} must have {self.least} to {self.most} characters, {len(value)} came")
        if any("\ud800" <= letter <= "\udfff" for letter in value):  # halves of characters, which JSON lets through
            raise ChoiceError(f"{name} must be text that can be written down, but it has half a character in it")
        return value


@dataclass(frozen=True)
class Many:
    """A list of `least` to `most` things of one kind."""

    kind: Kind
    least: int
    most: int

    def read(self, value: object, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise DtypeError(f"{name} must be a list of {self.least} to {self.most}, {came(value)} came")
        if not self.least <= len(value) <= self.most:
            raise ShapeError(f"{name} must be a list of {self.least} to {self.most}, {came(value)} came")
        return tuple(self.kind.read(item, f"{name}[{place}]") for place, item in enumerate(value))


@dataclass(frozen=True)
class Pair:
    """Two things, each of its own kind."""

    first: Kind
    second: Kind

    def read(self, value: object, name: str) -> tuple[Any, Any]:
        if not isinstance(value, list | tuple):
            raise DtypeError(f"{name} must be a list of two, {came(value)} came")
        if len(value) != 2:
            raise ShapeError(f"{name} must be a list of two, {came(value)} came")
        return self.first.read(value[0], f"{name}[0]"), self.second.read(value[1], f"{name}[1]")


@dataclass(frozen=True)
class Grid:
    """Rows of numbers, all of one length."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    number: Kind

    def read(self, value: object, name: str) -> tuple[tuple[float, ...], ...]:
        found = Many(Many(self.number, *self.columns), *self.rows).read(value, name)
        for place, row in enumerate(found):
            if len(row) != len(found[0]):
                raise ShapeError(
                    f"the rows of {name} must have one length: {name}[0] has {len(found[0])} numbers, "
                    f"{name}[{place}] has {len(row)}"
                )
        return found


@dataclass(frozen=True)
class Maybe:
    """Nothing, or a value of a kind; nothing stands for what the page finds best."""

    kind: Kind

    def read(self, value: object, name: str) -> Any:
        return None if value is None else self.kind.read(value, name)


@dataclass(frozen=True)
class Part:
    """A dataclass inside a state."""

    cls: type[Any]

    def read(self, value: object, name: str) -> Any:
        return read_fields(self.cls, value, name)


def read(cls: type[S], given: str | bytes | Mapping[str, object]) -> S:
    """A State from JSON, as text or as what a parser made of it; fields that are missing are as they open."""
    if isinstance(given, str | bytes):
        try:
            given = cast("Mapping[str, object]", strict_json.loads(given))
        except ValueError as error:
            raise FormatError(f"the state must be JSON: {error}") from None
    return read_fields(cls, given, "")


def read_fields(cls: type[S], given: object, name: str) -> S:
    kinds: dict[str, Kind] = {entry.name: entry.metadata["kind"] for entry in fields(cls)}  # pyright: ignore[reportArgumentType]
    if not isinstance(given, Mapping):
        raise DtypeError(f"{name or 'the state'} must be an object with fields {', '.join(kinds)}, {came(given)} came")
    for key in given:
        if key not in kinds:
            raise ChoiceError(
                f"there is no field {came(key)}{f' in {name}' if name else ''}; there are {', '.join(kinds)}"
            )
    inside = f"{name}." if name else ""
    return cls(**{key: kinds[key].read(value, f"{inside}{key}") for key, value in given.items()})


def write(state: Any) -> Any:
    """The state as JSON holds it: `read(type(state), write(state)) == state`."""
    if is_dataclass(state):
        return {entry.name: write(getattr(state, entry.name)) for entry in fields(state)}
    return [write(item) for item in state] if isinstance(state, tuple) else state


def came(value: object) -> str:
    """What came, in a few words: it may be huge, or deeper than a repr can follow."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else "a number that is not finite"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}...")
    if isinstance(value, Mapping):
        return f"an object with {len(value)} fields"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else type(value).__name__
