"""Tensors that change later: noticing it, and being safe from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from regard._word import Word
from regard.errors import StaleWeightsError
from regard.spec import Spec

Versions = tuple[tuple[str, Tensor, int], ...]


def versions(query: Tensor, key: Tensor, spec: Spec) -> Versions | None:
    named: Mapping[str, Tensor] = {"query": query, "key": key, **spec.tensors()}
    if any(t.is_inference() for t in named.values()):
        return None  # such tensors keep no count of changes
    return tuple((name, t, t._version) for name, t in named.items())  # noqa: SLF001


def copy(tensor: Tensor, copies: dict[int, Tensor]) -> Tensor:
    if id(tensor) not in copies:
        copies[id(tensor)] = tensor.detach().clone()
    return copies[id(tensor)]


def copied(words: Any, copies: dict[int, Tensor]) -> Any:
    """A spec or a word with every tensor in it copied."""
    if isinstance(words, Tensor):
        return copy(words, copies)
    if isinstance(words, Spec | Word):
        return replace(words, **{f.name: copied(getattr(words, f.name), copies) for f in fields(words) if f.init})  # pyright: ignore[reportArgumentType, reportCallIssue]
    return words


def check(versions: Versions | None) -> None:
    """Raise where a tensor has been written over since."""
    for name, tensor, version in versions or ():
        if tensor._version != version:  # noqa: SLF001
            msg = (
                f"{name} has been changed in place since these weights were made, so an answer would be about "
                f"other numbers; take weights.snapshot() before the change, or make the weights anew"
            )
            raise StaleWeightsError(msg)
