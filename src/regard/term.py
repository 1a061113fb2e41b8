"""What a score, a mask and a normaliser have in common: they are frozen words of which a formula is made.

A word's fields are the caller's tensors, other words of its kind, and plain values. From these follow the names
of its tensors, its signature and how many operands it makes; a word made of others needs to say nothing of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from torch import Tensor

Part = TypeVar("Part", bound="Word[Any]")


class Word(Generic[Part]):
    """One part of a formula; `Part` is what words of its kind are made of."""

    makes = 0  # operands of its own, beside those of its parts

    @property
    def parts(self) -> tuple[Part, ...]:
        """The words that this one is made of."""
        return tuple([part for part in vars(self).values() if isinstance(part, Word)])  # pyright: ignore[reportReturnType]

    def leaves(self) -> Iterator[Part]:
        """The words that this one is made of in the end: itself, if it is made of none."""
        if not self.parts:
            yield self  # pyright: ignore[reportReturnType]
        for part in self.parts:
            yield from part.leaves()

    @property
    def arity(self) -> int:
        """How many operands this word makes."""
        return self.makes + sum([part.arity for part in self.parts])

    @property
    def signature(self) -> Hashable:
        """All that a plan may depend on: kinds, sizes and plain values, never the numbers in tensors."""
        return (type(self), *map(_fact, vars(self).values()))

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors that belong to the caller, by name."""
        found: Mapping[str, Tensor] = {}
        for field, value in vars(self).items():
            if isinstance(value, Tensor):
                found = joined(found, {self.called(field): value})
            elif isinstance(value, Word):
                found = joined(found, value.tensors())
        return found

    def called(self, field: str) -> str:
        """What the caller knows a field as."""
        return f"{field} of {type(self).__name__.lower()}"

    def shares(self, tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """For each part its own of the tensors that all of them made."""
        found: list[Sequence[Tensor]] = []
        for part in self.parts:
            found.append(tensors[: part.arity])
            tensors = tensors[part.arity :]
        return found


def _fact(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return (tuple(value.shape), value.dtype, value.device, value.requires_grad)
    return value.signature if isinstance(value, Word) else value


def joined(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Named tensors of two words; a name that comes twice is told apart."""
    found = dict(first)
    for name, tensor in second.items():
        unique = name
        while unique in found:
            unique = f"another {unique}"
        found[unique] = tensor
    return found


def came(value: object) -> str:
    """What was given, in the words of an error."""
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
