"""A lesson's state, read from JSON that anybody may have written.

A State is a frozen dataclass. Each field is a `setting(default, type)`; the page opens with the defaults. `read`
validates every field: an error names the field and says what came and what would be right.
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
class FieldType(Protocol):
    """The values that a field may have."""

    def read(self, value: object, name: str) -> Any:
        """The value as the state holds it; raises an error that names the field if it is not valid."""
        ...


def setting(default: Any, type: FieldType) -> Any:  # noqa: A002
    """A field of a State: its default, and the values that it may have."""
    return field(default=default, metadata={"type": type})


@dataclass(frozen=True)
class Real:
    """A finite number from `least` to `most`."""

    least: float
    most: float

    def read(self, value: object, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DtypeError(f"{name} must be a number from {self.least:g} to {self.most:g}, {described(value)} came")
        if not self.least <= value <= self.most:  # false for NaN
            raise ChoiceError(f"{name} must be from {self.least:g} to {self.most:g}, {described(value)} came")
        return float(value)


@dataclass(frozen=True)
class Whole:
    """A whole number from `least` to `most`; a multiple of `multiple`."""

    least: int
    most: int
    multiple: int = 1

    def read(self, value: object, name: str) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            raise DtypeError(f"{name} must be a whole number from {self.least} to {self.most}, {described(value)} came")
        if not self.least <= value <= self.most:  # pyright: ignore[reportOperatorIssue]
            raise ChoiceError(f"{name} must be from {self.least} to {self.most}, {described(value)} came")
        if value % self.multiple:  # pyright: ignore[reportOperatorIssue]
            raise ChoiceError(f"{name} must be a multiple of {self.multiple}, {described(value)} came")
        return int(value)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, value: object, name: str) -> bool:
        if not isinstance(value, bool):
            raise DtypeError(f"{name} must be true or false, {described(value)} came")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    options: Sequence[str]

    def read(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise DtypeError(f"{name} must be one of {', '.join(self.options)}, {described(value)} came")
        if value not in self.options:
            raise ChoiceError(f"{name} must be one of {', '.join(self.options)}, {described(value)} came")
        return value


@dataclass(frozen=True)
class Text:
    """A text of `least` to `most` characters."""

    most: int
    least: int = 1

    def read(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise DtypeError(f"{name} must be a text, {described(value)} came")
        if not self.least <= len(value.strip()) or len(value) > self.most:
            raise ChoiceError(f"{name} must have {self.least} to {self.most} characters, {len(value)} came")
        if any("\ud800" <= letter <= "\udfff" for letter in value):  # halves of characters, which JSON lets through
            raise ChoiceError(f"{name} must be text that can be written down, but it has half a character in it")
        return value


@dataclass(frozen=True)
class Many:
    """A list of `least` to `most` values of one type."""

    type: FieldType
    least: int
    most: int

    def read(self, value: object, name: str) -> tuple[Any, ...]:
        length = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        if not isinstance(value, list | tuple):
            raise DtypeError(f"{name} must be a list of {length}, {described(value)} came")
        if not self.least <= len(value) <= self.most:
            raise ShapeError(f"{name} must be a list of {length}, {described(value)} came")
        return tuple(self.type.read(item, f"{name}[{place}]") for place, item in enumerate(value))


@dataclass(frozen=True)
class Pair:
    """A list of two values, each of its own type."""

    first: FieldType
    second: FieldType

    def read(self, value: object, name: str) -> tuple[Any, Any]:
        if not isinstance(value, list | tuple):
            raise DtypeError(f"{name} must be a list of two, {described(value)} came")
        if len(value) != 2:
            raise ShapeError(f"{name} must be a list of two, {described(value)} came")
        return self.first.read(value[0], f"{name}[0]"), self.second.read(value[1], f"{name}[1]")


@dataclass(frozen=True)
class Grid:
    """Rows of numbers, all of one length."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    number: FieldType

    def read(self, value: object, name: str) -> tuple[tuple[float, ...], ...]:
        rows = Many(Many(self.number, *self.columns), *self.rows).read(value, name)
        for place, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise ShapeError(
                    f"the rows of {name} must have one length: {name}[0] has {len(rows[0])} numbers, "
                    f"{name}[{place}] has {len(row)}"
                )
        return rows


@dataclass(frozen=True)
class Maybe:
    """None, or a value of a type; None lets the lesson choose."""

    type: FieldType

    def read(self, value: object, name: str) -> Any:
        return None if value is None else self.type.read(value, name)


@dataclass(frozen=True)
class Part:
    """A dataclass inside a state."""

    cls: type[Any]

    def read(self, value: object, name: str) -> Any:
        return read_fields(self.cls, value, name)


def read(cls: type[S], content: str | bytes | Mapping[str, object]) -> S:
    """A State from JSON, as text or parsed; fields that are missing have their defaults."""
    if isinstance(content, str | bytes):
        try:
            content = cast("Mapping[str, object]", strict_json.loads(content))
        except ValueError as error:
            raise FormatError(f"the state must be JSON: {error}") from None
    return read_fields(cls, content, "")


def read_fields(cls: type[S], content: object, name: str) -> S:
    """A dataclass of settings from a parsed JSON object; `name` is where it stands in the state, for errors."""
    types: dict[str, FieldType] = {entry.name: entry.metadata["type"] for entry in fields(cls)}  # pyright: ignore[reportArgumentType]
    if not isinstance(content, Mapping):
        owner = name or "the state"
        raise DtypeError(f"{owner} must be an object with fields {', '.join(types)}, {described(content)} came")
    for key in content:
        if key not in types:
            raise ChoiceError(
                f"there is no field {described(key)}{f' in {name}' if name else ''}; there are {', '.join(types)}"
            )
    inside = f"{name}." if name else ""
    return cls(**{key: types[key].read(value, f"{inside}{key}") for key, value in content.items()})


def write(state: Any) -> Any:
    """The state as JSON holds it: `read(type(state), write(state)) == state`."""
    if is_dataclass(state):
        return {entry.name: write(getattr(state, entry.name)) for entry in fields(state)}
    return [write(item) for item in state] if isinstance(state, tuple) else state


def described(value: object) -> str:
    """A value in a few words for an error message: it may be huge, or deeper than a repr can follow."""
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
