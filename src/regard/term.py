"""The base class of scores, masks and normalisers: the terms of the formula normalise(score, mask).

A term is a frozen dataclass. Its fields are the caller's tensors, other terms of its family, and plain values (numbers,
texts, None). From the fields follow the names of its tensors, its signature for the plan cache, how it is stored in a
recording and how it is cut to one head; a term made of other terms says nothing about them.

Defining a subclass registers it by name, so that a recording can name it. Files hold names, never code.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from inspect import signature
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from regard.errors import ChoiceError, DtypeError, RecordError
from regard.operands import tensor_obstacle

Part = TypeVar("Part", bound="Term[Any]")

TERMS: dict[str, type[Term[Any]]] = {}  # every term that is defined, by the name that recordings store
NOTHING: Mapping[str, int] = MappingProxyType({})


class Term(Generic[Part]):
    """One term of a formula; `Part` is the family (Score, Mask or Normaliser) of the terms it is made of.

    A class that only serves as a base is defined with `abstract=True` and is not registered. `term_name` is the name in
    recordings, that of the class if none is given:

        class Distance(Score, abstract=True): ...
        class KernelScore(Distance, term_name="Kernel"): ...
    """

    term_name: ClassVar[str] = ""  # empty for an abstract class
    n_operands: ClassVar[int] = 0  # operands of its own, beside those of its parts
    # How one head is cut out of a field's tensor, for weights of shape (batch, heads, queries, keys). Heads share the
    # tensors of fields that are in neither table.
    head_axes: ClassVar[Mapping[str, int]] = NOTHING  # the axis of heads from the end, of a tensor that broadcasts
    trailing_axes: ClassVar[Mapping[str, int]] = NOTHING  # how many axes follow (batch, heads), which it begins with

    def __init_subclass__(cls, *, term_name: str | None = None, abstract: bool = False, **options: Any) -> None:
        """Register the class by its name; a second term of one name is refused."""
        super().__init_subclass__(**options)
        cls.term_name = "" if abstract else term_name or cls.__name__
        if abstract:
            return
        if cls.term_name in TERMS:
            other = TERMS[cls.term_name]
            raise ChoiceError(
                f"there is a term {cls.term_name!r} already, {other.__module__}.{other.__qualname__}: a recording "
                "stores a term by its name, so a new one needs another (that of its class, or term_name='...')"
            )
        TERMS[cls.term_name] = cls

    @property
    def parts(self) -> tuple[Part, ...]:
        """The terms among the fields."""
        return tuple([part for part in vars(self).values() if isinstance(part, Term)])  # pyright: ignore[reportReturnType]

    def leaves(self) -> Iterator[Part]:
        """Leaves of the term: the terms without parts that it is made of; itself, if it has none."""
        if not self.parts:
            yield self  # pyright: ignore[reportReturnType]
        for part in self.parts:
            yield from part.leaves()

    @property
    def arity(self) -> int:
        """Number of operands, those of the parts included."""
        return self.n_operands + sum([part.arity for part in self.parts])

    @property
    def signature(self) -> Hashable:
        """All that a plan may depend on: classes, shapes and plain values, never the numbers in tensors."""
        return (type(self), *map(_signature, vars(self).values()))

    def all_tensors(self) -> list[Tensor]:
        """The caller's tensors, those of the parts included."""
        found: list[Tensor] = []
        for value in vars(self).values():
            if isinstance(value, Tensor):
                found.append(value)
            elif isinstance(value, Term):
                found += value.all_tensors()
        return found

    def tensors(self) -> Mapping[str, Tensor]:
        """The caller's tensors, each under the label that error messages use."""
        named: dict[str, Tensor] = {}
        for field, value in vars(self).items():
            if isinstance(value, Tensor):
                _add_named(named, self.label(field), value)
            elif isinstance(value, Term):
                for name, tensor in value.tensors().items():
                    _add_named(named, name, tensor)
        return named

    def label(self, field: str) -> str:
        """The words by which the caller knows a field: "w of general"."""
        return f"{field} of {self.term_name.lower()}"

    def split_operands(self, tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """Split the operands of all parts into those of each part, in their order."""
        split: list[Sequence[Tensor]] = []
        for part in self.parts:
            count = part.arity
            split.append(tensors[:count])
            tensors = tensors[count:]
        return split

    @classmethod
    def stored_fields(cls) -> Mapping[str, Any]:
        """Names and types of the fields that a recording stores, which are all fields of the dataclass."""
        return _stored_fields(cls)

    @classmethod
    def head_axis(cls, field: str, shape: tuple[int, ...]) -> int | None:
        """The axis of heads in a field's tensor of this shape, or None if all heads share the tensor."""
        axis = cls.head_axes.get(field)
        trailing = cls.trailing_axes.get(field)
        if trailing is not None and len(shape) - trailing >= 2:
            axis = 1 - len(shape)
        if axis is None or len(shape) < -axis or shape[axis] == 1:
            return None
        return len(shape) + axis

    def of_heads(self, heads: Sequence[int]) -> Part:
        """The term for some heads alone; for one head its tensors are views of the old ones."""
        changed: dict[str, Any] = {}
        for field in (f.name for f in fields(self) if f.init):  # pyright: ignore[reportArgumentType]
            value = getattr(self, field)
            if isinstance(value, Tensor):
                axis = self.head_axis(field, tuple(value.shape))
                value = value if axis is None else select_heads(value, axis, heads)
            changed[field] = value.of_heads(heads) if isinstance(value, Term) else value
        return replace(self, **changed)  # pyright: ignore[reportArgumentType, reportReturnType]

    def at(self, axis: int, index: int, lead: int) -> Part:
        """The term at one index of a leading axis of the weights, which have `lead` such axes; the axis is dropped."""
        changed: dict[str, Any] = {}
        for field in (f.name for f in fields(self) if f.init):  # pyright: ignore[reportArgumentType]
            value = getattr(self, field)
            if isinstance(value, Tensor):
                value = select_index(value, self.lead_axis(field, value.dim(), axis, lead), index)
            changed[field] = value.at(axis, index, lead) if isinstance(value, Term) else value
        return replace(self, **changed)  # pyright: ignore[reportArgumentType, reportReturnType]

    @classmethod
    def lead_axis(cls, field: str, dims: int, axis: int, lead: int) -> int | None:
        """The axis of a field's tensor that follows a leading axis of the weights, or None if none does.

        A tensor in `head_axes` has the leading axes from the right, one in `trailing_axes` has them from the left.
        """
        if field in cls.trailing_axes:
            return axis if axis < dims - cls.trailing_axes[field] else None
        own = dims + cls.head_axes[field] - (lead - 1 - axis) if field in cls.head_axes else -1
        return own if own >= 0 else None


def select_index(tensor: Shaped[Tensor, "..."], axis: int | None, index: int) -> Shaped[Tensor, "..."]:
    """The tensor at one index of an axis, which is dropped; an axis of length 1 stands for all indices."""
    if axis is None:
        return tensor
    return tensor.select(axis, 0 if tensor.shape[axis] == 1 else index)


def select_heads(tensor: Shaped[Tensor, "..."], axis: int, heads: Sequence[int]) -> Shaped[Tensor, "..."]:
    """Some heads of a tensor, along the axis of heads: a view for one head, a copy for several."""
    if len(heads) == 1:
        return tensor.narrow(axis, heads[0], 1)
    return tensor.index_select(axis, torch.tensor(heads, device=tensor.device))


@cache
def _stored_fields(cls: type[Term[Any]]) -> Mapping[str, Any]:
    if not cls.term_name or not is_dataclass(cls):
        reason = "its class is abstract" if is_dataclass(cls) else "its class must be a frozen dataclass"
        raise RecordError(f"{cls.__name__} is no word that a recording can keep: {reason}")
    try:
        types = typing.get_type_hints(cls)
    except NameError as error:
        raise RecordError(
            f"{cls.__name__} is no word that a recording can keep: the type of a field has no meaning in its module "
            f"({error})"
        ) from error
    return {field.name: types[field.name] for field in fields(cls)}


def _signature(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        return (tuple(value.shape), value.dtype, value.device, value.requires_grad)
    return value.signature if isinstance(value, Term) else value


def merge_named(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Named tensors of two terms; a name that is taken already becomes "another ..."."""
    merged = dict(first)
    for name, tensor in second.items():
        _add_named(merged, name, tensor)
    return merged


def _add_named(named: dict[str, Tensor], name: str, tensor: Tensor) -> None:
    while name in named:
        name = f"another {name}"
    named[name] = tensor


def check_ordinary(value: Tensor, name: str) -> None:
    """Raise DtypeError for a tensor whose numbers cannot be computed with, such as a sparse one."""
    obstacle = tensor_obstacle(value)
    if obstacle is not None:
        raise DtypeError(f"{name} must be an ordinary dense tensor, but {obstacle}")


def as_float(value: object, name: str) -> float:
    """A number as a float; ChoiceError for one that a float cannot hold, and for what is no number."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        pass
    raise ChoiceError(f"{name} needs a number within the range of floats, but it is {value!r:.40}")


def type_name(value: object) -> str:
    """The type of a wrong value, for an error message."""
    return f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__


def advise_call(value: object, argument: str, module: ModuleType) -> str | None:
    """An error message for a term that is given by its name, or by its function without a call; None for the rest."""
    is_function = isinstance(value, FunctionType)
    if not is_function and not isinstance(value, str):
        return None
    name, package = value.__name__ if is_function else value, module.__name__.rpartition(".")[2]
    offered = [name for name in module.__all__ if name.islower()]  # functions: classes have capitals
    near = next(iter(get_close_matches(name.lower(), offered, 1)), None)
    came = f"{argument} is an object of regard.{package}, not the {'function' if is_function else 'text'} {name!r:.40}"
    if near is None:
        return f"{came}: there are {', '.join(offered)}"
    parameters = signature(getattr(module, near)).parameters.values()
    needed = ", ".join(parameter.name for parameter in parameters if parameter.default is parameter.empty)
    return f"{came}: write {argument}={package}.{near}({needed})"
