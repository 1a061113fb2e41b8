"""Tensors that change later: noticing it, and being safe from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from regard.errors import StaleWeightsError
from regard.spec import Spec
from regard.term import Term

Versions = tuple[tuple[str, Tensor, int], ...]
ANSWER = (
    "since these weights were made, so an answer would be about other numbers; "
    "take weights.snapshot() before the change, or make the weights anew"
)
GRADIENT = (
    "between attend and the backward pass, which needs it as it was, so the gradient would be that of another "
    "function; change it after the backward pass, or change a copy"
)


def versions(named: Mapping[str, Tensor]) -> Versions:
    """How often each tensor has been changed so far; those made in inference mode keep no count."""
    return tuple((name, t, t._version) for name, t in named.items() if not t.is_inference())  # noqa: SLF001


def copy(tensor: Tensor, copies: dict[int, Tensor]) -> Tensor:
    if id(tensor) not in copies:
        copies[id(tensor)] = tensor.detach().clone()
    return copies[id(tensor)]


def copied(words: Any, copies: dict[int, Tensor]) -> Any:
    """A spec or a word with every tensor in it copied."""
    if isinstance(words, Tensor):
        return copy(words, copies)
    if isinstance(words, Spec | Term):
        return replace(words, **{f.name: copied(getattr(words, f.name), copies) for f in fields(words) if f.init})  # pyright: ignore[reportArgumentType, reportCallIssue]
    return words


def changed(versions: Versions | None) -> str | None:
    """The name of a tensor that has been written over since."""
    return next((name for name, tensor, version in versions or () if tensor._version != version), None)  # noqa: SLF001


def check(versions: Versions | None, harm: str = ANSWER) -> None:
    """Raise where a tensor has been written over since, and say what harm that does."""
    name = changed(versions)
    if name is not None:
        raise StaleWeightsError(f"{name} has been changed in place {harm}")
